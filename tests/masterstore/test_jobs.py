"""The job cache over a real Redis: publish once, first return wins, complete once, and nothing that stays for ever."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
import redis

from masterstore import keys, values
from masterstore.errors import JidTaken, StoreError, StoreUnavailable
from masterstore.events import BEGINNING
from masterstore.jobs import Job, Published, Recorded
from masterstore.life import Life, State
from masterstore.store import Store

pytestmark = pytest.mark.redis

JID, LATER, OTHER = "20260101000000000000", "20260101000001000000", "20260101000002000000"
#: Milliseconds of JID.
MADE = 1767225600000
TTL = 1000


def load(jid: str = JID, **fields: Any) -> dict[str, Any]:
    return {"jid": jid, "fun": "test.ping", "tgt": "*", "tgt_type": "glob", "arg": [], "user": "root"} | fields


def ret(minion: str, jid: str = JID, **fields: Any) -> dict[str, Any]:
    return {"jid": jid, "id": minion, "fun": "test.ping", "return": True, "retcode": 0, "success": True} | fields


def publish(
    store: Store, *minions: str, jid: str = JID, request_id: str = "r1", now_ms: int = MADE, **fields: Any
) -> Published:
    return store.jobs.publish(load(jid, **fields), minions, request_id=request_id, ttl=TTL, now_ms=now_ms)


# ------------------------------------------------------------------------------------------------------------------- publish


def test_a_published_job(store: Store, raw: redis.Redis) -> None:
    published = publish(store, "b", "a")
    assert (published.jid, published.created) == (JID, True)
    assert store.jobs.load(JID) == load()
    assert store.jobs.expected(JID) == store.jobs.missing(JID) == ["a", "b"]
    assert store.jobs.returns(JID) == {}
    assert store.jobs.meta(JID) == {
        "created": str(MADE), "expected": "2", "answered": "0", "returned": "0", "failed": "0",
        "user": "root", "fun": "test.ping", "tgt": "*", "bytes": str(len(values.dumps(load()))),
    }  # fmt: skip
    entry = {**load(), "expected": ["b", "a"], "replay_until": 0, "recorded_ms": MADE}
    assert store.publications.range_since(0) == [(published.stream_id, entry)]
    for key in (f"load:{JID}", f"salt:job:{JID}", f"salt:job:{JID}:minions"):
        assert TTL - 5 <= raw.ttl(key) <= TTL
    assert keys.REQUEST_TTL - 5 <= raw.ttl("salt:request:r1") <= keys.REQUEST_TTL


def test_the_same_request_is_answered_the_same(store: Store, second: Store) -> None:
    first = publish(store, "a")
    # Another worker gets it again, with a JID of its own: the first one counts.
    again = publish(second, "a", jid=LATER)
    assert again == Published(first.jid, first.stream_id, created=False)
    assert store.jobs.load(LATER) is None
    assert len(store.publications.range_since(0)) == 1


def test_a_jid_is_given_once(store: Store, second: Store) -> None:
    publish(store, "a", fun="test.one")
    with pytest.raises(JidTaken, match=JID):
        publish(second, "b", request_id="r2", fun="test.two")
    found = store.jobs.load(JID)
    assert found is not None
    assert found["fun"] == "test.one"
    assert store.jobs.expected(JID) == ["a"]
    assert len(store.publications.range_since(0)) == 1
    # The request that was refused may come again with another JID.
    assert publish(second, "b", request_id="r2", jid=LATER).created


def test_of_many_who_want_a_jid_one_gets_it(store: Store, redis_url: str) -> None:
    outcomes: list[Any] = []

    def work(number: int) -> None:
        own = Store.open(redis_url, timeout=5, client_name=f"worker{number}")
        try:
            outcomes.append(publish(own, "a", request_id=f"r{number}").created)
        except JidTaken:
            outcomes.append("taken")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(map(str, outcomes)) == ["True"] + ["taken"] * 7
    assert len(store.publications.range_since(0)) == 1


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2500])
def test_any_number_of_minions(store: Store, count: int) -> None:
    minions = [f"minion{number:05}" for number in range(count)]
    publish(store, *minions)
    assert store.jobs.expected(JID) == minions
    assert store.jobs.meta(JID)["expected"] == str(count)


def test_a_minion_named_twice_is_expected_once(store: Store) -> None:
    publish(store, "a", "a", "b")
    assert store.jobs.meta(JID)["expected"] == "2"
    store.jobs.record_return(ret("a"), ttl=TTL)
    assert store.jobs.record_return(ret("b"), ttl=TTL).complete
    assert store.jobs.active(0) == []


def test_a_load_of_every_kind_of_value(store: Store) -> None:
    publish(
        store, "a", fun=["test.ping", "cmd.run"], tgt=["a", "b"], arg=[[], [b"\xff", {"__kwarg__": True, "n": 2**70}]]
    )
    found = store.jobs.load(JID)
    assert found is not None
    assert found["arg"] == [[], [b"\xff", {"__kwarg__": True, "n": 2**70}]]
    assert store.jobs.meta(JID)["fun"] == "test.ping,cmd.run"
    assert store.jobs.meta(JID)["tgt"] == "a,b"


# ------------------------------------------------------------------------------------------------------------------- returns


def test_returns_until_the_job_is_complete(store: Store, raw: redis.Redis) -> None:
    publish(store, "a", "b")
    assert store.jobs.record_return(ret("a"), ttl=TTL) == Recorded(first=True, known_job=True, complete=False)
    assert store.jobs.missing(JID) == ["b"]
    assert [job.jid for job in store.jobs.active(0)] == [JID]
    assert "ended" not in store.jobs.meta(JID)
    assert store.jobs.record_return(ret("b", retcode=1, success=False), ttl=TTL, now_ms=MADE + 7) == Recorded(
        first=True, known_job=True, complete=True
    )
    meta = store.jobs.meta(JID)
    assert {name: meta[name] for name in ("answered", "returned", "failed", "ended")} == {
        "answered": "2", "returned": "2", "failed": "1", "ended": str(MADE + 7),
    }  # fmt: skip
    assert store.jobs.missing(JID) == []
    assert store.jobs.active(0) == []
    assert store.jobs.returns(JID) == {"a": ret("a"), "b": ret("b", retcode=1, success=False)}
    for key in (f"ret:{JID}", f"salt:job:{JID}", "a:test.ping", "b:test.ping"):
        assert TTL - 5 <= raw.ttl(key) <= TTL
    assert raw.get("a:test.ping") == JID.encode()
    assert raw.smembers("minions") == {b"a", b"b"}


def test_the_first_return_wins(store: Store, second: Store) -> None:
    publish(store, "a", "b")
    store.jobs.record_return(ret("a"), ttl=TTL)
    again = second.jobs.record_return(ret("a", retcode=1) | {"return": "other"}, ttl=TTL)
    assert again == Recorded(first=False, known_job=True, complete=False, differs=True)
    assert store.jobs.returns(JID) == {"a": ret("a")}
    # One whose acknowledgement was lost is sent again as it was.
    assert second.jobs.record_return(ret("a"), ttl=TTL) == Recorded(first=False, known_job=True, complete=False)
    meta = store.jobs.meta(JID)
    assert (meta["returned"], meta["duplicates"], meta["failed"]) == ("1", "2", "0")


def test_a_minion_that_nobody_expected_does_not_complete_a_job(store: Store) -> None:
    publish(store, "a", "b")
    store.jobs.record_return(ret("a"), ttl=TTL)
    assert store.jobs.record_return(ret("x"), ttl=TTL) == Recorded(first=True, known_job=True, complete=False)
    assert store.jobs.missing(JID) == ["b"]
    assert [job.jid for job in store.jobs.active(0)] == [JID]
    assert store.jobs.record_return(ret("b"), ttl=TTL).complete
    # Complete once: whoever comes later does not complete it again.
    assert not store.jobs.record_return(ret("y"), ttl=TTL).complete
    assert not store.jobs.record_return(ret("b"), ttl=TTL).complete
    assert set(store.jobs.returns(JID)) == {"a", "b", "x", "y"}
    assert store.jobs.meta(JID)["returned"] == "4"


def test_of_returns_at_one_time_one_completes(store: Store, redis_url: str) -> None:
    minions = [f"m{number}" for number in range(8)]
    publish(store, *minions)
    outcomes: list[Recorded] = []

    def work(minion: str) -> None:
        own = Store.open(redis_url, timeout=5, client_name=minion)
        outcomes.extend(own.jobs.record_return(ret(minion), ttl=TTL) for _ in range(3))

    threads = [threading.Thread(target=work, args=(minion,)) for minion in minions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sum(outcome.first for outcome in outcomes) == 8
    assert sum(outcome.complete for outcome in outcomes) == 1
    assert store.jobs.meta(JID)["duplicates"] == "16"


def test_a_return_for_a_job_that_is_not_known(store: Store, raw: redis.Redis) -> None:
    assert store.jobs.record_return(ret("a"), ttl=TTL) == Recorded(first=True, known_job=False, complete=False)
    assert store.jobs.load(JID) is None
    meta = {"returned": "1", "failed": "0", "bytes": str(len(values.dumps(ret("a"))))}
    assert store.jobs.job(JID) == Job(JID, {"jid": JID}, (), {"a": ret("a")}, meta)
    assert raw.zscore("salt:jobs", JID) == MADE
    for key in (f"ret:{JID}", f"salt:job:{JID}", "a:test.ping"):
        assert TTL - 5 <= raw.ttl(key) <= TTL


@pytest.mark.parametrize(
    ("fields", "failed"),
    [
        ({}, 0),
        ({"retcode": 1}, 1),
        ({"retcode": 2, "success": True}, 1),
        ({"success": False, "retcode": 0}, 1),
        ({"retcode": None}, 0),
        ({"retcode": {"a": 0, "b": 0}}, 0),
        ({"retcode": {"a": 0, "b": 1}}, 1),
        ({"retcode": {}}, 0),
        ({"retcode": "x"}, 1),
    ],
    ids=str,
)
def test_what_counts_as_failed(store: Store, fields: dict[str, Any], failed: int) -> None:
    store.jobs.record_return(ret("a", **fields), ttl=TTL)
    assert store.jobs.meta(JID)["failed"] == str(failed)


#: (minion, function) -> the key that Salt's returner writes, or none: the minion chooses both.
LAST: tuple[tuple[str, Any, str | None], ...] = (
    ("a", "test.ping", "a:test.ping"),
    ("a.b:c", "state.sls", "a.b:c:state.sls"),
    ("a", ["test.ping", "cmd.run"], "a:test.ping,cmd.run"),
    ("salt", "test.ping", "salt:test.ping"),
    ("salt", "keys:accepted", None),
    ("salt", "epochs", None),
    ("salt", "publications", None),
    ("salt:keys", "accepted", None),
    ("salt:mine", "network.ip_addrs", None),
    ("salt:job", OTHER, None),
    ("load", OTHER, None),
    ("ret", OTHER, None),
    ("load", "a.b", None),
    ("a", "", None),
    ("a", None, None),
    ("a", {"x": 1}, None),
    ("a", "x.y\nz", None),
)


@pytest.mark.parametrize(("minion", "fun", "key"), LAST, ids=[f"{row[0]} {row[1]!r}" for row in LAST])
def test_a_minion_writes_no_key_but_its_own(
    store: Store, raw: redis.Redis, minion: str, fun: Any, key: str | None
) -> None:
    store.minion_keys.store("a", "PEM", "accepted")
    store.epochs.current()
    store.cache.mine_set("a", {"network.ip_addrs": ["::1"]})
    publish(store, "a", jid=OTHER)
    store.jobs.record_return(ret("a", jid=OTHER), ttl=TTL)
    shared = {
        b"minions",
        b"salt:jobs",
        b"a:test.ping",
        b"salt:jobs:bytes",
        b"salt:idx:funs",
        b"salt:idx:minion:a",
    }
    shared |= {b"salt:idx:fun:test.ping"}
    before = {name: raw.dump(name) for name in raw.scan_iter("*") if name not in shared}
    assert store.jobs.record_return(ret(minion, fun=fun), ttl=TTL).first
    assert {name: raw.dump(name) for name in before} == before
    added = {name.decode() for name in raw.scan_iter("*")} - {name.decode() for name in before}
    added -= {name.decode() for name in shared} | {f"ret:{JID}", f"salt:job:{JID}", f"salt:idx:minion:{minion}"}
    added -= {f"salt:idx:fun:{name}" for name in (fun if isinstance(fun, list) else [fun])}
    assert added == ({key} - {"a:test.ping"} if key else set())
    if key:
        assert raw.get(key) == JID.encode()


def test_a_job_that_was_not_published(store: Store, raw: redis.Redis) -> None:
    store.jobs.store_external(JID, load(), ret("master", retcode=1), ttl=TTL)
    job = store.jobs.job(JID)
    assert job is not None
    ended = job.meta.pop("ended")
    assert 0 <= time.time() * 1000 - int(ended) < 60_000
    size = len(values.dumps(load())) + len(values.dumps(ret("master", retcode=1)))
    meta = {"created": str(MADE), "expected": "1", "answered": "1", "returned": "1", "failed": "1", "bytes": str(size)}
    assert job == Job(JID, load(), ("master",), {"master": ret("master", retcode=1)}, meta)
    assert store.jobs.life(JID) == {"master": Life(State.RETURNED, {State.EXPECTED: MADE, State.RETURNED: int(ended)})}
    assert not store.jobs.store_external(JID, load(), ret("master"), ttl=TTL)
    assert store.jobs.active(0) == []
    assert [job.jid for job in store.jobs.recent(5)] == [JID]
    for key in (f"load:{JID}", f"ret:{JID}", f"salt:job:{JID}", f"salt:job:{JID}:minions"):
        assert TTL - 5 <= raw.ttl(key) <= TTL
    assert store.publications.range_since(0) == []


# ------------------------------------------------------------------------------------------------------------------ questions


def test_nothing_is_known_of_an_unknown_job(store: Store) -> None:
    assert store.jobs.load(JID) is None
    assert store.jobs.job(JID) is None
    assert store.jobs.meta(JID) == {}
    assert store.jobs.returns(JID) == store.jobs.returns(JID, ["a"]) == store.jobs.returns(JID, []) == {}
    assert store.jobs.expected(JID) == store.jobs.missing(JID) == []
    assert store.jobs.recent(5) == store.jobs.active(0) == []
    assert store.jobs.expire(MADE) == 0


def test_returns_of_some_minions(store: Store) -> None:
    for minion in ("a", "b", "c"):
        store.jobs.record_return(ret(minion), ttl=TTL)
    assert store.jobs.returns(JID, ["a", "c", "x"]) == {"a": ret("a"), "c": ret("c")}
    assert store.jobs.returns(JID, []) == {}


def test_recent_and_active_jobs(store: Store) -> None:
    jids = [f"2026010100000{number}000000" for number in range(5)]
    for number, jid in enumerate(jids):
        publish(store, "a", jid=jid, request_id=jid, now_ms=1000 + number)
    newest_first = jids[::-1]
    assert [job.jid for job in store.jobs.recent(3)] == newest_first[:3]
    assert [job.jid for job in store.jobs.recent(10, before_ms=1002)] == [jids[1], jids[0]]
    assert store.jobs.recent(0) == []
    store.jobs.record_return(ret("a", jid=jids[3]), ttl=TTL)
    assert [job.jid for job in store.jobs.active(1001)] == [jids[4], jids[2], jids[1]]
    assert [job.jid for job in store.jobs.active(0, limit=3)] == [jids[4], jids[2]]
    job = store.jobs.recent(1)[0]
    assert (job.load, job.meta["expected"], job.returns) == (load(jids[4]), "1", {})


# ------------------------------------------------------------------------------------------- what goes with a return in one step


def kept_events(store: Store) -> list[bytes]:
    return [event.frame for event in store.events.read(BEGINNING, 1)[0]]


def test_the_first_return_has_its_event_and_no_other_one(store: Store, second: Store) -> None:
    publish(store, "a", "b")
    for client, event in ((store, b"first"), (second, b"again"), (store, b"and again")):
        client.jobs.record_return(ret("a"), ttl=TTL, event=event, events_kept=100)
    store.jobs.record_return(ret("b"), ttl=TTL)
    load_of = load(OTHER, fun="runner.test.ping")
    for event in (b"runner", b"twice"):
        store.runner_jobs.end(load_of, ret("master", OTHER), ttl=TTL, event=event, events_kept=100)
    assert kept_events(store) == [b"first", b"runner"]
    assert [event.number for event in store.events.read(BEGINNING, 1)[0]] == [1, 2]


@pytest.mark.parametrize(("key", "value"), [("salt:events", "a text"), ("salt:events:count", "many")])
def test_a_stream_that_is_none_costs_the_event_and_not_the_return(
    store: Store, raw: redis.Redis, key: str, value: str
) -> None:
    publish(store, "a")
    raw.set(key, value)
    assert store.jobs.record_return(ret("a"), ttl=TTL, event=b"event", events_kept=100).complete
    assert store.jobs.returns(JID) == {"a": ret("a")}
    assert list(store.faults.known) == [key]


def test_a_count_of_bytes_that_is_none_costs_nothing_else(store: Store, raw: redis.Redis) -> None:
    publish(store, "a")
    raw.hset("salt:jobs:bytes", str(MADE // 3_600_000), "many")
    assert store.jobs.record_return(ret("a"), ttl=TTL).complete
    assert store.jobs.meta(JID)["answered"] == "1"
    assert list(store.faults.known) == ["salt:jobs:bytes"]


def test_a_return_is_a_sign_of_presence_where_the_minion_itself_speaks(store: Store) -> None:
    publish(store, "a", "stock", "ours")
    publish(store, "stock", "ours", jid=LATER, request_id="r2", now_ms=MADE)
    until = MADE + 60_000
    store.jobs.publish(load(OTHER), ["stock", "ours"], request_id="r3", ttl=TTL, now_ms=MADE, when_back_until_ms=until)
    store.jobs.sign("ours", [], MADE)
    heard = [
        store.jobs.record_return(ret(name), ttl=TTL, now_ms=MADE + 9, heard=True) for name in ("a", "stock", "ours")
    ]
    # Ours asks for what waits for it.
    assert [one.waited_for for one in heard] == [False, True, False]
    assert store.presence.last_seen(["a", "stock", "ours"]) == {"a": MADE + 9, "stock": MADE + 9, "ours": MADE + 9}
    assert not store.jobs.record_return(ret("b", LATER), ttl=TTL, now_ms=MADE + 9).waited_for
    assert store.presence.last_seen(["b"]) == {}


# -------------------------------------------------------------------------------------------------------------------- expiry


def test_what_expired_is_gone_and_the_index_is_trimmed(store: Store, raw: redis.Redis) -> None:
    publish(store, "a", now_ms=MADE)
    publish(store, "a", jid=LATER, request_id="r2", now_ms=MADE + 100_000)
    store.jobs.record_return(ret("a"), ttl=TTL)
    for name in raw.scan_iter("*"):
        if raw.ttl(name) > 0 and JID.encode() in name:
            raw.pexpire(name, 0)
    assert store.jobs.job(JID) is None
    assert [job.jid for job in store.jobs.recent(5)] == [LATER]
    assert raw.zcard("salt:jobs") == 2
    assert store.jobs.expire(MADE + 86_400_000) == 1
    assert store.jobs.expire(MADE + 86_400_000) == 0
    assert raw.zrange("salt:jobs", 0, -1) == [LATER.encode()]
    assert store.jobs.expire(MADE + 100_000 + 5001, keep_seconds=5) == 1


def test_a_short_time_to_live_ends_by_itself(store: Store, raw: redis.Redis) -> None:
    store.jobs.publish(load(), ["a"], request_id="r", ttl=1, now_ms=MADE)
    assert 0 < raw.pttl(f"load:{JID}") <= 1000
    assert 0 < raw.pttl(f"salt:job:{JID}:minions") <= 1000


@pytest.mark.parametrize("ttl", [0, -1])
def test_a_time_to_live_of_nothing_is_refused_and_leaves_nothing(store: Store, raw: redis.Redis, ttl: int) -> None:
    with pytest.raises(StoreError, match="refused") as caught:
        store.jobs.publish(load(), ["a"], request_id="r", ttl=ttl, now_ms=MADE)
    assert not isinstance(caught.value, StoreUnavailable)
    assert list(raw.scan_iter("*")) == []


def test_the_stream_is_bounded(store: Store, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "PUBLICATIONS_KEPT", 200)
    raw.config_set("stream-node-max-entries", 50)
    try:
        for number in range(400):
            publish(store, "a", jid=f"20260101000000{number:06}", request_id=str(number))
        kept = store.publications.range_since(0, count=1000)
    finally:
        raw.config_set("stream-node-max-entries", 100)
    # About as many as were asked for (whole nodes are dropped), and the newest of them.
    assert 200 <= len(kept) <= 250
    assert kept[-1][1]["jid"] == "20260101000000000399"
