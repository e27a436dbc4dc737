"""Passes each event of the master's bus to the API's listeners, and to the requests that wait for a job.

An event has an id that every replica of the API computes alike: ``<milliseconds>-<digest of the frame>``. Workers
store the same frame in Redis, so a listener that lost its connection can continue at any replica.

Source: docs/api.md#events
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from saltern.kit.jobs.job_feed import JobFeed
from saltern.kit.links.event_bus import unpack

#: Form of an event's id.
EVENT_ID = re.compile(r"(\d{1,15})-([0-9a-f]{16})")


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """One event as listeners get it: its id, its tag, and the JSON text ``{"tag": ..., "data": ...}``."""

    id: str
    tag: str
    text: str
    #: The event's data, by which it is decided who sees it; do not change it.
    data: Mapping[str, object] = field(default_factory=dict)

    def sse(self) -> bytes:
        """Return the event as bytes in the format of Server-Sent Events. The lines ``tag`` and ``data`` are those of
        Salt's API; ``id`` is added.
        """
        tag = self.tag.replace("\r", " ").replace("\n", " ")
        return f"tag: {tag}\ndata: {self.text}\nid: {self.id}\n\n".encode()


@dataclass(eq=False)
class Listener:
    """A listener's queue of events to write. ``lost`` is set when an event found the queue full; the listener's stream
    then ends.
    """

    queue: asyncio.Queue[FeedEvent]
    lost: asyncio.Event = field(default_factory=asyncio.Event)


def event_of_frame(frame: bytes) -> FeedEvent | None:
    """Return one event of the master in the form in which the HTTP API streams it to its listeners: id, tag and JSON text.

    ``frame``: the event as the bytes of Salt's event bus (tag, a separator, the data in msgpack); Redis keeps the same bytes.
    Return None if the bytes are no such event.
    """
    event = unpack(frame)
    if event is None:
        return None
    tag, data = event
    return FeedEvent(id_of(frame, data), tag, json.dumps({"tag": tag, "data": data}, default=str), data)


def id_of(frame: bytes, data: Mapping[str, object]) -> str:
    """Return the id of an event, ``<milliseconds>-<digest>``: the time in its ``_stamp``, and the digest of its packed
    bytes.
    """
    try:
        stamp = datetime.fromisoformat(str(data.get("_stamp")))
        seconds = (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        seconds = time.time()
    return f"{max(0, int(seconds * 1000))}-{hashlib.sha256(frame).hexdigest()[:16]}"


class EventFeed(JobFeed):
    """Passes the events of the bus to the listeners, and to the requests that wait for a job."""

    def __init__(self, queue: int, dropped: Callable[[], None]) -> None:
        """Create a feed without listeners. ``queue``: most events that wait for one listener. ``dropped`` is called
        when the queue of a slow listener is full.
        """
        super().__init__(whole=True)
        self._size = queue
        self._on_drop = dropped
        self._listeners: set[Listener] = set()

    @property
    def listeners(self) -> int:
        """Return the number of listeners."""
        return len(self._listeners)

    def listen(self) -> Listener:
        """Return a new listener that gets every event from now on."""
        listener = Listener(asyncio.Queue(self._size))
        self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Stop putting events into the queue of a listener."""
        self._listeners.discard(listener)

    def receive(self, tag: str, frame: bytes) -> None:
        """Pass one event of the bus to the requests that wait for its job, and to all listeners. The data is unpacked
        only if there is one of them.
        """
        super().receive(tag, frame)
        if not self._listeners:
            return
        shown = event_of_frame(frame)
        if shown is None:
            return
        for listener in list(self._listeners):
            try:
                listener.queue.put_nowait(shown)
            except asyncio.QueueFull:
                listener.lost.set()
                self._listeners.discard(listener)
                self._on_drop()
