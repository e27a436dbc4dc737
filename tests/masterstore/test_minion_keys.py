"""Minion keys: one state each, and what other workers changed is seen soon."""

from __future__ import annotations

import itertools

import pytest
import redis

from masterstore import minion_keys
from masterstore.minion_keys import STATES
from masterstore.store import Store

pytestmark = pytest.mark.redis

IN_FORCE = ("accepted", "pending", "rejected")


def test_nothing_is_known_of_nobody(store: Store) -> None:
    assert store.minion_keys.state_of("a") is None
    assert store.minion_keys.pem("a") is None
    assert store.minion_keys.all() == {state: [] for state in STATES}
    store.minion_keys.delete("a")


@pytest.mark.parametrize("state", STATES)
def test_a_key_in_a_state(store: Store, second: Store, state: str) -> None:
    store.minion_keys.store("a", "PEM", state)
    assert second.minion_keys.state_of("a") == (state, "PEM")
    assert second.minion_keys.ids(state) == ["a"]
    assert second.minion_keys.all() == {other: ["a"] if other == state else [] for other in STATES}
    assert second.minion_keys.pem("a") == ("PEM" if state == "accepted" else None)


@pytest.mark.parametrize(("before", "after"), list(itertools.product(IN_FORCE, IN_FORCE)))
def test_a_key_has_one_state(store: Store, before: str, after: str) -> None:
    store.minion_keys.store("a", "OLD", before)
    store.minion_keys.store("a", "NEW", after)
    assert store.minion_keys.state_of("a") == (after, "NEW")
    assert [state for state in STATES if store.minion_keys.ids(state)] == [after]


@pytest.mark.parametrize("state", IN_FORCE)
def test_a_denied_key_stands_beside_the_one_in_force(store: Store, raw: redis.Redis, state: str) -> None:
    store.minion_keys.store("a", "GOOD", state)
    store.minion_keys.store("a", "EVIL", "denied")
    assert store.minion_keys.state_of("a") == (state, "GOOD")
    assert raw.hget("salt:keys:denied", "a") == b"EVIL"
    store.minion_keys.delete("a")
    assert store.minion_keys.state_of("a") is None
    assert store.minion_keys.all() == {name: [] for name in STATES}


@pytest.mark.parametrize("state", IN_FORCE)
def test_a_denied_key_stays_until_it_is_in_force_itself(store: Store, state: str) -> None:
    store.minion_keys.store("a", "EVIL", "denied")
    store.minion_keys.store("a", "GOOD", state)
    assert store.minion_keys.pems("denied", ["a", "b"]) == {"a": "EVIL"}
    store.minion_keys.store("a", "EVIL", state)
    assert store.minion_keys.pems("denied", ["a"]) == {}
    assert store.minion_keys.pems(state, ["a"]) == {"a": "EVIL"}


def test_one_state_is_forgotten(store: Store, second: Store) -> None:
    store.minion_keys.store("a", "GOOD", "accepted")
    store.minion_keys.store("a", "EVIL", "denied")
    store.minion_keys.delete("a", "denied")
    assert second.minion_keys.all() == {name: ["a"] if name == "accepted" else [] for name in STATES}
    assert second.minion_keys.pems("accepted", []) == {}


def test_ids_are_sorted(store: Store) -> None:
    for minion in ("b", "a", "c", "ä"):
        store.minion_keys.store(minion, "PEM", "pending")
    assert store.minion_keys.ids("pending") == ["a", "b", "c", "ä"]


def test_a_state_that_does_not_exist(store: Store, raw: redis.Redis) -> None:
    with pytest.raises(ValueError):
        store.minion_keys.store("a", "PEM", "loved")
    assert list(raw.scan_iter("*")) == []


class Clock:
    """The seconds that ``pem`` believes in."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(minion_keys, "time", made)
    return made


@pytest.mark.parametrize("change", ["replaced", "deleted", "rejected"])
def test_what_another_worker_changes_is_seen_after_half_a_second(
    store: Store, second: Store, clock: Clock, change: str
) -> None:
    second.minion_keys.store("a", "OLD", "accepted")
    assert store.minion_keys.pem("a") == "OLD"
    changes = {
        "replaced": lambda: second.minion_keys.store("a", "NEW", "accepted"),
        "deleted": lambda: second.minion_keys.delete("a"),
        "rejected": lambda: second.minion_keys.store("a", "OLD", "rejected"),
    }
    changes[change]()
    clock.now += 0.51
    assert store.minion_keys.pem("a") == ("NEW" if change == "replaced" else None)


def test_a_key_is_asked_for_once_while_nothing_changes(store: Store, raw: redis.Redis, clock: Clock) -> None:
    store.minion_keys.store("a", "PEM", "accepted")
    assert store.minion_keys.pem("a") == "PEM"
    # Behind the back of the version: only who asks Redis anew would see it.
    raw.hset("salt:keys:accepted", "a", "OTHER")
    for _ in range(5):
        clock.now += 0.51
        assert store.minion_keys.pem("a") == "PEM"


def test_ones_own_changes_are_seen_at_once(store: Store, clock: Clock) -> None:
    for state, pem in (("accepted", "1"), ("accepted", "2"), ("rejected", None), ("accepted", "3")):
        store.minion_keys.store("a", pem or "x", state)
        assert store.minion_keys.pem("a") == pem
    store.minion_keys.delete("a")
    assert store.minion_keys.pem("a") is None


def test_an_acceptance_by_another_worker_is_seen_at_once(store: Store, second: Store, clock: Clock) -> None:
    """A minion that was just let in must not be refused for half a second more."""
    assert store.minion_keys.pem("a") is None
    second.minion_keys.store("a", "PEM", "accepted")
    assert store.minion_keys.pem("a") == "PEM"


def test_strangers_do_not_fill_the_memory(store: Store) -> None:
    # Whoever reaches the port may ask under any number of names.
    for number in range(100):
        assert store.minion_keys.pem(f"stranger{number}") is None
    assert len(store.minion_keys._accepted) == 0


def test_each_change_is_counted(store: Store, raw: redis.Redis) -> None:
    for number, state in enumerate(STATES, 1):
        store.minion_keys.store("a", "PEM", state)
        assert raw.get("salt:keys:version") == str(number).encode()
    store.minion_keys.delete("a")
    assert raw.get("salt:keys:version") == str(len(STATES) + 1).encode()
