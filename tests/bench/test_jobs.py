"""bench.jobs at its smallest: what it makes is what the store would have written, and it measures every row."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
import redis

from bench import jobs
from bench.job_cache import FAILS, fill
from bench.job_cache import jobs as made_jobs
from masterstore.job_filter import JobFilter
from masterstore.lives import jid_ms
from masterstore.store import Store

pytestmark = pytest.mark.redis

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)

#: What a publish leaves beside the job, for as long as it is under way.
PASSING = re.compile(r"salt:(publications|request:.*|jobs:due|idx:state:running)")


def content(server: redis.Redis) -> dict[str, object]:
    """Every key with its value; zsets with scores."""
    read = {
        b"string": server.get,
        b"hash": server.hgetall,
        b"set": server.smembers,
        b"zset": lambda name: server.zrange(name, 0, -1, withscores=True),
    }
    names = [name for name in server.scan_iter("*") if not PASSING.fullmatch(name.decode())]
    return {name.decode(): read[server.type(name)](name) for name in names}


@pytest.mark.parametrize("number", [0, FAILS - 1])
def test_a_made_job_is_one_that_went_through_the_store(redis_url: str, number: int) -> None:
    server = redis.Redis.from_url(redis_url)
    fill(server, number, 1, BEGIN, ttl=600)
    made = content(server)
    assert all(server.ttl(name) > 0 for name in made if name not in ("minions", "salt:jobs:bytes"))
    server.flushall()
    store = Store.open(redis_url, client_name="test")
    (job,) = made_jobs(number, 1, BEGIN)
    now = jid_ms(job.jid)
    store.jobs.publish(job.load(), [job.minion], request_id="r", ttl=600, now_ms=now)
    store.jobs.record_return(job.ret(), ttl=600, now_ms=now + 1200)
    assert made == content(server)


def test_the_questions_find_what_they_ask_for(redis_url: str) -> None:
    server = redis.Redis.from_url(redis_url)
    fill(server, 0, 2500, BEGIN, ttl=600)
    fill(server, 2500, 500, BEGIN, ttl=600)
    store = Store.open(redis_url, client_name="test")
    (last,) = made_jobs(2999, 1, BEGIN)
    newest = store.found_jobs.page(JobFilter(limit=50)).jobs
    assert [job.jid for job in newest] == [job.jid for job in reversed(made_jobs(2950, 50, BEGIN))]
    assert newest[0].load == last.load()
    failed = store.found_jobs.page(JobFilter(limit=3000, success=False)).jobs
    assert len(failed) == 3000 // FAILS
    for name, ask in jobs.questions(store, last).items():
        assert ask(), name


def test_it_prints_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert jobs.main(["--jobs", "100,300", "--returns", "50"]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^(100|300) jobs, made within", out, re.MULTILINE) == ["100", "300"]
    assert len(re.findall(r"^  newest 50 +\d+\.\d\d +\d+\.\d\d \(\d+\.\d\d\)$", out, re.MULTILINE)) == 2
    for row in (
        "one job with its returns",
        "a return",
        "raw Redis, pipelined",
        "Wanted: below 5 ms each",
        "Flat? 300 jobs beside 100",
        "Wanted: half of raw",
    ):
        assert row in out


@pytest.mark.parametrize("sizes", ["", "10", "many", "1000,x"])
def test_sizes_are_checked(sizes: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        jobs.main(["--jobs", sizes])
    assert "is no list of sizes" in capsys.readouterr().err


def test_peers_are_given_the_same_jobs() -> None:
    first, second = made_jobs(5, 2, BEGIN)
    assert second.number == 6
    assert jid_ms(second.jid) - jid_ms(first.jid) == jobs.STEP_MS
    assert made_jobs(0, 1, BEGIN + timedelta(milliseconds=5 * jobs.STEP_MS))[0].jid == first.jid
