"""Grains and mine: what minions told, as it was told."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import redis

from masterstore.store import Store

pytestmark = pytest.mark.redis

GRAINS: dict[Any, Any] = {"os": "Debian", "ips": ["::1"], "none": None, "raw": b"\xff", 5: 1.5, "deep": {"a": [True]}}


def test_grains_come_back(store: Store, second: Store) -> None:
    assert store.cache.grains("a") is None
    store.cache.set_grains("a", GRAINS)
    assert second.cache.grains("a") == GRAINS
    store.cache.set_grains("a", {"os": "Other"})
    assert store.cache.grains("a") == second.cache.grains("a") == {"os": "Other"}
    store.cache.set_grains("empty", {})
    assert store.cache.grains("empty") == {}


def test_grains_of_many(store: Store) -> None:
    for minion in ("a", "b"):
        store.cache.set_grains(minion, {"id": minion})
    assert store.cache.grains_of(["b", "x", "a"]) == {"b": {"id": "b"}, "a": {"id": "a"}}
    assert store.cache.grains_of([]) == {}


def test_grains_are_decoded_once(store: Store) -> None:
    store.cache.set_grains("a", GRAINS)
    assert store.cache.all_grains()["a"] is store.cache.all_grains()["a"]


def test_pillars_come_back_as_they_were_sealed(store: Store, second: Store) -> None:
    assert store.cache.pillars_of(["a"]) == {}
    store.cache.set_pillar("a", b"\xff\x00sealed")
    store.cache.set_pillar("b", b"")
    assert second.cache.pillars_of(["b", "x", "a"]) == {"b": b"", "a": b"\xff\x00sealed"}
    assert second.cache.pillars_of([]) == {}


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (2**70, str(2**70)),
        ({"x"}, "{'x'}"),
        (datetime(2020, 1, 2, tzinfo=UTC), "2020-01-02 00:00:00+00:00"),
        ("a\udcff\ud800", "a\udcff\ud800"),
    ],
    ids=["integer", "set", "time", "surrogate"],
)
def test_values_that_msgpack_does_not_know(store: Store, value: Any, kept: Any) -> None:
    store.cache.set_grains("a", {"v": value})
    assert store.cache.grains("a") == {"v": kept}
    store.cache.mine_set("a", {"f": value})
    assert store.cache.mine_get(["a"], "f") == {"a": kept}


def test_the_mine(store: Store, second: Store) -> None:
    store.cache.mine_set("a", {"network.ip_addrs": ["10.0.0.1"], "grains.item": None})
    store.cache.mine_set("b", {"network.ip_addrs": []})
    assert second.cache.mine_get(["a", "b", "x"], "network.ip_addrs") == {"a": ["10.0.0.1"], "b": []}
    # None was offered; that is not the same as nothing.
    assert second.cache.mine_get(["a", "b"], "grains.item") == {"a": None}
    assert second.cache.mine_get([], "grains.item") == {}
    assert second.cache.mine_get(iter(["a"]), "grains.item") == {"a": None}
    assert second.cache.mine_get(["a"], "unknown") == {}
    store.cache.mine_set("a", {})
    assert store.cache.mine_get(["a"], "grains.item") == {"a": None}


def test_functions_leave_the_mine(store: Store) -> None:
    store.cache.mine_set("a", {"f": 1, "g": 2})
    store.cache.mine_set("b", {"f": 3})
    assert store.cache.mine_delete("a", "f") is True
    assert store.cache.mine_delete("a", "f") is False
    assert store.cache.mine_delete("a", "unknown") is False
    assert store.cache.mine_get(["a", "b"], "f") == {"b": 3}
    assert store.cache.mine_get(["a"], "g") == {"a": 2}


def test_a_minion_leaves_the_mine(store: Store, raw: redis.Redis) -> None:
    store.cache.mine_set("a", {"f": 1, "g": 2})
    store.cache.mine_set("b", {"f": 3})
    store.cache.mine_flush("a")
    assert store.cache.mine_get(["a", "b"], "f") == {"b": 3}
    assert store.cache.mine_get(["a"], "g") == {}
    assert not raw.exists("salt:mine:g")
    store.cache.mine_flush("nobody")
    assert store.cache.mine_get(["b"], "f") == {"b": 3}


def test_functions_that_nobody_offers_are_forgotten(store: Store, raw: redis.Redis) -> None:
    """A minion chooses the names: what it takes back must not stay."""
    store.cache.mine_set("a", {f"f{number}": 1 for number in range(50)})
    store.cache.mine_set("b", {"f0": 1})
    store.cache.mine_flush("a")
    assert raw.smembers("salt:mine") == {b"f0"}
    assert store.cache.mine_delete("b", "f0")
    assert raw.smembers("salt:mine") == set()


def test_a_forgotten_minion_leaves_nothing_behind_and_others_stay(store: Store, raw: redis.Redis) -> None:
    for minion in ("a", "b"):
        store.cache.set_grains(minion, {"os": "Debian"})
        store.cache.set_pillar(minion, b"sealed")
        store.cache.mine_set(minion, {"f": 1})
        store.presence.seen(minion, 5)
    assert store.cache.grains("a") == {"os": "Debian"}
    store.cache.forget("a")
    store.presence.forget("a")
    assert store.cache.grains("a") is None
    assert store.cache.pillars_of(["a", "b"]) == {"b": b"sealed"}
    assert store.cache.mine_get(["a", "b"], "f") == {"b": 1}
    assert store.presence.last_seen(["a", "b"]) == {"b": 5}
    assert all(b"a" not in raw.hkeys(key) for key in raw.scan_iter("*", _type="hash"))


def test_a_minion_whose_connection_ended_is_absent_until_it_comes_back(store: Store) -> None:
    presence = store.presence
    for minion in ("a", "b", "c"):
        presence.seen(minion, 1000)
    presence.left("a", 1500)
    # It has spoken since its connection ended, over another one.
    presence.left("b", 999)
    presence.left("unknown", 1500)
    assert presence.present(0) == {"b", "c"}
    # When it was heard of last is still known.
    assert presence.last_seen(["a", "b", "unknown"]) == {"a": 1000, "b": 1000}
    presence.arrived("a", 2000)
    assert presence.present(1500) == {"a"}
    assert presence.last_seen(["a"]) == {"a": 2000}
    presence.left("a", 2500)
    presence.forget("a")
    assert presence.last_seen(["a"]) == {}


def test_a_connected_stock_minion_is_present_though_it_is_silent(store: Store, raw: redis.Redis) -> None:
    raw.sadd("salt:signers", "ours")
    for minion in ("ours", "stock"):
        store.presence.seen(minion, 1000)
    store.presence.connected(["ours", "stock"], 9000)
    # A minion of ours shows by itself that it lives: a process that hangs has connections, too.
    assert store.presence.present(5000) == {"stock"}
    store.presence.connected([], 9000)


def test_pillar_that_is_handed_out_ends_as_a_whole(store: Store, second: Store) -> None:
    assert store.cache.kept_pillar("a") == {}
    store.cache.keep_pillar("a", "base", b"\xff1", 60)
    store.cache.keep_pillar("a", "dev ", b"2", 6000)
    assert second.cache.kept_pillar("a") == {"base": b"\xff1", "dev ": b"2"}
    assert second.cache.kept_pillar("b") == {}
    store.cache.forget_pillar("a")
    assert second.cache.kept_pillar("a") == {}
