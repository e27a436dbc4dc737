"""The bytes of the job cache, over a real Redis: counted to the byte, and held below a budget."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
import redis

from masterstore import job_scripts, keys, values
from masterstore.errors import StoreError
from masterstore.job_budget import Evicted
from masterstore.lives import jid_ms
from masterstore.store import Store

pytestmark = pytest.mark.redis

TTL = 1000
HOUR = 3_600_000


def jid_of(number: int) -> str:
    return f"20260101{number // 60:02}{number % 60:02}00000000"


def make(store: Store, number: int, *minions: str, answer: bool = True, size: int = 100) -> int:
    """A job a minute, with its returns; the bytes of it."""
    jid = jid_of(number)
    load = {"jid": jid, "fun": "test.ping", "tgt": "*", "user": "root"}
    store.jobs.publish(load, minions, request_id=jid, ttl=TTL, now_ms=jid_ms(jid))
    total = len(values.dumps(load))
    for minion in minions if answer else ():
        ret: dict[str, Any] = {"jid": jid, "id": minion, "fun": "test.ping", "return": "x" * size, "retcode": 0}
        store.jobs.record_return(ret, ttl=TTL, now_ms=jid_ms(jid) + 1)
        total += len(values.dumps(ret))
    return total


def test_bytes_are_counted_by_the_hour(store: Store, raw: redis.Redis) -> None:
    sizes = [make(store, number, "a", "b") for number in (0, 30, 60)]
    first = jid_ms(jid_of(0)) // HOUR
    counted = {int(hour): int(size) for hour, size in raw.hgetall(keys.JOB_BYTES).items()}
    assert counted == {first: sizes[0] + sizes[1], first + 1: sizes[2]}
    assert store.job_budget.bytes() == sum(sizes)
    # A duplicate is not kept, and does not count.
    store.jobs.record_return({"jid": jid_of(0), "id": "a", "fun": "test.ping", "return": 1}, ttl=TTL)
    assert store.job_budget.bytes() == sum(sizes)


def test_an_hour_is_forgotten_when_its_jobs_are_gone(store: Store) -> None:
    make(store, 0, "a")
    size = make(store, 60, "a")
    end = jid_ms(jid_of(59)) + 60_000
    assert store.job_budget.forget(end + 999_000, TTL) == 0
    assert store.job_budget.forget(end + 1000_000, TTL) == 1
    assert store.job_budget.bytes() == size


def test_the_oldest_go_first_and_nothing_of_them_stays(store: Store, raw: redis.Redis) -> None:
    before = set(raw.scan_iter("*"))
    make(store, 0, *(f"m{number}" for number in range(job_scripts.WIDE + 1)))
    make(store, 1, "a", "b")
    kept = make(store, 2, "a")
    above = store.job_budget.bytes() - kept
    evicted = store.job_budget.evict(kept)
    assert evicted == Evicted(2, above)
    assert store.job_budget.bytes() == kept
    assert store.jobs.job(jid_of(0)) is store.jobs.job(jid_of(1)) is None
    assert store.jobs.job(jid_of(2)) is not None
    # Not a key or an entry speaks of them, but what the answer to a request and Salt's own say.
    for name in set(raw.scan_iter("*")) - before:
        kind = raw.type(name)
        if kind == b"zset" and name != b"salt:seen":
            assert {jid_of(0).encode(), jid_of(1).encode()}.isdisjoint(raw.zrange(name, 0, -1)), name
        assert not any(jid_of(number).encode() in name for number in (0, 1) if not name.startswith(b"salt:request")), (
            name
        )
    assert store.job_budget.evict(kept) == Evicted(0, 0)


def test_jobs_that_somebody_is_waited_for_stay(store: Store) -> None:
    make(store, 0, "a", answer=False)
    make(store, 1, "a")
    make(store, 2, "a", answer=False)
    assert store.job_budget.evict(1).jobs == 1
    assert [job.jid for job in store.jobs.recent(9)] == [jid_of(2), jid_of(0)]
    assert store.job_budget.evict(1) == Evicted(0, 0)


def test_a_count_that_another_hand_spoiled_is_stepped_over(store: Store, raw: redis.Redis) -> None:
    size = make(store, 0, "a")
    raw.hset(keys.JOB_BYTES, "soon", "many")
    assert store.job_budget.bytes() == size
    assert keys.JOB_BYTES in store.faults.known


# -------------------------------------------------------------------------------------------------------------- large returns

JID = jid_of(0)
BIG = {"jid": JID, "id": "a", "fun": "test.ping", "return": "y" * 50_000, "retcode": 2, "success": False}


def test_a_large_return_lies_compressed_beside_salts_key(store: Store, raw: redis.Redis, redis_url: str) -> None:
    store.jobs.publish({"jid": JID, "fun": "test.ping"}, ["a", "b"], request_id="r", ttl=TTL, now_ms=jid_ms(JID))
    recorded = store.jobs.record_return(BIG, ttl=TTL, compress_above=10_000)
    assert recorded.first
    small = {"jid": JID, "id": "b", "fun": "test.ping", "return": "y", "retcode": 0}
    store.jobs.record_return(small, ttl=TTL, compress_above=10_000)
    said = values.loads_map(raw.hget(keys.ret(JID), "a"), "ret")
    size = len(values.dumps(BIG))
    where = f"salt:large:{{{JID}}}" if "+cluster" in redis_url else f"salt:large:{JID}"
    assert said == BIG | {"return": f"{size} bytes, compressed in {where}", "__large__": size}
    assert raw.hstrlen(keys.large(JID), "a") < 1000
    assert TTL - 5 <= raw.ttl(keys.large(JID)) <= TTL
    assert store.jobs.returns(JID) == {"a": BIG, "b": small}
    job = store.jobs.job(JID)
    assert job is not None
    assert job.returns == {"a": BIG, "b": small}
    assert store.jobs.meta(JID)["failed"] == "1"
    # Its bytes count as they are kept, and go with the job.
    assert store.job_budget.bytes() < 2000
    assert store.job_budget.evict(1).jobs == 1
    assert not raw.exists(keys.large(JID))
    assert not raw.exists(keys.ret(JID))


def test_a_large_return_is_stored_whole_or_not_at_all(store: Store, raw: redis.Redis) -> None:
    raw.lpush(keys.large(JID), "x")
    with pytest.raises(StoreError, match="WRONGTYPE"):
        store.jobs.record_return(BIG, ttl=TTL, compress_above=10)
    assert store.jobs.returns(JID) == {}


@pytest.mark.parametrize(
    "data", [b"", b"nothing", zlib.compress(b"{"), zlib.compress(b"[]"), zlib.compress(b"{}" * 99)[:-5]]
)
def test_a_large_return_that_cannot_be_read_is_a_fault(store: Store, raw: redis.Redis, data: bytes) -> None:
    store.jobs.record_return(BIG, ttl=TTL, compress_above=10)
    raw.hset(keys.large(JID), "a", data)
    # What Salt's key says of it is left.
    assert store.jobs.returns(JID)["a"]["retcode"] == 2
    assert list(store.faults.known) == [keys.large(JID)]


def test_a_minion_that_says_its_return_is_elsewhere_is_taken_at_its_word(store: Store) -> None:
    store.jobs.record_return({**BIG, "return": 1, "__large__": 5}, ttl=TTL)
    assert store.jobs.returns(JID)["a"]["return"] == 1
    assert store.faults.total == 0


def test_what_has_ended_goes_whatever_is_older_and_runs(store: Store, raw: redis.Redis) -> None:
    make(store, 0, "a", answer=False)
    for number in (1, 2, 3):
        make(store, number, "a")
    dropped = store.job_budget.drop_ended(jid_ms(jid_of(3)))
    assert dropped.jobs == 2
    assert [job.jid for job in store.jobs.recent(9)] == [jid_of(3), jid_of(0)]
    assert store.job_budget.drop_ended(jid_ms(jid_of(3))).jobs == 0
