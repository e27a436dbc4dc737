"""Which requests of a minion are new, and what is recorded with a new one in the same step."""

from __future__ import annotations

import time

import pytest

from masterstore.replays import Verdict
from masterstore.store import Store

pytestmark = pytest.mark.redis

WINDOW = 300


def nonce(number: int) -> str:
    return f"{number:032x}"


def test_a_nonce_is_new_once_for_each_minion(store: Store, second: Store) -> None:
    now = int(time.time())
    assert store.replays.admit("a", nonce(1), now, window=WINDOW).verdict is Verdict.NEW
    assert second.replays.admit("a", nonce(1), now, window=WINDOW).verdict is Verdict.REPEATED
    assert second.replays.admit("b", nonce(1), now, window=WINDOW).verdict is Verdict.NEW


def test_a_request_may_be_so_much_older_than_the_last_new_one(store: Store) -> None:
    now = int(time.time()) - 10_000
    assert store.replays.admit("a", nonce(1), now, window=WINDOW).verdict is Verdict.NEW
    assert store.replays.admit("a", nonce(2), now - WINDOW + 5, window=WINDOW).verdict is Verdict.NEW
    admission = store.replays.admit("a", nonce(3), now - 2 * WINDOW - 5, window=WINDOW)
    assert admission.verdict is Verdict.OLD
    assert admission.late > WINDOW


def test_presence_is_recorded_with_a_new_request_alone(store: Store) -> None:
    now = int(time.time())
    load = {"jid": "20260101000000000000", "fun": "test.ping", "arg": [], "tgt": "*", "tgt_type": "glob"}
    assert store.replays.admit("a", nonce(1), now, window=WINDOW).waits is None
    assert store.presence.last_seen(["a"]) == {}
    assert store.replays.admit("a", nonce(2), now, window=WINDOW, seen_ms=5).waits is False
    assert store.presence.last_seen(["a"]) == {"a": 5}
    store.jobs.publish(load, ["a"], request_id="r", ttl=60, now_ms=1, when_back_until_ms=10_000)
    assert store.replays.admit("a", nonce(3), now, window=WINDOW, seen_ms=6).waits is True
    repeated = store.replays.admit("a", nonce(3), now, window=WINDOW, seen_ms=7)
    assert (repeated.verdict, repeated.waits) == (Verdict.REPEATED, None)
    # Without a nonce nothing shows that a request is new.
    assert store.replays.admit("a", None, now, window=WINDOW, seen_ms=8).waits is None
    assert store.presence.last_seen(["a"]) == {"a": 6}
