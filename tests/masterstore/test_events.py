"""Events that are kept: a slow reader resumes, a gap is counted, and only what is wanted is written."""

from __future__ import annotations

import time

import pytest
import redis

from masterstore.errors import StoreError, StoreUnavailable
from masterstore.events import BEGINNING, WANTED_BELIEVED, EventKeeper, KeptEvent
from masterstore.store import Store

pytestmark = pytest.mark.redis


def frames(events: list[KeptEvent]) -> list[bytes]:
    return [event.frame for event in events]


def test_a_reader_goes_on_where_it_was(store: Store, second: Store) -> None:
    """Restarted: it has its cursor, and nothing else."""
    for number in range(5):
        store.events.keep(b"%d" % number, 1000)
    found, missed = second.events.read(BEGINNING, 1, count=2)
    assert (frames(found), missed) == ([b"0", b"1"], 0)
    again, missed = store.events.read(found[-1].cursor, 1)
    assert (frames(again), missed) == ([b"2", b"3", b"4"], 0)
    assert store.events.read(again[-1].cursor, 1) == ([], 0)
    assert store.events.newest() == again[-1].cursor


def test_what_a_slow_reader_missed_is_counted(store: Store, raw: redis.Redis) -> None:
    store.events.keep(b"first", 1000)
    (first,), _ = store.events.read(BEGINNING, 1)
    for number in range(20):
        store.events.keep(b"%d" % number, 1000)
    raw.xtrim("salt:events", maxlen=5, approximate=False)
    found, missed = store.events.read(first.cursor, 1)
    assert (frames(found), missed) == ([b"15", b"16", b"17", b"18", b"19"], 15)
    # Who begins has missed nothing.
    assert store.events.read(BEGINNING, 1)[1] == 0


def test_the_stream_is_bounded(store: Store, raw: redis.Redis) -> None:
    for number in range(1500):
        store.events.keep(b"%d" % number, 100)
    assert raw.xlen("salt:events") < 300
    assert store.events.count() == 1500


def test_a_reader_waits_for_the_next(store: Store) -> None:
    started = time.monotonic()
    assert store.events.read(store.events.newest(), 200) == ([], 0)
    assert 0.2 <= time.monotonic() - started < 30


@pytest.mark.parametrize("cursor", ["", "0", "1-1", "1-1/", "1-1/x", "now/1", "$/0"])
def test_what_is_no_cursor(store: Store, cursor: str) -> None:
    with pytest.raises(StoreError, match="is no cursor of events"):
        store.events.read(cursor, 1)


def test_an_event_for_one_group_is_for_no_other_reader(store: Store) -> None:
    store.events.keep(b"all", 10)
    store.event_groups.create("g", 0)
    batch = store.event_groups.read("g", "c", 0, 10)
    assert batch is not None
    store.event_groups.bury("g", batch.events[0], "why", 1)
    (dead,) = store.event_groups.dead("g", 10)
    assert store.event_groups.revive("g", dead.id, 10)
    assert frames(store.events.read(BEGINNING, 1)[0]) == [b"all"]


# ---------------------------------------------------------------------------------------------------------------- the keeper


def test_only_what_is_wanted_is_kept(store: Store) -> None:
    now = [100.0]
    keeper = EventKeeper(store.events, ["site/*"], 1000, lambda: now[0])
    for tag in ("site/up", "salt/job/1/ret/a", "salt/auth"):
        keeper.keep(tag, tag.encode())
    store.events.want("reactor", ["salt/job/*/ret/*", "salt/minion/*"])
    # What is wanted is asked for once a second, not once an event.
    keeper.keep("salt/job/2/ret/a", b"too early")
    now[0] += WANTED_BELIEVED
    keeper.keep("salt/job/3/ret/a", b"salt/job/3/ret/a")
    assert frames(store.events.read(BEGINNING, 1)[0]) == [b"site/up", b"salt/job/3/ret/a"]


def test_who_wants_nothing_costs_nothing(store: Store, raw: redis.Redis) -> None:
    keeper = EventKeeper(store.events, [], 1000)
    keeper.keep("a", b"a")
    before = raw.info("commandstats")
    for _ in range(100):
        keeper.keep("a", b"a")
    asked = [
        name
        for name, row in raw.info("commandstats").items()
        if row["calls"] - before.get(name, {}).get("calls", 0) > 1
    ]
    assert asked == []


def test_several_events_are_one_question(store: Store, raw: redis.Redis) -> None:
    keeper = EventKeeper(store.events, ["site/*"], 1000)
    keeper.keep("site/0", b"site/0")
    before = raw.info("commandstats")["cmdstat_evalsha"]["calls"]
    assert keeper.try_keep(("site/1", b"site/1"), ("other", b"other"), ("site/2", b"site/2"))
    assert raw.info("commandstats")["cmdstat_evalsha"]["calls"] == before + 1
    found, missed = store.events.read(BEGINNING, 1)
    assert ([(event.number, event.frame) for event in found], missed) == (
        [(number, b"site/%d" % (number - 1)) for number in (1, 2, 3)],
        0,
    )


def test_wishes_end_and_strange_ones_are_left_out(store: Store, raw: redis.Redis) -> None:
    store.events.want("here", ["b", "a", "b"])
    old = int(time.time()) - 90_000
    strange = {
        "gone": f'{{"tags": ["x"], "at": {old}}}',
        "noise": "{",
        "list": "[]",
        "kind": '{"tags": 5, "at": "now"}',
    }
    raw.hset("salt:events:wanted", mapping=strange)
    assert store.events.wanted() == {"here": ["a", "b"]}


def test_a_store_that_is_away_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    away = Store.open("redis://127.0.0.1:1/0", timeout=0.2, client_name="test")
    keeper = EventKeeper(away.events, ["site/*"], 1000)
    with pytest.raises(StoreUnavailable):
        keeper.keep("site/up", b"")
    assert [keeper.try_keep(("site/up", b"")), keeper.try_keep(("site/up", b""))] == [False, False]
    assert caplog.text.count("events are not kept") == 1
