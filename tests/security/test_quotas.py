"""An accepted minion that fills Redis, the disk, the event bus or the queue: each of them ends at the minion's limits."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from masterstore import keys
from saltern.kit.config.master import MasterOptions
from saltern.mworker.commands import received_files
from saltern.mworker.quotas import EVENT_BURST, LOG_SECONDS, QUOTA_OPTIONS, Quota, Quotas
from saltern.reqserver.clear_header import ClearHeader
from saltern.reqserver.dispatch import RATE_BURST, RATE_PATIENCE, Assign, Dispatcher, Refuse
from saltern.reqserver.queue import Side
from saltwire.jid import new_jid
from tests.services.mworker.conftest import FakeMinion, Worker

NewWorker = Callable[..., Worker]

KB = 1000
MB = 1000 * KB

#: Limits small enough for a test; those of events and of bytes are for a second.
SMALL: dict[str, Any] = {
    "grains_max_bytes": 200 * KB,
    "mine_max_bytes": 200 * KB,
    "file_recv": True,
    "file_recv_max_total": 1,
    "minion_events_per_second": 1,
    "minion_event_bytes_per_second": 2 * KB,
    "unasked_returns_per_hour": 20,
    "unasked_return_bytes_per_hour": 300 * KB,
    "peer": {},
}


@pytest.fixture
def master(new_worker: NewWorker, tmp_path: Any) -> Worker:
    return new_worker(**SMALL, cachedir=str(tmp_path / "cache"))


def used(worker: Worker) -> int:
    """Return the bytes that all keys in Redis use."""
    redis = worker.store.jobs._client.redis
    return sum(int(redis.memory_usage(name, samples=0) or 0) for name in redis.scan_iter("*"))


def on_disk(worker: Worker) -> tuple[int, int]:
    """Return (number of entries, bytes) of the files that minions pushed."""
    found = list(Path(worker.context.options.cachedir, "minions").rglob("*"))
    return len(found), sum(one.stat().st_size for one in found if one.is_file())


def refusals(worker: Worker) -> dict[str, float]:
    return {one.value: count for one in Quota if (count := worker.count("salt_quota_refusals_total", quota=one.value))}


def jid(number: int) -> str:
    return f"20260101{number:012d}"


# ------------------------------------------------------------------------------------------------------------- what is stored

#: Attack -> the requests, made from a number.
STORED: dict[str, tuple[Quota, Callable[[int], dict[str, Any]]]] = {
    "grains of a megabyte": (Quota.GRAINS, lambda n: {"cmd": "_pillar", "grains": {"x": "x" * MB, "n": n}}),
    "grains of many small values": (
        Quota.GRAINS,
        lambda n: {"cmd": "_pillar", "grains": {f"g{at}": "x" * 20 for at in range(9000)}},
    ),
    "a value of the mine of a megabyte": (Quota.MINE, lambda n: {"cmd": "_mine", "data": {f"f{n}": "x" * MB}}),
    "a mine of many requests": (Quota.MINE, lambda n: {"cmd": "_mine", "data": {f"f{n}": "x" * 20 * KB}}),
    "a mine of many functions": (
        Quota.MINE,
        lambda n: {"cmd": "_mine", "data": {f"f{n}.{at}": 1 for at in range(500)}},
    ),
    "a mine with long names": (Quota.MINE, lambda n: {"cmd": "_mine", "data": {f"{n}" + "x" * 100 * KB: 1}}),
    "a mine that replaces itself": (
        Quota.MINE,
        lambda n: {"cmd": "_mine", "data": {"f": "x" * MB}, "clear": True},
    ),
    "returns for jobs from nowhere": (
        Quota.RETURNS,
        lambda n: {"cmd": "_return", "jid": jid(n), "fun": "test.echo", "return": n},
    ),
    "large returns for jobs from nowhere": (
        Quota.RETURNS,
        lambda n: {"cmd": "_return", "jid": jid(n), "fun": "test.echo", "return": "x" * 100 * KB},
    ),
    "returns of functions from nowhere": (
        Quota.RETURNS,
        lambda n: {"cmd": "_return", "jid": jid(n), "fun": [f"{n}.f{at}" for at in range(50)], "return": []},
    ),
    "returns of own jobs": (
        Quota.RETURNS,
        lambda n: {"cmd": "_return", "jid": "req", "fun": f"own.f{n}", "return": n},
    ),
    "large returns of own jobs": (
        Quota.RETURNS,
        lambda n: {"cmd": "_return", "jid": "req", "fun": "test.echo", "return": "x" * 100 * KB},
    ),
    "returns of own jobs with ids": (
        Quota.RETURNS,
        lambda n: {"cmd": "_return", "jid": "req", "own_jid": jid(n), "fun": "test.echo", "return": n},
    ),
    "own jobs that are not kept": (
        Quota.RETURNS,
        lambda n: {"cmd": "_return", "jid": "nocache", "own_jid": jid(n), "fun": "test.echo", "return": n},
    ),
}


def send(minion: FakeMinion, load: dict[str, Any]) -> Any:
    if load["cmd"] == "_pillar":
        return minion.pillar(**load)
    return minion.ask(**load)


@pytest.mark.parametrize("attack", STORED)
def test_redis_does_not_fill(master: Worker, attack: str) -> None:
    quota, load = STORED[attack]
    minion = master.minion()
    for number in range(30):
        send(minion, load(number))
    assert refusals(master).keys() == {quota.value}
    # The rest is nonces, and what a job has beside its return: at most 20 jobs, with 16 indexes each.
    assert used(master) < 900 * KB
    before = used(master)
    for number in range(30, 50):
        send(minion, load(number))
    assert used(master) - before < 40 * KB


def test_returns_for_jobs_of_others_do_not_fill_redis(master: Worker) -> None:
    """Jobs that exist and expect another minion."""
    minion = master.minion()
    for number in range(40):
        load = {"jid": jid(number), "fun": "test.echo", "tgt": "web2", "arg": [], "user": "root"}
        master.store.jobs.publish(load, ["web2"], request_id=f"r{number}", ttl=600, now_ms=1)
        minion.ask("_return", jid=jid(number), fun="test.echo", **{"return": "x"})
    assert sum("web1" in master.store.jobs.returns(jid(number)) for number in range(40)) == 20
    assert refusals(master) == {"returns": 20}


def test_a_repeated_return_makes_no_key_for_each_function(master: Worker) -> None:
    minion = master.minion()
    for number in range(50):
        minion.ask("_return", jid=jid(1), fun=f"test.f{number}", **{"return": 1})
    assert len(list(master.store.jobs._client.redis.scan_iter("web1:*"))) == 1


def test_a_return_from_nowhere_does_not_stay(new_worker: NewWorker) -> None:
    worker = new_worker(unknown_return_seconds=100, compress_return_bytes=1000)
    made = new_jid(time.time())
    worker.minion().ask("_return", jid=made, fun="test.echo", **{"return": "x" * 5000})
    redis = worker.store.jobs._client.redis
    for name in (keys.ret(made), keys.large(made), keys.job(made), "web1:test.echo"):
        assert 90 < redis.ttl(name) <= 100, name
    # A list of jobs keeps its time: a short one would remove other jobs.
    assert redis.ttl(keys.JOBS) > 80_000


def test_pillars_of_many_environments_do_not_fill_redis(new_worker: NewWorker) -> None:
    worker = new_worker(pillar_cache=True)
    minion = worker.minion()
    for number in range(100):
        minion.pillar(pillarenv=f"env{number}")
    assert len(worker.store.cache.kept_pillar("web1")) <= 64


# -------------------------------------------------------------------------------------------------------------------- the disk

#: Attack -> the chunks of pushed files, made from a number.
PUSHED: dict[str, Callable[[int], dict[str, Any]]] = {
    "many files": lambda n: {"path": [f"f{n}"], "loc": 0, "data": b"x" * 60 * KB},
    "many small files that grow": lambda n: {"path": [f"f{n % 20}"], "loc": n // 20 * 100, "data": b"x" * 200 * KB},
    "one file above the limit": lambda n: {"path": ["f"], "loc": n * 60 * KB, "data": b"x" * 60 * KB},
    "files in many directories": lambda n: {"path": [f"d{n}", "f"], "loc": 0, "data": b"x" * 60 * KB},
    "many empty files": lambda n: {"path": [f"f{n}"], "loc": 0, "data": b""},
    "deep directories": lambda n: {"path": [f"{n}", *["d"] * 30, "f"], "loc": 0, "data": b""},
}


@pytest.mark.parametrize("attack", PUSHED)
def test_the_disk_does_not_fill(master: Worker, attack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(received_files, "MOST_ENTRIES", 40)
    minion = master.minion()
    answers = [minion.ask("_file_recv", size=0, **PUSHED[attack](number)) for number in range(60)]
    entries, size = on_disk(master)
    assert size <= 1024 * 1024
    # The minion's own directory and that of its files are two of them.
    assert entries <= 40 + 2
    assert answers[0] is True
    assert answers[-1] is False
    assert refusals(master).keys() == {"files"}


# --------------------------------------------------------------------------------------------------------------------- events

#: Attack -> the requests, made from a number.
FIRED: dict[str, Callable[[int], dict[str, Any]]] = {
    "single events": lambda n: {"cmd": "_minion_event", "tag": f"site/{n}", "data": {}},
    "batches of events": lambda n: {"cmd": "_minion_event", "events": [{"tag": "site/x", "data": {}}] * 100},
    "batches with a second tag": lambda n: {
        "cmd": "_minion_event",
        "events": [{"tag": "x", "data": {}}] * 100,
        "pretag": "site",
    },
    "one batch of a thousand": lambda n: {"cmd": "_minion_event", "events": [{"tag": "site/x", "data": {}}] * 1000},
    "large events": lambda n: {"cmd": "_minion_event", "tag": "site/x", "data": {"x": "x" * 30 * KB}},
    "failed states of returns": lambda n: {
        "cmd": "_return",
        "jid": jid(n % 10),
        "fun": "state.sls",
        "retcode": 2,
        "return": {f"test_|-{at}_|-{at}_|-nop": {"result": False} for at in range(500)},
    },
}


@pytest.mark.parametrize("attack", FIRED)
def test_the_event_bus_is_not_flooded(master: Worker, attack: str) -> None:
    minion = master.minion()
    for number in range(80):
        minion.ask(**FIRED[attack](number))
    # Two events for each: of a state, and of a batch with a pretag. Ten returns bring events of their own.
    assert len(master.tags()) <= 2 * (EVENT_BURST + 10) + 10
    assert sum(len(str(data)) for _, data in master.events) < 10 * MB
    assert "events" in refusals(master)


def test_another_minion_is_not_limited(master: Worker) -> None:
    flood, other = master.minion(), master.minion("web2", key=1)
    for number in range(100):
        flood.ask("_minion_event", tag=f"site/{number}", data={})
        flood.ask("_return", jid=jid(number), fun="test.echo", **{"return": 1})
    master.events.clear()
    other.ask("_minion_event", tag="site/other", data={})
    other.ask("_return", jid=jid(500), fun="test.echo", **{"return": 1})
    assert master.tags() == ["site/other", f"salt/job/{jid(500)}/ret/web2"]


# ------------------------------------------------------------------------------------------------------------------- requests


def flood(dispatcher: Dispatcher, seconds: float, rate: int, payload: bytes = b"x") -> tuple[int, int, int]:
    """One minion sends requests to a worker that answers at once; return (served, refused, most bytes that waited)."""
    served = refused = most = 0
    dispatcher.ready(b"w1", 0.0)
    for at in range(int(seconds * rate)):
        now = at / rate
        header = ClearHeader("", b"web1")
        found = dispatcher.request(Side.MINION, (b"%d" % at,), "", payload, now, header=header, address="10.0.0.1")
        found += dispatcher.tick(now)
        while found:
            one = found.pop()
            refused += isinstance(one, Refuse)
            if isinstance(one, Assign):
                served += 1
                found += dispatcher.reply(one.worker, one.request.ticket, b"", now)
        most = max(most, dispatcher.waiting.bytes)
    return served, refused, most


@pytest.mark.parametrize(
    ("limits", "size"),
    [({"requests_per_second": 10}, 10), ({"bytes_per_second": 10_000}, 1000)],
    ids=["many requests", "large requests"],
)
def test_a_flood_of_requests_is_slowed_down(limits: dict[str, Any], size: int) -> None:
    dispatcher = Dispatcher(max_count=20_000, max_bytes=10**9, **limits)
    served, refused, most = flood(dispatcher, 100, 50, b"x" * size)
    assert served <= 10 * (100 + RATE_BURST) + 2
    # What it may send is served, and only what would wait for long is refused.
    assert served >= 10 * (100 + RATE_BURST) - 2
    assert refused > 3000
    assert most <= (RATE_PATIENCE * 10 + 2) * size
    assert dispatcher.refused["rate"] == refused


def test_an_own_minion_is_told_when_to_come_back() -> None:
    dispatcher = Dispatcher(requests_per_second=1)
    refusals = []
    for number in range(60):
        route, header = (b"%d" % number,), ClearHeader("", b"web1", patient=True)
        refusals += dispatcher.request(Side.MINION, route, "", b"x", 0.0, header=header, address="10.0.0.1")
    assert {type(one) for one in refusals} == {Refuse}
    assert "minion_requests_per_second" in refusals[0].why  # type: ignore[union-attr]


def test_a_stranger_with_the_id_of_a_minion_does_not_slow_it_down() -> None:
    """The id in the clear part is not proved."""
    dispatcher = Dispatcher(requests_per_second=10)
    flood(dispatcher, 20, 50)
    header = ClearHeader("", b"web1")
    (found,) = dispatcher.request(Side.MINION, (b"own",), "", b"x", 20.0, header=header, address="10.0.0.2")
    assert isinstance(found, Assign)


def test_a_request_that_waited_for_its_rate_is_served_later() -> None:
    dispatcher = Dispatcher(requests_per_second=10)
    flood(dispatcher, 20, 20)
    waited = dispatcher.waiting.count
    assert waited
    (first,) = dispatcher.tick(21.0)
    assert isinstance(first, Assign)
    assert dispatcher.waiting.count == waited - 1


# ------------------------------------------------------------------------------------------------------------- honest minions


def test_an_honest_minion_meets_no_limit(new_worker: NewWorker, tmp_path: Any) -> None:
    """With the defaults: a highstate of 5,000 states with an event for each, 200 kB of grains, a mine of 1 MB."""
    worker = new_worker(file_recv=True, cachedir=str(tmp_path / "cache"))
    minion = worker.minion()
    assert "_errors" not in minion.pillar(grains={f"g{number}": "x" * 90 for number in range(2000)})
    assert len(worker.store.cache.grains("web1") or {}) > 2000
    assert minion.ask("_mine", data={f"f{number}": "x" * 100 * KB for number in range(10)}) is True
    for number in range(5000):
        worker.context.request_bytes = 1500
        assert worker.context.quotas.may_fire("web1", 1500), number
    states = {f"test_|-s{number}_|-s{number}_|-nop": {"result": True, "comment": "x" * 300} for number in range(5000)}
    for _ in range(5):
        assert minion.ask("_return", jid="req", fun="state.highstate", retcode=0, **{"return": states}) is None
    for number in range(30):
        assert minion.ask("_file_recv", path=["logs", f"{number}"], loc=0, size=MB, data=b"x" * MB) is True
    assert refusals(worker) == {}


def test_requests_of_a_highstate_are_not_slowed_down() -> None:
    options = MasterOptions()
    dispatcher = Dispatcher(
        requests_per_second=options.minion_requests_per_second, bytes_per_second=options.minion_bytes_per_second
    )
    assert flood(dispatcher, 10, 900, b"x" * 2000) == (9000, 0, 0)


# --------------------------------------------------------------------------------------------------- what a refused minion gets


def test_too_large_grains_give_a_pillar_with_the_reason(master: Worker) -> None:
    minion = master.minion()
    minion.pillar(grains={"role": "shop"})
    pillar = minion.pillar(grains={"role": "x" * MB})
    assert "grains_max_bytes" in str(pillar["_errors"])
    assert (master.store.cache.grains("web1") or {})["role"] == "shop"
    assert "_errors" not in minion.pillar(grains={"role": "bank"})
    assert (master.store.cache.grains("web1") or {})["role"] == "bank"


def test_a_refused_mine_keeps_the_earlier_one(master: Worker) -> None:
    minion = master.minion()
    assert minion.ask("_mine", data={"f": 1}) is True
    assert minion.ask("_mine", data={"f": 2, "g": "x" * MB}, clear=True) is False
    assert master.store.cache.mine_of("web1") == {"f": 1}
    assert minion.ask("_mine", data={"g": 2}, clear=True) is True
    assert master.store.cache.mine_of("web1") == {"g": 2}


def test_a_refused_return_is_answered_so_that_nobody_repeats_it(master: Worker) -> None:
    """False is what a stock master answers to a return that it drops: no minion sends it again."""
    minion = master.minion()
    answers = [minion.ask("_return", jid=jid(number), fun="test.echo", **{"return": 1}) for number in range(21)]
    assert answers == [None] * 20 + [False]
    # What a job expects is stored all the same.
    load = {"jid": jid(99), "fun": "test.echo", "tgt": "*", "arg": [], "user": "root"}
    master.store.jobs.publish(load, ["web1"], request_id="r", ttl=600, now_ms=1)
    assert minion.ask("_return", jid=jid(99), fun="test.echo", **{"return": 1}) is None
    assert master.store.jobs.returns(jid(99))["web1"]["return"] == 1


def test_limits_can_be_switched_off(new_worker: NewWorker) -> None:
    worker = new_worker(**{name: 0 for name in SMALL if name not in ("peer", "file_recv")})
    minion = worker.minion()
    minion.pillar(grains={"x": "x" * 5 * MB})
    for number in range(100):
        assert minion.ask("_return", jid=jid(number), fun="test.echo", **{"return": 1}) is None
        minion.ask("_minion_event", tag="site/x", data={})
    assert minion.ask("_mine", data={"f": "x" * 9 * MB}) is True
    assert refusals(worker) == {}


def test_one_log_line_in_ten_minutes(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    quotas = Quotas(MasterOptions(), worker.context.metrics.quota_refusals, worker.context.log, lambda: now)
    with caplog.at_level(logging.WARNING):
        for _ in range(1000):
            quotas.refused(Quota.MINE, "web1", "a mine of 9 bytes, more than 8")
        assert len(caplog.records) == 1
        assert caplog.records[0].getMessage().endswith("(limit: mine_max_bytes of the master)")
        quotas.refused(Quota.MINE, "web2", "a mine")
        quotas.refused(Quota.GRAINS, "web1", "grains")
        assert len(caplog.records) == 3
        now = LOG_SECONDS + 1
        quotas.refused(Quota.MINE, "web1", "a mine")
        assert len(caplog.records) == 4
    assert refusals(worker) == {"mine": 1002, "grains": 1}


def test_each_limit_names_its_options() -> None:
    named = [name for options in QUOTA_OPTIONS.values() for name in options.split(", ")]
    assert set(QUOTA_OPTIONS) == set(Quota)
    assert all(hasattr(MasterOptions(), name) for name in named)
