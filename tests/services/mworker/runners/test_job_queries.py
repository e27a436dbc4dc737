"""A published job from its publication to its end: its states as they are shown, what statistics count, who gets it again."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from masterstore.life import State
from saltern.mworker.runners import job_queries, jobs
from saltern.mworker.runners.runner import RunnerFault, RunnerTools

pytestmark = pytest.mark.redis

MINIONS = ["ok", "bad", "gone", "away", "busy"]


class Control:
    """The control door of the worker itself."""

    def __init__(self, worker: Any) -> None:
        self._worker = worker

    def call(self, cmd: str, **fields: Any) -> Any:
        answer = self._worker.control(cmd, **fields)
        assert not isinstance(answer, tuple), answer
        return answer


@pytest.fixture
def tools(worker: Any) -> RunnerTools:
    worker.accept(*MINIONS)
    made = SimpleNamespace(
        store=worker.store, options=worker.context.options, jid="1", sender=None, user="bob", control=Control(worker)
    )
    return cast(RunnerTools, made)


@pytest.fixture
def publish(worker: Any) -> Callable[..., str]:
    """Publishes to every minion, then leads each where its name says."""
    numbers = itertools.count()

    def published(fun: Any = "test.echo", arg: Any = ("x",), **fields: Any) -> str:
        answer = worker.control(
            "publish",
            tgt=MINIONS,
            tgt_type="list",
            fun=fun,
            arg=list(arg),
            user="ann",
            request_id=f"r{next(numbers)}",
            **fields,
        )
        jid = str(answer["jid"])
        now = int(time.time() * 1000)
        store = worker.store
        for minion in ("ok", "bad", "gone", "busy"):
            store.jobs.sign(minion, [(jid, State.STARTED, now)], now)
        store.jobs.move(jid, State.LOST, ["gone"], now)
        store.jobs.move(jid, State.OFFLINE, ["away"], now)
        for minion in ("ok", "bad"):
            ret = {"jid": jid, "id": minion, "fun": fun, "return": 1, "retcode": int(minion == "bad")}
            store.jobs.record_return(ret, ttl=600, now_ms=now + 2000)
        return jid

    return published


def test_states_are_shown(tools: RunnerTools, publish: Callable[..., str], worker: Any) -> None:
    jid = publish()
    states = jobs.list_job(tools, jid)["States"]
    assert {minion: told["State"] for minion, told in states.items()} == {
        "ok": "returned",
        "bad": "returned",
        "gone": "lost",
        "away": "offline",
        "busy": "started",
    }
    assert list(states["ok"]) == ["State", "Expected", "Started", "Returned"]
    assert list(states["gone"]) == ["State", "Expected", "Started", "Lost", "Last seen"]
    assert states["away"]["Last seen"] == "never"
    worker.store.jobs.record_return({"jid": jid, "id": "away", "fun": "test.echo", "return": 1}, ttl=600)
    assert jobs.list_job(tools, jid)["States"]["away"]["Late"] is True


def test_words_of_silence(tools: RunnerTools, publish: Callable[..., str]) -> None:
    found = jobs.lookup_jid(tools, publish(), returned=False, missing=True)
    assert found == {
        "away": "Minion did not return: it was offline",
        "busy": "Minion works on the job and has not returned yet",
        "gone": "Minion did not return: it had the job, and fell silent",
    }


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"state": "running"}, 1),
        ({"state": "lost"}, 1),
        ({"state": "offline", "minion": "ok"}, 1),
        ({"state": "cancelled"}, 0),
        ({"success": False}, 1),
        ({"success": True}, 0),
        ({"user": "ann", "minion": "busy", "after": "1h"}, 1),
        ({"before": "1h"}, 0),
    ],
    ids=str,
)
def test_what_finds_it(tools: RunnerTools, publish: Callable[..., str], filters: dict[str, Any], found: int) -> None:
    publish()
    assert len(jobs.list_jobs(tools, **filters)) == found


def test_statistics(tools: RunnerTools, publish: Callable[..., str]) -> None:
    publish()
    publish(fun=["test.echo", "test.ping"], arg=[["x"], []])
    found = job_queries.stats(tools, window="1h")
    assert found["jobs"] == 2
    echo, ping = found["functions"]["test.echo"], found["functions"]["test.ping"]
    assert {name: echo[name] for name in ("jobs", "returns", "failures", "missing")} == {
        "jobs": 2,
        "returns": 4,
        "failures": 2,
        "missing": 6,
    }
    assert (ping["jobs"], ping["returns"]) == (1, 2)
    # From the sign of the start to the return, to one part in a hundred.
    assert abs(echo["p50_ms"] - 2000) <= 21
    assert (found["minions"]["bad"]["failures"], found["minions"]["ok"]["failures"]) == (2, 0)
    assert found["minions"]["gone"]["missing"] == 2
    assert list(job_queries.stats(tools, rows=1)["functions"]) == ["test.echo"]
    assert job_queries.stats(tools, limit=1)["jobs"] == 1
    assert job_queries.stats(tools, function="no.such") == {
        "jobs": 0,
        "Since": None,
        "Until": None,
        "functions": {},
        "minions": {},
    }


@pytest.mark.parametrize(
    ("which", "minions"),
    [
        ({"failed": True}, ["bad"]),
        ({"lost": True}, ["away", "gone"]),
        ({"failed": True, "lost": True}, ["away", "bad", "gone"]),
        ({"all": True}, sorted(MINIONS)),
    ],
    ids=str,
)
def test_rerun(tools: RunnerTools, publish: Callable[..., str], which: dict[str, bool], minions: list[str]) -> None:
    jid = publish(arg=["x", {"__kwarg__": True, "a": [1, {"b": None}]}], ret="smtp", kwargs={"metadata": {"ticket": 7}})
    answer = job_queries.rerun(tools, jid, **which)
    assert answer == {"jid": answer["jid"], "repeats": jid, "minions": minions, "missing": []}
    assert answer["jid"] != jid
    old, new = tools.store.jobs.load(jid), tools.store.jobs.load(answer["jid"])
    assert old is not None
    assert new == {
        **old,
        "jid": answer["jid"],
        "tgt": minions,
        "user": "bob",
        "metadata": {"ticket": 7, "repeats": jid},
    }
    # And it is found as a repetition.
    assert list(jobs.list_jobs(tools, search_metadata={"repeats": jid})) == [answer["jid"]]


def test_rerun_without_metadata_or_with_other(tools: RunnerTools, publish: Callable[..., str]) -> None:
    for given, noted in (({}, {}), ({"kwargs": {"metadata": "text"}}, {"metadata": "text"})):
        jid = publish(**given)
        load = tools.store.jobs.load(job_queries.rerun(tools, jid, failed=True)["jid"])
        assert load is not None
        assert load["metadata"] == {**noted, "repeats": jid}


@pytest.mark.parametrize(
    ("which", "said"),
    [
        ({}, "which minions"),
        ({"failed": "maybe"}, "failed must be True or False"),
        ({"lost": True}, "no minion of job .* is left for that: 1 returned"),
    ],
    ids=str,
)
def test_rerun_is_refused(tools: RunnerTools, worker: Any, which: dict[str, Any], said: str) -> None:
    jid = "20260101000000000000"
    worker.store.jobs.store_external(
        jid, {"jid": jid, "fun": "test.ping", "tgt": "ok"}, {"jid": jid, "id": "ok", "return": 1}
    )
    with pytest.raises(RunnerFault, match=said):
        job_queries.rerun(tools, jid, **which)


def test_rerun_of_a_runner(tools: RunnerTools, worker: Any) -> None:
    jid = "20260101000000000000"
    load = {"jid": jid, "fun": "runner.jobs.active", "tgt": "master"}
    worker.store.jobs.store_external(jid, load, {"jid": jid, "id": "master", "return": 1})
    with pytest.raises(
        RunnerFault, match=r"one of the master \(runner.jobs.active\): run it again with salt-run jobs.active"
    ):
        job_queries.rerun(tools, jid, all=True)
