"""Epochs: numbers that all clients agree on."""

from __future__ import annotations

import threading

import pytest
import redis

from masterstore.epochs import Epochs
from masterstore.store import Store

pytestmark = pytest.mark.redis


def redis_time(raw: redis.Redis) -> float:
    seconds, microseconds = raw.time()
    return float(seconds) + float(microseconds) / 1e6


def test_the_first_epochs(store: Store, second: Store, raw: redis.Redis) -> None:
    before = redis_time(raw)
    first = store.epochs.current()
    assert (first.aes, first.session) == (1, 1)
    assert before - 1 <= first.aes_since == first.session_since <= redis_time(raw)
    assert second.epochs.current() == store.epochs.current() == first


def test_rotations_are_seen_by_everybody(store: Store, second: Store) -> None:
    first = store.epochs.current()
    assert store.epochs.rotate_aes() == 2
    assert second.epochs.rotate_aes() == 3
    assert second.epochs.rotate_session() == 2
    current = store.epochs.current()
    assert (current.aes, current.session) == (3, 2)
    assert current == second.epochs.current()
    assert current.aes_since >= first.aes_since


def test_one_kind_of_epoch_leaves_the_other_alone(store: Store, raw: redis.Redis) -> None:
    raw.hset("salt:epochs", mapping={"aes": 5, "aes_since": 100, "session": 7, "session_since": 200})
    assert store.epochs.current() == Epochs(5, 100.0, 7, 200.0)
    assert store.epochs.rotate_session() == 8
    current = store.epochs.current()
    assert (current.aes, current.aes_since, current.session) == (5, 100.0, 8)
    assert current.session_since >= redis_time(raw) - 60


@pytest.mark.parametrize("verb", ["rotate_aes", "rotate_session"])
def test_a_rotation_before_the_first_question_is_a_second_epoch(store: Store, verb: str) -> None:
    # Whoever derived a key from epoch 1 before Redis was emptied must not meet it again.
    assert getattr(store.epochs, verb)() == 2
    current = store.epochs.current()
    assert {current.aes, current.session} == {1, 2}


def test_no_rotation_is_lost(store: Store, redis_url: str) -> None:
    numbers: list[int] = []

    def work() -> None:
        own = Store.open(redis_url, timeout=5, client_name="w")
        numbers.extend(own.epochs.rotate_aes() for _ in range(10))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(numbers) == list(range(2, 42))
    assert store.epochs.current().aes == 41
