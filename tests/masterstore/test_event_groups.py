"""Groups on the stream of events: shared, at least once, and nothing is lost in silence."""

from __future__ import annotations

import time

import pytest
import redis

from masterstore.event_groups import Backlog
from masterstore.events import KeptEvent
from masterstore.store import Store

pytestmark = pytest.mark.redis

G = "reactor"


def read(store: Store, consumer: str, count: int = 10, block_ms: int = 0) -> list[KeptEvent]:
    batch = store.event_groups.read(G, consumer, block_ms, count)
    assert batch is not None
    return batch.events


def frames(events: list[KeptEvent]) -> list[bytes]:
    return [event.frame for event in events]


@pytest.fixture
def group(store: Store) -> Store:
    store.event_groups.create(G, 0)
    return store


def test_a_group_begins_at_a_time(store: Store) -> None:
    first = store.events.keep(b"old", 100)
    time.sleep(0.005)  # stream ids are milliseconds
    store.events.keep(b"new", 100)
    since = int(first.partition("-")[0]) + 1
    assert store.event_groups.create(G, since)
    assert not store.event_groups.create(G, 0), "it is there, and stays as it is"
    assert frames(read(store, "a")) == [b"new"]
    assert store.event_groups.backlog(G) == Backlog(0, 1, 0, 0)


def test_each_event_goes_to_one(group: Store) -> None:
    for number in range(4):
        group.events.keep(b"%d" % number, 100)
    assert frames(read(group, "a", 1)) == [b"0"]
    assert frames(read(group, "b", 2)) == [b"1", b"2"]
    assert frames(read(group, "a")) == [b"3"]
    assert read(group, "a") == []
    assert group.event_groups.backlog(G) == Backlog(waiting=0, in_hand=4, missed=0, dead=0)


def test_done_is_done(group: Store) -> None:
    group.events.keep(b"0", 100)
    (event,) = read(group, "a")
    group.event_groups.done(G, [event.id])
    assert group.event_groups.mine(G, "a") == []
    assert group.event_groups.backlog(G).in_hand == 0
    group.event_groups.done(G, [])


def test_what_was_handed_out_and_not_heard_of_is_found_again(group: Store) -> None:
    """The answer was lost on the way, and the consumer lives."""
    group.events.keep(b"0", 100)
    read(group, "a")
    assert frames(group.event_groups.mine(G, "a")) == [b"0"]
    assert group.event_groups.mine(G, "b") == []
    assert group.event_groups.mine("nobody", "b") == []


def test_who_is_silent_leaves_its_events_to_the_others(group: Store, raw: redis.Redis) -> None:
    for number in range(3):
        group.events.keep(b"%d" % number, 100)
    assert group.event_groups.claim(G, "a", 60_000, 10) == []
    read(group, "a", 2)
    # It lives.
    assert group.event_groups.claim(G, "b", 60_000, 10) == []
    time.sleep(0.06)
    claimed = group.event_groups.claim(G, "b", 50, 10)
    assert [(event.frame, times) for event, times in claimed] == [(b"0", 1), (b"1", 1)]
    assert frames(group.event_groups.mine(G, "b")) == [b"0", b"1"]
    # And it is forgotten: names of consumers do not pile up.
    assert [row["name"] for row in raw.xinfo_consumers("salt:events", G)] == [b"b"]
    assert raw.zrange("salt:events:readers:reactor", 0, -1) == [b"b"]


def test_who_leaves_is_succeeded_at_once(group: Store) -> None:
    group.events.keep(b"0", 100)
    group.event_groups.claim(G, "a", 60_000, 10)
    read(group, "a")
    group.event_groups.leave(G, "a")
    ((event, times),) = group.event_groups.claim(G, "b", 60_000, 10)
    assert (event.frame, times) == (b"0", 1)


def test_much_is_taken_over_in_pieces(group: Store) -> None:
    for number in range(5):
        group.events.keep(b"%d" % number, 100)
    group.event_groups.claim(G, "a", 60_000, 10)
    read(group, "a")
    group.event_groups.leave(G, "a")
    sizes = [len(group.event_groups.claim(G, "b", 60_000, 2)) for _ in range(4)]
    assert sizes == [2, 2, 1, 0]


def test_what_was_trimmed_before_anybody_had_it_is_counted(group: Store, raw: redis.Redis) -> None:
    group.events.keep(b"0", 100)
    read(group, "a")
    for number in range(1, 10):
        group.events.keep(b"%d" % number, 100)
    raw.xtrim("salt:events", maxlen=4, approximate=False)
    assert group.event_groups.backlog(G).waiting == 9
    assert frames(read(group, "b")) == [b"6", b"7", b"8", b"9"]
    assert group.event_groups.backlog(G) == Backlog(waiting=0, in_hand=5, missed=5, dead=0)
    # One in hand that is gone cannot be taken over: it is missed, too.
    group.event_groups.claim(G, "a", 60_000, 10)
    group.event_groups.leave(G, "a")
    assert group.event_groups.claim(G, "b", 60_000, 10) == []
    assert group.event_groups.backlog(G) == Backlog(waiting=0, in_hand=4, missed=6, dead=0)


def test_a_stream_that_is_gone_is_told(group: Store, raw: redis.Redis) -> None:
    raw.flushall()
    assert group.event_groups.read(G, "a", 10, 10) is None
    assert group.event_groups.create(G, 0)
    group.events.keep(b"0", 100)
    assert frames(read(group, "a")) == [b"0"]


def test_a_reader_waits_and_is_woken(group: Store, second: Store) -> None:
    started = time.monotonic()
    assert read(group, "a", block_ms=200) == []
    assert time.monotonic() - started >= 0.2
    second.events.keep(b"0", 100)
    assert frames(read(group, "a", block_ms=5000)) == [b"0"]


def test_the_dead_are_listed_given_back_and_dropped(group: Store) -> None:
    for name in (b"a", b"b"):
        group.events.keep(name, 100)
    for event in read(group, "c"):
        group.event_groups.bury(G, event, f"why {event.number}", 3)
    assert group.event_groups.backlog(G) == Backlog(0, 0, 0, 2)
    second, first = group.event_groups.dead(G, 10)
    assert (first.frame, first.why, first.tries) == (b"a", "why 1", 3)
    assert group.event_groups.revive(G, first.id, 100)
    (again,) = read(group, "c")
    assert (again.frame, again.to, again.number) == (b"a", G, 3)
    assert group.event_groups.drop(G, second.id)
    assert group.event_groups.dead(G, 10) == []
    assert not group.event_groups.drop(G, second.id)
    assert not group.event_groups.revive(G, first.id, 100)


def test_what_a_group_shares(group: Store, second: Store) -> None:
    assert group.event_groups.state(G) == (0, "")
    assert group.event_groups.save_state(G, "one", 0)
    assert not second.event_groups.save_state(G, "two", 0), "somebody was faster"
    assert second.event_groups.state(G) == (1, "one")
    batch = second.event_groups.read(G, "a", 0, 1)
    assert batch is not None
    assert batch.version == 1
