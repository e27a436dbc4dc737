"""Finding jobs: every field, alone and together, page by page, over jobs of which several were made within a millisecond."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from masterstore import keys
from masterstore.job_filter import JobFilter
from masterstore.store import Store

pytestmark = pytest.mark.redis

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
FUNCTIONS = ("test.ping", "test.echo", "state.apply", "cmd.run")
USERS = ("root", "sudo_ann", "bob")
MINIONS = ("web1", "web2", "db1")
TARGETS = ("*", "web*", ["web1", "db1"], "db1")


def facts(number: int) -> dict[str, Any]:
    """What job ``number`` is: every third shares its millisecond with the one before."""
    moment = BEGIN + timedelta(milliseconds=number - number % 3 // 2, microseconds=number % 3)
    return {
        "jid": moment.strftime("%Y%m%d%H%M%S%f"),
        "ms": int(moment.timestamp() * 1000),
        "fun": FUNCTIONS[number % 4] if number % 7 else ["test.ping", "cmd.run"],
        "user": USERS[number % 3],
        "tgt": TARGETS[number % 4],
        "minions": MINIONS[: 1 + number % 3],
        "result": ("ok", "failed")[number % 5 == 0],
        "state": ("late", "lost", "running")[number % 6 % 3],
    }


JOBS = sorted((facts(number) for number in range(200)), key=lambda job: (job["ms"], job["jid"]), reverse=True)


@pytest.fixture(scope="module")
def filled(redis_server: str) -> Iterator[Store]:
    with redis.Redis.from_url(redis_server) as raw:
        raw.flushall()
        pipe = raw.pipeline()
        for job in JOBS:
            jid, ms = job["jid"], job["ms"]
            load = {name: job[name] for name in ("jid", "fun", "user", "tgt")}
            pipe.set(keys.load(jid), json.dumps(load))
            pipe.zadd(keys.JOBS, {jid: ms})
            functions = job["fun"] if isinstance(job["fun"], list) else [job["fun"]]
            tgt = ",".join(job["tgt"]) if isinstance(job["tgt"], list) else job["tgt"]
            rows = [("fun", name) for name in functions] + [("minion", name) for name in job["minions"]]
            rows += [("user", job["user"]), ("tgt", tgt), ("result", job["result"]), ("state", job["state"])]
            for kind, value in rows:
                pipe.zadd(keys.index(kind, value), {jid: ms})
            for name in functions:
                pipe.zadd(keys.FUNCTIONS, {name: ms})
        pipe.execute()
        yield Store.open(redis_server, timeout=5.0, client_name="test")
        raw.flushall()


def meant(wanted: JobFilter) -> list[str]:
    """The JIDs that the filter means, decided job by job."""

    def some(names: tuple[str, ...], values: Any) -> bool:
        found = values if isinstance(values, list | tuple) else [values]
        return not names or any(fnmatchcase(value, name) for value in found for name in names)

    def whole(tgt: Any) -> str:
        return ",".join(tgt) if isinstance(tgt, list) else str(tgt)

    return [
        job["jid"]
        for job in JOBS
        if (wanted.after_ms is None or job["ms"] >= wanted.after_ms)
        and (wanted.before_ms is None or job["ms"] < wanted.before_ms)
        and some(wanted.functions, job["fun"])
        and (not wanted.minions or set(wanted.minions) & set(job["minions"]))
        and some(wanted.users, job["user"])
        and (not wanted.targets or any(fnmatchcase(whole(job["tgt"]), glob) for glob in wanted.targets))
        and (wanted.success is None or job["result"] == ("ok" if wanted.success else "failed"))
        and (not wanted.states or job["state"] in wanted.states)
    ]


def walked(store: Store, wanted: JobFilter) -> list[str]:
    pages = list(store.found_jobs.pages(wanted))
    assert all(len(page.jobs) == wanted.limit for page in pages[:-1])
    assert all(page.cursor == page.jobs[-1].jid for page in pages[:-1])
    return [job.jid for page in pages for job in page.jobs]


START = JOBS[-1]["ms"]
FIELDS = {
    "after_ms": st.none() | st.integers(START - 2, START + 202),
    "before_ms": st.none() | st.integers(START - 2, START + 202),
    "functions": st.lists(st.sampled_from([*FUNCTIONS, "test.*", "*", "no.such", "[sc]*"]), max_size=2),
    "minions": st.lists(st.sampled_from([*MINIONS, "nobody"]), max_size=2),
    "users": st.lists(st.sampled_from([*USERS, "sudo_*", "nobody"]), max_size=2),
    "targets": st.lists(st.sampled_from(["db1", "web1,db1", "web*", "none"]), max_size=2),
    "success": st.none() | st.booleans(),
    "states": st.lists(st.sampled_from(["late", "lost", "running", "offline"]), max_size=2),
    "limit": st.sampled_from([1, 2, 7, 50, 500]),
}


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fields=st.fixed_dictionaries(FIELDS))
def test_pages_hold_what_the_filter_means(filled: Store, fields: dict[str, Any]) -> None:
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    wanted = JobFilter(**given)
    assert walked(filled, wanted) == meant(wanted)


def test_a_page_goes_on_where_its_job_expired(filled: Store) -> None:
    gone = JOBS[2]["jid"][:19] + "9"
    page = filled.found_jobs.page(JobFilter(limit=2, cursor=gone))
    assert [job.jid for job in page.jobs] == [job["jid"] for job in JOBS if job["jid"] < gone][:2]


def test_jobs_that_expired_are_passed_over(filled: Store) -> None:
    filled._client.redis.delete(keys.load(JOBS[1]["jid"]))
    page = filled.found_jobs.page(JobFilter(limit=2))
    assert [job.jid for job in page.jobs] == [JOBS[0]["jid"], JOBS[2]["jid"]]


def test_a_job_within_the_newest_is_found_with_few_questions(filled: Store) -> None:
    """The newest page: one question for the JIDs and one for their loads, whatever the size of the job cache."""
    client = filled._client.redis
    before = client.info("commandstats")
    filled.found_jobs.page(JobFilter(limit=5, functions=("test.ping",)))
    after = client.info("commandstats")
    calls = after["cmdstat_zrevrangebyscore"]["calls"] - before.get("cmdstat_zrevrangebyscore", {"calls": 0})["calls"]
    assert calls == 1
