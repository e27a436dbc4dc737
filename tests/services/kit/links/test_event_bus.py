"""Events as frames, and the bus between a sender and subscribers over the real event publisher."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from saltern.eventpublisher import main as eventpublisher
from saltern.kit.config.master import MasterOptions
from saltern.kit.links.event_bus import EventSender, EventSubscriber, pack, unpack
from saltern.kit.links.sockets import LinkKeys

_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n")),
    st.dictionaries(st.text(), _PLAIN, max_size=4),
)
def test_what_is_packed_is_unpacked(tag: str, data: dict[str, Any]) -> None:
    event = unpack(pack(tag, data))
    assert event is not None
    assert event[0] == tag
    stamp = event[1].pop("_stamp")
    assert data.get("_stamp") in (stamp, None) or not data["_stamp"]
    assert event[1] == {name: value for name, value in data.items() if name != "_stamp"}


def test_a_tag_cannot_bring_an_event_of_its_own() -> None:
    inner = msgpack.packb({"id": "victim"})
    event = unpack(pack("salt/auth\n\n" + inner.decode("latin-1"), {"id": "me"}))
    assert event is not None
    assert event[0].startswith("salt/auth  ")
    assert event[1]["id"] == "me"


def test_an_event_is_stamped_once() -> None:
    event = unpack(pack("a", {}))
    assert event is not None
    assert datetime.fromisoformat(event[1]["_stamp"]).tzinfo is not None
    assert unpack(pack("a", {"_stamp": "then"})) == ("a", {"_stamp": "then"})


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"tag",
        b"tag\n\n",
        b"tag\n\n\xc1",
        b"tag\n\n" + msgpack.packb([1]),
        b"tag\n\n" + msgpack.packb({"a": 1}) + b"\x00",
        b"tag\n\n" + msgpack.packb({(1, 2): 3}),
        b"\xff\n\n" + msgpack.packb({}),
        b"saltern/probe/00",
    ],
)
def test_what_is_no_event(frame: bytes) -> None:
    assert unpack(frame) is None


def test_a_large_event_loses_its_largest_values_only() -> None:
    data = {"return": "x" * 5000, "fun_args": ["y" * 3000], "id": "web1", "_stamp": "now"}
    event = unpack(pack("t", data, max_bytes=1000))
    assert event == ("t", {"return": "VALUE_TRIMMED", "fun_args": "VALUE_TRIMMED", "id": "web1", "_stamp": "now"})
    event = unpack(pack("t", data, max_bytes=4000))
    assert event is not None
    assert event[1]["fun_args"] == data["fun_args"]
    assert unpack(pack("t", data)) == ("t", data)


def test_entries_are_left_out_where_no_value_is_left_to_trim() -> None:
    data = {**{str(number): number for number in range(100)}, "id": "web1", "_stamp": "now"}
    event = unpack(pack("t", data, max_bytes=40))
    assert event == ("t", {"_stamp": "now", "id": "web1", **{str(number): number for number in range(5)}})
    assert unpack(pack("t", data, max_bytes=10)) == ("t", {})


@dataclass
class Bus:
    """The event publisher's clients."""

    context: zmq.Context[zmq.Socket[bytes]]
    options: MasterOptions
    keys: Path

    def sender(self) -> EventSender:
        return EventSender(self.context, self.options, LinkKeys.load(self.keys / "mworker"))

    def subscriber(self, *prefixes: str) -> EventSubscriber:
        made = EventSubscriber(self.context, self.options, LinkKeys.load(self.keys / "cli"))
        for prefix in prefixes:
            made.subscribe(prefix)
        return made


@pytest.fixture
def bus(context: Any, role_keys: Path, new_options: Callable[..., MasterOptions]) -> Bus:
    return Bus(context, new_options(max_event_size=10_000), role_keys)


@pytest.fixture
def live(bus: Bus, new_role: Callable[..., Any], running: Callable[..., Any]) -> Iterator[Bus]:
    with running(new_role("eventpublisher", bus.options), eventpublisher.PROGRAM):
        yield bus


def test_events_go_to_whoever_subscribed_to_their_prefix(live: Bus) -> None:
    sender, jobs, everything = live.sender(), live.subscriber("salt/job/"), live.subscriber("")
    assert jobs.ready(10)
    assert everything.ready(10)
    assert sender.fire("salt/auth", {"id": "a"})
    assert sender.fire("salt/job/1/new", {"id": "b"})
    event = jobs.next(10)
    assert event is not None
    assert (event[0], event[1]["id"]) == ("salt/job/1/new", "b")
    assert [(everything.next(10) or ("", {}))[0] for _ in range(2)] == ["salt/auth", "salt/job/1/new"]
    assert jobs.next(0.01) is None


def test_events_that_come_before_the_echo_are_kept(live: Bus) -> None:
    sender, subscriber, listener = live.sender(), live.subscriber("a/"), live.subscriber("a/")
    assert subscriber.ready(10)
    assert listener.ready(10)
    for number in range(3):
        sender.fire(f"a/{number}", {})
    # Once the other one has them all, they are before any echo to come.
    assert [(listener.next(10) or ("", {}))[0] for _ in range(3)] == ["a/0", "a/1", "a/2"]
    subscriber.subscribe("b/")
    assert subscriber.ready(10)
    sender.fire("b/0", {})
    assert [(subscriber.next(10) or ("", {}))[0] for _ in range(4)] == ["a/0", "a/1", "a/2", "b/0"]


def test_large_events_are_trimmed_by_the_sender(live: Bus) -> None:
    sender, subscriber = live.sender(), live.subscriber("t")
    assert subscriber.ready(10)
    sender.fire("t", {"return": "x" * 20_000, "id": "a"})
    event = subscriber.next(10)
    assert event is not None
    assert (event[1]["return"], event[1]["id"]) == ("VALUE_TRIMMED", "a")


def test_without_an_event_publisher_nobody_waits(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saltern.kit.links.event_bus.QUEUED_EVENTS", 2)
    sender, subscriber = bus.sender(), bus.subscriber("")
    assert not subscriber.ready(0.02)
    assert subscriber.next(0.02) is None
    assert [sender.fire("t", {}) for _ in range(4)] == [True, True, False, False]


def test_a_restarted_event_publisher_is_found_again(
    bus: Bus, new_role: Callable[..., Any], running: Callable[..., Any]
) -> None:
    subscriber, sender = bus.subscriber("t"), bus.sender()
    for _ in range(2):
        with running(new_role("eventpublisher", bus.options), eventpublisher.PROGRAM):
            assert subscriber.ready(10)
            assert sender.fire("t", {})
            assert subscriber.next(10)
