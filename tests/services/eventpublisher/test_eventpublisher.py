"""The event publisher as a role: what it drops, what it counts, how it ends. The bus itself is in kit/test_bus."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zmq

from saltern.eventpublisher import main as eventpublisher
from saltern.kit.config.master import ConfigError, MasterOptions
from saltern.kit.keys.keygen import make_keys
from saltern.kit.links import curve_auth
from saltern.kit.links.event_bus import EventSender, EventSubscriber
from saltern.kit.links.sockets import LinkKeys, bind, connect
from saltern.kit.process.service import Role


@dataclass
class Live:
    """A running event publisher and its clients."""

    role: Role
    context: Any
    keys: Path
    eventually: Callable[[Callable[[], Any]], Any]

    def subscriber(self, *prefixes: str, name: str = "cli") -> EventSubscriber:
        made = EventSubscriber(self.context, self.role.options, LinkKeys.load(self.keys / name))
        for prefix in prefixes:
            made.subscribe(prefix)
        assert made.ready(10)
        return made

    def sender(self) -> EventSender:
        return EventSender(self.context, self.role.options, LinkKeys.load(self.keys / "mworker"))

    def raw_sender(self) -> zmq.Socket[bytes]:
        made: zmq.Socket[bytes] = self.context.socket(zmq.PUSH)
        connect(made, "event_pull", self.role.options, LinkKeys.load(self.keys / "mworker"))
        return made

    def metric(self, name: str, **labels: str) -> float:
        return self.role.metrics.registry.value(name, labels) or 0.0


@pytest.fixture
def live(
    context: Any,
    role_keys: Path,
    new_options: Callable[..., MasterOptions],
    new_role: Callable[[str, MasterOptions], Role],
    running: Callable[..., Any],
    eventually: Callable[[Callable[[], Any]], Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[Live]:
    monkeypatch.setattr(eventpublisher, "_TICK", 20)
    monkeypatch.setattr(eventpublisher, "QUEUED_EVENTS", 50)
    keys = shutil.copytree(role_keys, tmp_path / "keys")
    make_keys(keys, operators=["ann"])
    monkeypatch.setattr(curve_auth, "LOOK_SECONDS", 0.0)
    options = new_options(max_event_size=10_000, publisher_acl={"ann": ["test."]})
    role = replace(new_role("eventpublisher", options), keys=keys / "eventpublisher")
    with running(role, eventpublisher.PROGRAM):
        yield Live(role, context, keys, eventually)


def test_messages_that_are_no_events_are_dropped_and_counted(live: Live) -> None:
    listener, raw, sender = live.subscriber(""), live.raw_sender(), live.sender()
    raw.send_multipart([b"tag\n\n\x80", b"more"])
    live.eventually(lambda: live.metric("salt_messages_dropped_total", port="event_pull_port") == 1)
    raw.send(b"no event at all")
    sender.fire("salt/auth", {})
    event = listener.next(10)
    assert event is not None
    assert event[0] == "salt/auth"


def test_what_a_slow_listener_loses_is_counted_and_others_get_it(live: Live) -> None:
    slow, quick, raw = live.subscriber("slow/"), live.subscriber("end"), live.raw_sender()
    frame = b"slow/x\n\n" + msgpack.packb({"x": b"x" * 20_000})

    def lost() -> bool:
        for _ in range(100):
            raw.send(frame)
        return live.metric("salt_events_dropped_total") > 0

    live.eventually(lost)
    raw.send(b"end\n\n\x80")
    event = quick.next(10)
    assert event is not None
    assert event[0] == "end"
    slow.close()


def test_a_message_beyond_all_measure_ends_only_its_sender(live: Live) -> None:
    listener, raw, sender = live.subscriber(""), live.raw_sender(), live.sender()
    raw.send(b"t\n\n" + b"x" * 100_000)
    sender.fire("salt/auth", {})
    event = listener.next(10)
    assert event is not None
    assert event[0] == "salt/auth"


def test_events_are_counted_by_a_few_words(live: Live) -> None:
    listener, sender = live.subscriber(""), live.sender()
    for tag in ("salt/job/1/new", "salt/job/1/ret/a", "salt/auth", "salt/mine/x", "my/job", "job", "salt"):
        sender.fire(tag, {})
    live.eventually(lambda: listener.next(0.05) is None and live.metric("salt_events_fired_total", prefix="other") == 4)
    assert live.metric("salt_events_fired_total", prefix="job") == 2
    assert live.metric("salt_events_fired_total", prefix="auth") == 1


def test_subscriptions_are_counted_without_the_probes(live: Live) -> None:
    listeners = [live.subscriber("salt/", "key") for _ in range(3)]
    live.eventually(lambda: live.metric("salt_subscribers") == 6)
    for number, listener in enumerate(listeners):
        listener.close()
        live.eventually(lambda left=4 - 2 * number: live.metric("salt_subscribers") == left)


def test_what_was_fired_before_the_end_still_goes_out(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    listener, sender = live.subscriber("t/"), live.sender()
    # The loop that moves nothing: all events wait when the signal comes.
    moved = eventpublisher._forward
    monkeypatch.setattr(eventpublisher, "_forward", lambda role, pull, pub, history: None)
    for number in range(20):
        sender.fire(f"t/{number}", {})
    # The order of one sender's connection: once the probe of a later subscriber is back, the loop has turned.
    assert live.subscriber("x").ready(10)
    monkeypatch.setattr(eventpublisher, "_forward", moved)
    live.role.stop.requested = True
    tags = [(listener.next(10) or ("", {}))[0] for _ in range(20)]
    assert tags == [f"t/{number}" for number in range(20)]


def test_who_is_taken_back_hears_no_more_and_others_do(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, other, sender = live.subscriber("", name="ann"), live.subscriber(""), live.sender()
    (live.keys / "eventpublisher" / "known" / "ann.pub").unlink()

    def heard(listener: EventSubscriber) -> str:
        sender.fire("salt/auth", {})
        return (listener.next(0.1) or ("", {}))[0]

    # A listener subscribes anew when it is asked for events: until then nobody is there.
    live.eventually(lambda: live.metric("salt_subscribers") == 0)
    while ann.next(0):
        pass
    # The other one is back by itself, and hears what is fired from then on.
    live.eventually(lambda: heard(other))
    assert ann.next(0.1) is None


@pytest.mark.parametrize("option", ["event_pull_port", "event_pub_port"])
def test_a_port_that_is_taken_is_named(
    option: str,
    context: Any,
    new_options: Callable[..., MasterOptions],
    new_role: Callable[[str, MasterOptions], Role],
) -> None:
    options = new_options()
    taker = context.socket(zmq.PUB)
    bind(taker, "127.0.0.1", getattr(options, option), option)
    with pytest.raises(ConfigError, match=f"{option}: cannot listen on 127.0.0.1"):
        eventpublisher.PROGRAM.prepare(new_role("eventpublisher", options))()
    taker.close()
