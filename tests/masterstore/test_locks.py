"""Locks: one owner at a time, a rising token, and an end."""

from __future__ import annotations

import threading

import pytest
import redis

from masterstore.store import Store

pytestmark = pytest.mark.redis

TTL = 60_000


def test_one_owner_at_a_time(store: Store, second: Store, raw: redis.Redis) -> None:
    assert store.locks.acquire("trim", "one", TTL) == 1
    assert second.locks.acquire("trim", "two", TTL) is None
    assert TTL - 5000 <= raw.pttl("salt:lock:trim") <= TTL
    assert second.locks.release("trim", "two") is False
    assert second.locks.acquire("trim", "two", TTL) is None
    assert store.locks.release("trim", "one") is True
    assert store.locks.release("trim", "one") is False
    assert second.locks.acquire("trim", "two", TTL) == 2


def test_asking_again_renews(store: Store, raw: redis.Redis) -> None:
    assert store.locks.acquire("trim", "one", 5_000) == 1
    assert store.locks.acquire("trim", "one", TTL) == 1
    assert 5_000 < raw.pttl("salt:lock:trim") <= TTL


def test_a_lock_ends_by_itself_and_the_next_token_is_higher(store: Store, second: Store, raw: redis.Redis) -> None:
    assert store.locks.acquire("trim", "one", TTL) == 1
    raw.pexpire("salt:lock:trim", 0)
    assert second.locks.acquire("trim", "two", TTL) == 2
    # The first owner, who slept, neither renews nor gives back what is another's.
    assert store.locks.acquire("trim", "one", TTL) is None
    assert store.locks.release("trim", "one") is False
    assert second.locks.acquire("trim", "two", TTL) == 2


def test_the_same_owner_after_the_end_gets_a_new_token(store: Store, raw: redis.Redis) -> None:
    assert store.locks.acquire("trim", "one", TTL) == 1
    raw.delete("salt:lock:trim")
    assert store.locks.acquire("trim", "one", TTL) == 2


def test_locks_do_not_know_each_other(store: Store) -> None:
    assert store.locks.acquire("a", "one", TTL) == 1
    assert store.locks.acquire("b", "two", TTL) == 1
    assert store.locks.release("c", "one") is False


@pytest.mark.parametrize("owner", ["", "host 1 2", "a b 3", "%d+", "ä", "one"])
def test_owners_of_every_name(store: Store, owner: str) -> None:
    assert store.locks.acquire("trim", owner, TTL) == 1
    for other in (owner + "x", owner + " 1", "host", "host 1", "a b"):
        assert store.locks.acquire("trim", other, TTL) is None
        assert store.locks.release("trim", other) is False
    assert store.locks.acquire("trim", owner, TTL) == 1
    assert store.locks.release("trim", owner) is True


def test_of_many_one_gets_it(redis_url: str) -> None:
    tokens: list[int | None] = []

    def work(number: int) -> None:
        own = Store.open(redis_url, timeout=5, client_name=str(number))
        tokens.append(own.locks.acquire("trim", f"owner{number}", TTL))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(tokens, key=str) == [1] + [None] * 7
