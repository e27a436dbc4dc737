"""Attack: somebody writes to Redis, and wants minions to run a job that no operator published.

The attacker reads all that Redis holds and writes what it likes; the attacker does not have the master's secret.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import msgpack
import pytest
import redis

from masterstore import keys
from masterstore.errors import StoreCorrupt
from masterstore.record_mac import LOAD, PUBLICATION, Records, load_record
from masterstore.store import Store
from saltern.kit.keys.master_keys import record_mac
from saltern.mworker.pillar_seal import PillarSeal
from saltern.mworker.runners import job_queries
from saltern.publisher.main import age_fault

pytestmark = pytest.mark.redis

JID = "20260101000000000000"
NOW = int(time.time() * 1000)
EVIL = {"jid": JID, "fun": "cmd.run", "arg": ["id"], "tgt": "*", "tgt_type": "glob", "user": "root", "recorded_ms": NOW}
MAC = record_mac(b"m" * 32)

Fields = dict[bytes, bytes]


@pytest.fixture
def raw(redis_url: str) -> redis.Redis:
    return redis.Redis.from_url(redis_url)


@pytest.fixture
def store(redis_url: str) -> Store:
    return Store.open(redis_url, timeout=5.0, client_name="test", records=Records(MAC))


def _publish(store: Store, *, jid: str = JID, replay_until_ms: int = 0, when_back_until_ms: int = 0) -> None:
    store.jobs.publish(
        {"jid": jid, "fun": "test.ping", "arg": [], "tgt": "web1", "tgt_type": "glob", "user": "ann"},
        ["web1"],
        request_id=jid,
        ttl=1000,
        now_ms=NOW,
        offline=["web1"],
        replay_until_ms=replay_until_ms,
        when_back_until_ms=when_back_until_ms,
    )


def _changed(fields: Fields, **values: object) -> Fields:
    return {**fields, b"load": json.dumps({**json.loads(fields[b"load"]), **values}).encode()}


#: Attack -> what the attacker makes of the fields of a signed entry of the stream.
FORGERIES: Mapping[str, Callable[[Fields], Fields]] = {
    "no code": lambda fields: {b"load": json.dumps(EVIL).encode()},
    "an empty code": lambda fields: {b"load": json.dumps(EVIL).encode(), b"mac": b""},
    "the code of another entry": lambda fields: {b"load": json.dumps(EVIL).encode(), b"mac": fields[b"mac"]},
    "the beginning of a code": lambda fields: {**fields, b"mac": fields[b"mac"][:-1]},
    "a code and more": lambda fields: {**fields, b"mac": fields[b"mac"] + b"0"},
    "another function": lambda fields: _changed(fields, fun="cmd.run"),
    "another argument": lambda fields: _changed(fields, arg=["id"]),
    "another target": lambda fields: _changed(fields, tgt="*"),
    "other expected minions": lambda fields: _changed(fields, expected=["db1"]),
    "another JID": lambda fields: _changed(fields, jid="20260101000000000001"),
    "another user": lambda fields: _changed(fields, user="root"),
    "another time": lambda fields: _changed(fields, recorded_ms=NOW + 1),
    "one more key": lambda fields: _changed(fields, ret="redis"),
    "white space": lambda fields: {**fields, b"load": fields[b"load"] + b" "},
    "the code of a load": lambda fields: {
        **fields,
        b"load": load_record(JID, b"{}", 0, 0),
        b"mac": MAC(LOAD, load_record(JID, b"{}", 0, 0)),
    },
    "the code by a key of zeros": lambda fields: {
        b"load": json.dumps(EVIL).encode(),
        b"mac": record_mac(bytes(32))(PUBLICATION, json.dumps(EVIL).encode()),
    },
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_publication_is_not_signed(name: str, store: Store, raw: redis.Redis) -> None:
    _publish(store)
    ((own_id, fields),) = raw.xrange(keys.PUBLICATIONS)
    raw.xadd(keys.PUBLICATIONS, FORGERIES[name](fields))
    own, forged = store.publications.follow("0-0", 100)
    assert own[0] == own_id.decode()
    assert own[1]["fun"] == "test.ping"  # type: ignore[index]
    assert isinstance(forged[1], StoreCorrupt)


@pytest.mark.parametrize("hours", [1, 24, 24 * 365])
def test_an_old_publication_is_not_sent_again(hours: int, store: Store, raw: redis.Redis) -> None:
    """Its code is right; the stream gives it a new serial, and minions have forgotten its JID."""
    _publish(store)
    ((_, fields),) = raw.xrange(keys.PUBLICATIONS)
    load = json.loads(fields[b"load"])
    entered = load["recorded_ms"] + hours * 3_600_000
    assert "an old entry was written again" in age_fault(f"{entered}-0", load["recorded_ms"], entered, 300)
    # The attacker may also delete the stream, write the entry with its old id, and set the cursors back.
    assert "longer than replay_window" in age_fault(f"{load['recorded_ms']}-0", load["recorded_ms"], entered, 300)
    assert age_fault(f"{load['recorded_ms'] + 2000}-0", load["recorded_ms"], load["recorded_ms"] + 2500, 300) == ""


def _waiting(store: Store) -> list[dict[str, Any]]:
    return [*store.jobs.waiting("web1", NOW + 5), *store.jobs.missed("web1", 0, NOW + 5)]


#: Attack -> what the attacker does to the records of a job that web1 has not received.
CHANGES: Mapping[str, Callable[[redis.Redis], object]] = {
    "another load": lambda raw: raw.set(keys.load(JID), json.dumps(EVIL)),
    "a load without a code": lambda raw: (raw.set(keys.load(JID), json.dumps(EVIL)), raw.hdel(keys.job(JID), "mac")),
    "a longer replay": lambda raw: raw.hset(keys.job(JID), "replay_until", NOW + 10**12),
    "a longer wait": lambda raw: raw.hset(keys.job(JID), "when_back_until", NOW + 10**12),
    "the load of another job": lambda raw: raw.set(keys.load(JID), raw.get(keys.load("20260101000000000009")) or b""),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_job_is_not_handed_to_a_minion_that_missed_it(name: str, store: Store, raw: redis.Redis) -> None:
    _publish(store, jid="20260101000000000009")
    _publish(store, replay_until_ms=NOW + 60_000, when_back_until_ms=NOW + 90_000)
    assert [load["fun"] for load in _waiting(store)] == ["test.ping", "test.ping"]
    CHANGES[name](raw)
    assert _waiting(store) == []
    assert store.faults.total > 0


#: Attack -> what the attacker does to the records of a job that an operator then publishes again (jobs.rerun).
RERUNS: Mapping[str, Callable[[redis.Redis], object]] = {
    **CHANGES,
    "the job of a minion, as one of an operator": lambda raw: (
        raw.set(keys.load(JID), raw.get(keys.load(OWN)) or b""),
        raw.hset(keys.job(JID), "mac", raw.hget(keys.job(OWN), "mac") or b""),
    ),
}
OWN = "20260101000000000005"


@pytest.mark.parametrize("name", RERUNS)
def test_a_changed_job_is_not_published_again(name: str, store: Store, raw: redis.Redis) -> None:
    _publish(store, jid="20260101000000000009")
    _publish(store)
    own = {"jid": OWN, "fun": "cmd.run", "arg": ["id"], "tgt": "web1", "user": "web1"}
    store.jobs.store_external(OWN, own, {"jid": OWN, "id": "web1", "return": 1})
    assert store.jobs.check_load(JID)
    RERUNS[name](raw)
    with pytest.raises(StoreCorrupt, match=f"load:{JID}"):
        store.jobs.check_load(JID)


def test_the_job_of_a_minion_is_not_published_to_others(worker: Any) -> None:
    """A minion chose the function of its own job; the attacker says that others are expected to run it, too."""
    worker.accept("web1", "db1")
    own = {"jid": OWN, "fun": "cmd.run", "arg": ["id"], "tgt": "web1", "user": "web1"}
    worker.store.jobs.store_external(OWN, own, {"jid": OWN, "id": "web1", "return": 1})
    with worker.store._client.calling() as server:
        server.sadd(keys.job_minions(OWN), "db1")
        server.hset(keys.life(OWN), "db1", "")
    asked: list[Any] = []
    answer = {"jid": "1", "minions": [], "missing": []}
    control = SimpleNamespace(call=lambda cmd, **fields: (asked.append(fields["tgt"]), answer)[1])
    tools = SimpleNamespace(store=worker.store, options=worker.context.options, user="ann", control=control)
    job_queries.rerun(tools, OWN, all=True)  # type: ignore[arg-type]
    assert asked == [["web1"]]


#: Attack -> (what the attacker makes of the pillars in the cache, given those of web1 and db1; environments).
PILLARS: Mapping[str, Callable[[dict[str, bytes], dict[str, bytes]], dict[str, bytes]]] = {
    "the pillar of another minion": lambda own, other: other,
    "the pillar of other environments": lambda own, other: {"base ": own["prod "]},
    "no ciphertext": lambda own, other: {"base ": b"x" * 96},
}


@pytest.mark.parametrize("name", PILLARS)
def test_a_minion_gets_no_other_pillar_from_the_cache(name: str, worker: Any, raw: redis.Redis) -> None:
    for minion, environments in (("web1", "base "), ("web1", "prod "), ("db1", "base ")):
        worker.context.cache_pillar(minion, environments, {"secret": f"{minion} {environments}"})
    assert worker.context.cached_pillar("web1", "base ") == {"secret": "web1 base "}
    own, other = (worker.store.cache.kept_pillar(minion) for minion in ("web1", "db1"))
    raw.hset(keys.pillar_cache("web1"), mapping=PILLARS[name](own, other))  # type: ignore[arg-type]
    assert worker.context.cached_pillar("web1", "base ") is None


#: Attack -> what the attacker makes of db1's mine data, given the bytes of web1's data and of db1's own for another function.
MINES: Mapping[str, Callable[[bytes, bytes], bytes]] = {
    "plain data": lambda other, own: msgpack.packb(["6.6.6.6"]),
    "an empty code": lambda other, own: msgpack.packb(msgpack.ExtType(77, msgpack.packb(["6.6.6.6"]))),
    "the code of another minion": lambda other, own: other,
    "the code of another function": lambda other, own: own,
    "changed data": lambda other, own: other.replace(b"10.0.0.1", b"6.6.6.66"),
    "another extension": lambda other, own: msgpack.packb(msgpack.ExtType(78, b"x")),
}


@pytest.mark.parametrize("name", MINES)
def test_forged_mine_data_is_not_given_to_minions(name: str, store: Store, raw: redis.Redis) -> None:
    store.cache.mine_set("web1", {"network.ip_addrs": ["10.0.0.1"]})
    store.cache.mine_set("db1", {"network.ip_addrs": ["10.0.0.2"], "other": ["x"]})
    where = keys.mine("network.ip_addrs")
    forged = MINES[name](raw.hget(where, "web1") or b"", raw.hget(keys.mine("other"), "db1") or b"")
    raw.hset(where, "db1", forged)
    assert store.cache.mine_get(["web1", "db1"], "network.ip_addrs") == {"web1": ["10.0.0.1"]}
    assert store.faults.total == 1


@pytest.mark.ordinary
def test_mine_data_of_release_0_1_can_be_accepted(redis_url: str, store: Store) -> None:
    Store.open(redis_url, timeout=5.0, client_name="old").cache.mine_set("web1", {"a": [1]})
    assert store.cache.mine_get(["web1"], "a") == {}
    upgrading = Store.open(redis_url, timeout=5.0, client_name="new", records=Records(MAC, accept_unsigned=True))
    assert upgrading.cache.mine_get(["web1"], "a") == {"web1": [1]}


@pytest.mark.parametrize("hours", [2, 24 * 365])
def test_an_old_pillar_is_not_sent_from_the_cache(hours: int) -> None:
    old = PillarSeal(b"m" * 32, clock=lambda: 1e9).seal("web1", {"password": "old"}, "base ")
    now = PillarSeal(b"m" * 32, clock=lambda: 1e9 + hours * 3600)
    assert now.open("web1", old, "base ", 3600) is None
    assert now.open("web1", old, "base ") == {"password": "old"}


def test_the_pillar_of_another_minion_does_not_match_a_target(worker: Any) -> None:
    worker.context.keep_pillar("db1", {"secret": "sesame"})
    worker.store.cache.set_pillar("web1", worker.store.cache.pillars_of(["db1"])["db1"])
    assert worker.context.pillars() == {"db1": {"secret": "sesame"}}


@pytest.mark.ordinary
def test_pillar_of_release_0_1_can_be_accepted() -> None:
    crypticle = PillarSeal(b"m" * 32)._crypticle
    old = crypticle.dumps({"role": "web"})
    assert PillarSeal(b"m" * 32).open("web1", old) is None
    assert PillarSeal(b"m" * 32, accept_unbound=True).open("web1", old) == {"role": "web"}


@pytest.mark.ordinary
def test_a_job_that_waited_is_published_with_a_code(store: Store) -> None:
    _publish(store, when_back_until_ms=NOW + 60_000)
    (load,) = store.jobs.waiting("web1", NOW + 5)
    assert store.jobs.resend("web1", load, NOW + 5)
    assert [load["tgt"] for _, load in store.publications.follow("0-0", 100)] == ["web1", ["web1"]]  # type: ignore[index]


@pytest.mark.ordinary
def test_a_release_that_signs_nothing_can_be_accepted(redis_url: str, store: Store, raw: redis.Redis) -> None:
    old = Store.open(redis_url, timeout=5.0, client_name="old")
    _publish(old)
    upgrading = Store.open(redis_url, timeout=5.0, client_name="new", records=Records(MAC, accept_unsigned=True))
    ((_, taken),) = upgrading.publications.follow("0-0", 100)
    assert taken["fun"] == "test.ping"  # type: ignore[index]
    ((_, refused),) = store.publications.follow("0-0", 100)
    assert isinstance(refused, StoreCorrupt)
    assert "accept_unsigned_records" in str(refused)
    raw.xadd(keys.PUBLICATIONS, {b"load": json.dumps(EVIL), b"mac": "0" * 64})
    (_, (_, forged)) = upgrading.publications.follow("0-0", 100)
    assert isinstance(forged, StoreCorrupt)


@pytest.mark.ordinary
def test_the_code_of_a_worker_is_that_of_every_publisher() -> None:
    assert MAC(PUBLICATION, b"x") == record_mac(b"m" * 32)(PUBLICATION, b"x")
    assert (
        len({MAC(PUBLICATION, b"x"), MAC(LOAD, b"x"), MAC(PUBLICATION, b"y"), record_mac(b"n" * 32)(PUBLICATION, b"x")})
        == 4
    )
