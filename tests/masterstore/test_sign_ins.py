"""What a sign-in learns in one round trip is what the verbs for each of it tell."""

from __future__ import annotations

import pytest
import redis

from masterstore import keys
from masterstore.errors import StoreCorrupt
from masterstore.minion_keys import STATES
from masterstore.store import Store

pytestmark = pytest.mark.redis

PEM, OTHER = "-----BEGIN PUBLIC KEY-----\none\n", "-----BEGIN PUBLIC KEY-----\nother\n"

NOW = 1_700_000_000_000


def test_who_was_never_heard_of(store: Store) -> None:
    found = store.sign_ins.begin("web1", PEM, NOW)
    assert (found.stored, found.seen) == (None, False)
    assert found.epochs == store.epochs.current()
    assert store.presence.present(0) == set()


@pytest.mark.parametrize("brings", [PEM, OTHER])
@pytest.mark.parametrize("state", STATES)
def test_each_state(store: Store, state: str, brings: str) -> None:
    store.minion_keys.store("web1", PEM, state)
    found = store.sign_ins.begin("web1", brings, NOW)
    assert found.stored == store.minion_keys.state_of("web1") == (state, PEM)
    seen = state == "accepted" and brings == PEM
    assert found.seen is seen
    assert store.presence.last_seen(["web1"]) == ({"web1": NOW} if seen else {})


@pytest.mark.parametrize("stored", ["", "\n", "no key"])
def test_what_is_no_key_is_not_the_one_that_a_minion_brings(store: Store, raw: redis.Redis, stored: str) -> None:
    raw.hset(keys.minion_keys("accepted"), "web1", stored)
    found = store.sign_ins.begin("web1", PEM, NOW)
    assert (found.stored, found.seen) == (("accepted", stored), False)


def test_epochs_that_are_there_in_part_are_completed(store: Store, raw: redis.Redis) -> None:
    raw.hset(keys.EPOCHS, "session", 7)
    found = store.sign_ins.begin("web1", PEM, NOW).epochs
    assert (found.aes, found.session) == (1, 7)
    assert found.aes_since == found.session_since > 0
    assert store.epochs.current() == found


def test_an_accepted_key_stands_before_a_denied_one(store: Store) -> None:
    store.minion_keys.store("web1", OTHER, "denied")
    store.minion_keys.store("web1", PEM, "accepted")
    assert store.sign_ins.begin("web1", PEM, NOW).stored == ("accepted", PEM)


def test_time_does_not_go_back(store: Store) -> None:
    store.minion_keys.store("web1", PEM, "accepted")
    store.presence.seen("web1", NOW + 5)
    assert store.sign_ins.begin("web1", PEM, NOW).seen
    assert store.presence.last_seen(["web1"]) == {"web1": NOW + 5}


def test_rotations_are_seen(store: Store) -> None:
    store.epochs.rotate_aes()
    assert store.sign_ins.begin("web1", PEM, NOW).epochs.aes == 2


@pytest.mark.parametrize("written", ["two", "", "2 3", "2\n3", "2 1 0\n"])
def test_an_epoch_that_is_no_number(store: Store, raw: redis.Redis, written: str) -> None:
    store.epochs.current()
    raw.hset(keys.EPOCHS, "aes", written)
    with pytest.raises(StoreCorrupt, match="no number"):
        store.sign_ins.begin("web1", PEM, NOW)


def test_sign_ins_of_stock_minions_are_remembered_for_a_while(store: Store, raw: redis.Redis) -> None:
    for name in ("web1", "ours", "unknown"):
        if name != "unknown":
            store.minion_keys.store(name, PEM, "accepted")
    store.jobs.sign("ours", [], NOW)
    raw.zadd(keys.STOCK_SIGN_INS, {"long ago": 1})
    for name in ("web1", "ours", "unknown"):
        store.sign_ins.begin(name, PEM, NOW)
    found = store.sign_ins.of_stock()
    assert list(found) == ["web1"]
    seconds, micros = raw.time()
    assert 0 <= seconds * 1000 + micros // 1000 - found["web1"] < 60_000
    assert 60 <= raw.ttl(keys.STOCK_SIGN_INS) <= 63


def test_what_another_hand_wrote_under_their_name_stays_and_keeps_nobody_out(store: Store, raw: redis.Redis) -> None:
    store.minion_keys.store("web1", PEM, "accepted")
    raw.set(keys.STOCK_SIGN_INS, "theirs")
    assert store.sign_ins.begin("web1", PEM, NOW).seen
    assert (raw.get(keys.STOCK_SIGN_INS), raw.ttl(keys.STOCK_SIGN_INS)) == (b"theirs", -1)
    assert store.sign_ins.of_stock() == {}
    assert list(store.faults.known) == [keys.STOCK_SIGN_INS]
