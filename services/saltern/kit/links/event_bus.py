"""Clients of the event bus: senders (port 4512) and subscribers (port 4513).

An event is one frame: tag, two line feeds, msgpack of the data. ZeroMQ's prefix subscriptions can therefore select tags. A
sender never waits for a subscriber; an event that a subscriber misses can be found in Redis.

A subscriber knows that its subscriptions are active when its probe comes back: the event publisher echoes each subscription that
starts with PROBE, and processes the subscriptions of one connection in order.
Source: docs/protocol.md#event-framing.
"""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

import msgpack
import zmq

from saltern.kit.config.master import ClientOptions, MasterOptions, key_directory
from saltern.kit.links import frames
from saltern.kit.links.event_links import EventLinks
from saltern.kit.links.event_order import NAME_BYTES, EventOrder
from saltern.kit.links.sockets import FOLLOW_SECONDS, LinkConnection, LinkKeys
from saltwire.errors import PeerFault
from saltwire.pack import MAX_VALUES, check_values

_LOG = logging.getLogger("saltern.links")

#: Prefix of the topics that the event publisher echoes, so that a subscriber knows that its subscriptions are active.
PROBE = b"saltern/probe/"

_SEPARATOR = b"\n\n"

#: Stands for a value that was too large, as in Salt; and its packed size.
_MARK = "VALUE_TRIMMED"
_MARK_BYTES = 1 + len(_MARK)

#: Size of a packed map without its entries, bytes.
_MAP_BYTES = 5

#: Entries that readers of events need most: they are left out last.
_KEPT = ("_stamp", "id", "jid", "fun", "tgt_type", "user", "success", "retcode", "result", "act", "return")

#: Events that wait for a slow subscriber at most. It loses further events; the publisher's metrics count them.
QUEUED_EVENTS = 10_000


def pack(tag: str, data: Mapping[str, object], *, max_bytes: int = 0) -> bytes:
    """Return the frame of an event; ``_stamp`` (the time) is added to the data.

    If the data is larger than ``max_bytes`` (0: no limit), the largest values are replaced by ``VALUE_TRIMMED``. If that is
    not enough, because there are too many keys or too long ones, entries are left out, those of _KEPT last.
    """
    stamped = {**data, "_stamp": data.get("_stamp") or datetime.now(UTC).isoformat()}
    body: bytes = msgpack.packb(stamped, default=str)
    if max_bytes and len(body) > max_bytes:
        body = msgpack.packb(_trimmed(stamped, len(body), max_bytes), default=str)
    # A tag may come from a minion; a line end in it would end it early, and what follows would be read as the event.
    return tag.replace("\n", " ").encode() + _SEPARATOR + body


def _trimmed(data: Mapping[str, object], size: int, most: int) -> dict[str, object]:
    """Return the data of an event, ``size`` bytes when packed, reduced to at most ``most`` bytes.

    Each value is packed once, however many there are: a peer may send tens of thousands.
    """
    trimmed = dict(data)
    sizes = {name: len(msgpack.packb(value, default=str)) for name, value in data.items()}
    for name in sorted(sizes, key=sizes.__getitem__, reverse=True):
        if size <= most or sizes[name] <= _MARK_BYTES:
            break
        trimmed[name] = _MARK
        size -= sizes[name] - _MARK_BYTES
        sizes[name] = _MARK_BYTES
    if size <= most:
        return trimmed
    left = most - _MAP_BYTES
    fitting: dict[str, object] = {}
    for name in [*(name for name in _KEPT if name in trimmed), *(name for name in trimmed if name not in _KEPT)]:
        left -= len(msgpack.packb(name, default=str)) + sizes[name]
        if left < 0:
            break
        fitting[name] = trimmed[name]
    return fitting


def unpack(frame: bytes) -> tuple[str, dict[str, object]] | None:
    """Return the (tag, data) of an event's frame, None if the frame is no event."""
    tag, separator, body = frame.partition(_SEPARATOR)
    if not separator:
        return None
    try:
        check_values(body, MAX_VALUES)
        data = msgpack.unpackb(body, strict_map_key=False)
        return (tag.decode(), data) if isinstance(data, dict) else None
    except (ValueError, TypeError, msgpack.UnpackException, PeerFault):
        # msgpack raises TypeError for a map whose key is a list.
        return None


class Keeper(Protocol):
    """The interface of an object that stores events in Redis, for readers that must not miss them
    (``masterstore.events``).
    """

    def wants(self, tag: str) -> bool:
        """Return whether a reader needs events with this tag in Redis. Raises the store's error if Redis does not answer."""

    def keep(self, tag: str, frame: bytes) -> None:
        """Store the packed event ``frame`` in Redis if a reader needs its tag. Raises the store's error if that
        fails.
        """

    def try_keep(self, *events: tuple[str, bytes]) -> bool:
        """Store those of the events (tag, packed event) in Redis that a reader needs, in one round trip. Return False if that
        fails, else True.
        """


@dataclass(frozen=True, slots=True)
class Prepared:
    """A packed event that is not sent yet.

    ``kept()`` returns the bytes to store in Redis, b"" if no reader needs the event. ``send()`` puts the
    event on the bus and returns whether it was queued.
    """

    #: The event where somebody wants to read it later: for whoever keeps it in one step with what it tells of. Else empty.
    #: Raises what the keeper raises.
    kept: Callable[[], bytes]
    #: Sends the event to the bus and stores nothing. Returns True if it was queued for sending.
    send: Callable[[], bool]


class EventSender:
    """Sends events to the event publisher and never waits.

    An event that the bus cannot take now is lost to its subscribers. Returns are not lost: they are in the job cache.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        options: MasterOptions,
        keys: LinkKeys,
        keeper: Keeper | None = None,
    ) -> None:
        """Connect to each event publisher. ``keeper`` stores each event in Redis for later readers; None stores nothing."""
        self._links = EventLinks(context, options, keys, QUEUED_EVENTS)
        self._max_bytes = options.max_event_size
        self._keeper = keeper

    def fire(self, tag: str, data: Mapping[str, object]) -> bool:
        """Store the event in Redis if a reader needs it, and send it to the event publisher without waiting.

        Return True if it was queued for sending, False if the bus is unreachable and the queue is full.
        """
        return self.fire_all((tag, data))

    def fire_all(self, *events: tuple[str, Mapping[str, object]]) -> bool:
        """Fire several events (tag, data) in this order, as ``fire`` does; Redis is asked once. Return True if all were
        queued.
        """
        packed = [(tag, pack(tag, data, max_bytes=self._max_bytes)) for tag, data in events]
        if self._keeper is not None:
            self._keeper.try_keep(*packed)
        queued = [self._send(frame) for _, frame in packed]
        return all(queued)

    def prepare(self, tag: str, data: Mapping[str, object]) -> Prepared:
        """Pack an event without sending it, and return it as a Prepared.

        The caller stores the bytes that ``Prepared.kept()`` returns in the same step as the change that the event
        reports. Then the caller calls ``Prepared.send()``.
        """
        frame, keeper = pack(tag, data, max_bytes=self._max_bytes), self._keeper

        def kept() -> bytes:
            return frame if keeper is not None and keeper.wants(tag) else b""

        return Prepared(kept, partial(self._send, frame))

    def _send(self, frame: bytes) -> bool:
        return self._links.send(frame)

    def follow(self) -> None:
        """Look after the connections; a loop that may fire nothing for seconds calls this. Cheap."""
        self._links.follow()

    def close(self) -> None:
        """Close the connections to the event publishers; wait at most half a second until queued events are sent."""
        self._links.close()


class Replays:
    """The subscriptions of a listener's socket, and its questions for events that it may have missed (``event_order``)."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket
        self._order = EventOrder(time.monotonic())
        self._prefixes: list[bytes] = []
        #: Topics that are subscribed to for the replay that is awaited.
        self._topics: tuple[bytes, ...] = ()

    def subscribe(self, prefix: bytes) -> None:
        """Subscribe to events whose tag starts with ``prefix``."""
        self._prefixes.append(prefix)
        self._socket.setsockopt(zmq.SUBSCRIBE, prefix)

    def unsubscribe(self, prefix: bytes) -> None:
        """End one subscription to a prefix."""
        self._prefixes.remove(prefix)
        self._socket.setsockopt(zmq.UNSUBSCRIBE, prefix)

    def ask(self) -> None:
        """Ask for the events since the last one, because the connection is new."""
        self._end()
        question = self._order.ask(os.urandom(NAME_BYTES).hex().encode(), self._prefixes, time.monotonic())
        if question is not None:
            self._topics = (question.replies, question.topic)
            for topic in self._topics:
                self._socket.setsockopt(zmq.SUBSCRIBE, topic)

    def take(self, message: Sequence[bytes]) -> Sequence[bytes]:
        """Return the frames of the events to pass on after a message that arrived."""
        found = self._order.take(message)
        if self._topics and not self._order.waits:
            self._end()
        return found

    def overdue(self) -> Sequence[bytes]:
        """Return the frames of events that waited for a replay that has not come."""
        if not self._topics:
            return ()
        found = self._order.overdue(time.monotonic())
        if not self._order.waits:
            self._end()
        return found

    def _end(self) -> None:
        for topic in self._topics:
            self._socket.setsockopt(zmq.UNSUBSCRIBE, topic)
        self._topics = ()


class EventSubscriber:
    """Receives the events of the bus whose tags start with a subscribed prefix, from one event publisher.

    If there are several, and this one is lost, it goes on with another one: no event is missed and none comes twice.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], options: MasterOptions, keys: LinkKeys) -> None:
        self.socket = context.socket(zmq.SUB)
        self.socket.setsockopt(zmq.RCVHWM, QUEUED_EVENTS)
        self.socket.setsockopt(zmq.LINGER, 0)
        self._connection = LinkConnection(self.socket, "event_pub", options, keys)
        self._replays = Replays(self.socket)
        #: Frames of events that arrived and were not passed on yet.
        self._early: deque[bytes] = deque(maxlen=QUEUED_EVENTS)

    @property
    def endpoint(self) -> str:
        """Return the address of the event publisher as text, ``tcp://host:port``."""
        return self._connection.endpoint

    def follow(self) -> None:
        """Connect to an event publisher again if one of the CurveZMQ keys was replaced, or it was lost.

        ``next`` calls this itself; callers that read ``socket`` directly must call it.
        """
        if self._connection.follow():
            self._replays.ask()
        self._early.extend(self._replays.overdue())

    def subscribe(self, prefix: str) -> None:
        """Subscribe to events whose tag starts with ``prefix``; "" subscribes to all events."""
        self._replays.subscribe(prefix.encode())

    def ready(self, timeout: float) -> bool:
        """Wait until all subscriptions are active, and return True.

        Return False if the event publisher does not answer within ``timeout`` seconds.
        """
        probe = PROBE + os.urandom(8).hex().encode()
        self.socket.setsockopt(zmq.SUBSCRIBE, probe)
        deadline = time.monotonic() + timeout
        try:
            while (left := deadline - time.monotonic()) > 0:
                if self.socket.poll(int(min(left, FOLLOW_SECONDS) * 1000) + 1):
                    message = frames.receive(self.socket)
                    if message[0] == probe:
                        return True
                    self._early.extend(self._replays.take(message))
                else:
                    self.follow()
            return False
        finally:
            self.socket.setsockopt(zmq.UNSUBSCRIBE, probe)

    def next(self, timeout: float) -> tuple[str, dict[str, object]] | None:
        """Return the next event as (tag, data), None after ``timeout`` seconds without an event."""
        deadline = time.monotonic() + timeout
        while self._early or (left := deadline - time.monotonic()) > 0:
            if not self._early:
                if self.socket.poll(int(min(left, FOLLOW_SECONDS) * 1000) + 1):
                    self._early.extend(self._replays.take(frames.receive(self.socket)))
                else:
                    self.follow()
                continue
            event = unpack(self._early.popleft())
            if event is not None:
                _LOG.debug("event %s", event[0])
                return event
        return None

    def close(self) -> None:
        """Close the connection to the event publisher."""
        self._connection.close()


def connect_bus(
    options: ClientOptions, *, config_dir: str | None = None, context: zmq.Context[zmq.Socket[bytes]] | None = None
) -> EventSubscriber:
    """Return a subscriber of the event bus that authenticates itself by the CurveZMQ keys of the operators' commands.
    Raises ConfigError if keys are missing.
    """
    keys = LinkKeys.load(key_directory(options, "cli", config_dir))
    return EventSubscriber(context or zmq.Context.instance(), options, keys)
