"""Copies of what minions told: they follow each change, by whoever made it, and survive a Redis that forgot."""

from __future__ import annotations

import time

import pytest
import redis

from masterstore import cached_hash
from masterstore.store import Store

pytestmark = pytest.mark.redis


def test_a_copy_follows_changes_and_reads_nothing_else(
    store: Store, second: Store, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    some = cached_hash.CachedHash.some

    def counted(self: object, minions: list[str]) -> dict[str, bytes]:
        read.extend(minions)
        return some(self, minions)  # type: ignore[arg-type]

    monkeypatch.setattr(cached_hash.CachedHash, "some", counted)
    for minion in ("a", "b"):
        store.cache.set_grains(minion, {"id": minion})
    assert second.cache.all_grains() == {"a": {"id": "a"}, "b": {"id": "b"}}
    read.clear()
    second.cache.all_grains()
    assert read == []
    store.cache.set_grains("a", {"id": "a"})
    second.cache.all_grains()
    assert read == [], "the same again is no change"
    store.cache.set_grains("a", {"id": "a", "os": "Debian"})
    assert second.cache.all_grains()["a"] == {"id": "a", "os": "Debian"}
    assert read == ["a"]
    store.cache.forget_grains("b")
    assert second.cache.all_grains() == {"a": {"id": "a", "os": "Debian"}}
    assert second.cache.all_pillars() == {}
    assert raw.exists("salt:pillar:version") == 0


def test_the_list_of_changes_has_an_end(
    store: Store, second: Store, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cached_hash, "_SPARE", 3)
    store.cache.set_grains("kept", {"n": 0})
    assert second.cache.all_grains() == {"kept": {"n": 0}}
    for number in range(10):
        store.cache.set_grains(f"gone{number}", {})
        store.cache.forget_grains(f"gone{number}")
    assert raw.zcard("salt:grains:changed") <= 4
    store.cache.set_grains("kept", {"n": 1})
    assert second.cache.all_grains() == {"kept": {"n": 1}}


def test_a_redis_that_forgot_is_read_anew(store: Store, second: Store, raw: redis.Redis) -> None:
    for minion in ("a", "b"):
        store.cache.set_grains(minion, {})
    assert sorted(second.cache.all_grains()) == ["a", "b"]
    raw.flushdb()
    store.cache.set_grains("c", {})
    assert sorted(second.cache.all_grains()) == ["c"]


def test_what_was_there_before_changes_were_counted_is_read(store: Store, raw: redis.Redis) -> None:
    raw.hset("salt:pillar", "old", b"sealed")
    assert store.cache.all_pillars() == {"old": b"sealed"}


def test_accepted_keys_are_read_anew_when_one_changed(store: Store, second: Store) -> None:
    assert second.minion_keys.accepted() == ()
    store.minion_keys.store("b", "PEM", "accepted")
    store.minion_keys.store("a", "PEM", "accepted")
    assert second.minion_keys.accepted() == ("a", "b")
    store.minion_keys.delete("b")
    assert second.minion_keys.accepted() == ("a",)


def test_a_copy_without_use_is_dropped_and_read_again(store: Store, second: Store) -> None:
    for minion in ("a", "b"):
        store.cache.set_grains(minion, {"id": minion})
    store.cache.set_pillar("a", b"sealed")
    assert second.cache.copied_bytes == 0
    grains, before = second.cache.all_grains(), time.monotonic()
    assert second.cache.all_pillars() == {"a": b"sealed"}
    size = second.cache.copied_bytes
    assert size > len(b"sealed")
    assert not second.cache.release_copies(before - 60.0), "used since"
    assert second.cache.release_copies(time.monotonic() + 1.0)
    assert second.cache.copied_bytes == 0
    assert not second.cache.release_copies(time.monotonic() + 1.0), "dropped already"
    assert grains == {"a": {"id": "a"}, "b": {"id": "b"}}, "whoever reads it goes on"
    store.cache.forget_grains("b")
    assert second.cache.all_grains() == {"a": {"id": "a"}}
    assert second.cache.copied_bytes < size
