"""The stream of publications: every publisher reads all of it, from where it was."""

from __future__ import annotations

import threading
import time

import pytest
import redis

from masterstore.errors import StoreCorrupt
from masterstore.publications import BEGINNING
from masterstore.store import Store

pytestmark = pytest.mark.redis


def add(raw: redis.Redis, *ids: str) -> None:
    for stream_id in ids:
        raw.xadd("salt:publications", {"load": f'{{"n": "{stream_id}"}}'}, id=stream_id)


def test_an_empty_stream(store: Store) -> None:
    assert store.publications.last_id() == BEGINNING == "0-0"
    assert store.publications.follow(BEGINNING, 1) == []
    assert store.publications.range_since(0) == []
    assert store.publications.cursor("p") is None


def test_entries_in_their_order(store: Store, raw: redis.Redis) -> None:
    add(raw, "5-0", "5-1", "7-0")
    everything = [(stream_id, {"n": stream_id}) for stream_id in ("5-0", "5-1", "7-0")]
    assert store.publications.follow(BEGINNING, 1) == everything
    assert store.publications.follow("5-0", 1) == everything[1:]
    assert store.publications.follow("5-0", 1, count=1) == everything[1:2]
    assert store.publications.follow("7-0", 1) == []
    assert store.publications.range_since(5) == everything
    assert store.publications.range_since(6) == everything[2:]
    assert store.publications.range_since(0, count=2) == everything[:2]
    assert store.publications.range_since(8) == []
    assert store.publications.last_id() == "7-0"


def test_following_waits_for_the_first_entry(store: Store, raw: redis.Redis) -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.extend(store.publications.follow(BEGINNING, 20_000)))
    thread.start()
    deadline = time.monotonic() + 20
    # Only once it waits is it a test of waiting.
    while not any(b"xread" in str(row["cmd"]).encode() and row["name"] == "test" for row in raw.client_list()):
        assert time.monotonic() < deadline
    add(raw, "5-0")
    thread.join(30)
    assert found == [("5-0", {"n": "5-0"})]


def test_following_ends_in_time(store: Store) -> None:
    started = time.monotonic()
    assert store.publications.follow(BEGINNING, 100) == []
    assert 0.1 <= time.monotonic() - started < 30


def test_a_wait_longer_than_the_timeout_of_the_connection(redis_url: str, raw: redis.Redis) -> None:
    """Redis answers late because it was asked to: that is no failure."""
    hasty = Store.open(redis_url, timeout=0.5, client_name="hasty")
    started = time.monotonic()
    assert hasty.publications.follow(BEGINNING, 700) == []
    assert time.monotonic() - started >= 0.65


def test_each_publisher_has_a_place_of_its_own(store: Store, second: Store, raw: redis.Redis) -> None:
    add(raw, "5-0", "7-0")
    store.publications.save_cursors(["one"], "5-0")
    second.publications.save_cursors(["two", "*"], "7-0")
    assert (second.publications.cursor("one"), store.publications.cursor("two")) == ("5-0", "7-0")
    store.publications.save_cursors(["one"], "7-0")
    assert second.publications.cursor("one") == "7-0"
    # Reading takes nothing away.
    assert len(store.publications.follow(BEGINNING, 1)) == len(second.publications.follow(BEGINNING, 1)) == 2


def test_a_place_is_a_stream_id_and_nothing_else(store: Store, raw: redis.Redis) -> None:
    """Publishers of an earlier version read it while a master is upgraded, or goes back."""
    store.publications.save_cursors(["one"], "5-0")
    assert raw.hgetall("salt:publisher:cursors") == {b"one": b"5-0"}


def test_places_of_publishers_that_are_gone_are_forgotten(store: Store, raw: redis.Redis) -> None:
    for name, sign in (("old", 10), ("new", 30), ("*", 10)):
        store.publications.save_cursors([name], "5-0")
        store.publications.give_sign(name, sign)
    # As an earlier version leaves them, which gives no sign; and as another hand does.
    raw.hset("salt:publisher:cursors", mapping={"plain-old": "19-0", "plain-new": "21-0", "odd": b"\xff"})
    raw.hset("salt:publisher:signs", mapping={"never-sent": "12", "odder": b"\xff"})
    assert store.publications.cursor("plain-new") == "21-0"
    assert store.publications.cursor("odd") is None
    assert store.publications.forget_cursors(20, "*") == ["never-sent", "odd", "odder", "old", "plain-old"]
    assert sorted(raw.hkeys("salt:publisher:cursors")) == [b"*", b"new", b"plain-new"]
    assert sorted(raw.hkeys("salt:publisher:signs")) == [b"*", b"new"]
    assert store.publications.forget_cursors(20, "*") == []


def test_an_entry_that_cannot_be_read_comes_as_the_error_and_the_rest_follows(store: Store, raw: redis.Redis) -> None:
    raw.xadd("salt:publications", {"load": b"\xff"}, id="1-0")
    raw.xadd("salt:publications", {"load": b'{"jid": "1"}'}, id="2-0")
    (first, fault), second = store.publications.follow(BEGINNING, 1)
    assert first == "1-0"
    assert isinstance(fault, StoreCorrupt)
    assert fault.key == "salt:publications[1-0]"
    assert second == ("2-0", {"jid": "1"})
