"""When minions were last heard of."""

from __future__ import annotations

import pytest

from masterstore.store import Store

pytestmark = pytest.mark.redis

NOW = 1_800_000_000_000


def test_nobody_was_seen(store: Store) -> None:
    assert store.presence.last_seen(["a"]) == {}
    assert store.presence.last_seen([]) == {}
    assert store.presence.present(0) == set()


def test_who_was_seen_when(store: Store, second: Store) -> None:
    store.presence.seen("a", NOW)
    second.presence.seen("b", NOW + 5)
    assert store.presence.last_seen(["b", "a", "x"]) == {"b": NOW + 5, "a": NOW}
    assert store.presence.present(NOW) == {"a", "b"}
    assert store.presence.present(NOW + 1) == {"b"}
    assert store.presence.present(NOW + 6) == set()


def test_a_worker_whose_clock_is_behind_does_not_set_it_back(store: Store, second: Store) -> None:
    store.presence.seen("a", NOW)
    second.presence.seen("a", NOW - 1000)
    assert store.presence.last_seen(["a"]) == {"a": NOW}


def test_who_arrives_hears_whether_jobs_wait(store: Store) -> None:
    load = {"jid": "20260101000000000000", "fun": "test.ping", "arg": [], "tgt": "*", "tgt_type": "glob"}
    assert not store.presence.arrived("stock", 5)
    assert store.presence.last_seen(["stock"]) == {"stock": 5}
    store.jobs.missed("ours", 0, 1)
    store.jobs.publish(load, ["stock", "ours"], request_id="r", ttl=60, now_ms=1, when_back_until_ms=10_000)
    assert [store.presence.arrived(minion, 6) for minion in ("stock", "ours", "other")] == [True, False, False]
