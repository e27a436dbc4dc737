"""Copies the master's events to returners (option ``event_return``).

A returner gets lists of ``{"tag", "data"}`` in the order of the events. A thread of the reactor with its own connections and
modules does this, so that a slow returner delays no reaction. The thread reads the stream of events in Redis as a consumer
group: events that came while no reactor ran are delivered afterwards, and several reactors share the events.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from masterstore.store import Store
from saltern.kit.config.master import MasterOptions
from saltern.kit.links.event_bus import unpack
from saltern.reactor.following import BLOCK_SECONDS, follow_until
from statecore.model.errors import NotAvailable
from statecore.system.returner_settings import without_settings

if TYPE_CHECKING:
    from statecore.runtime.runtime import Runtime

_LOG = logging.getLogger("saltern.reactor")

#: Name of the group on the stream of events.
GROUP = "event_return"

#: Most events read at once.
_BATCH = 100

#: Seconds between signs of life; milliseconds of silence after which another reactor takes over; seconds between registrations.
_ALIVE_EVERY = 1.0
_SILENCE_MS = 5000
_ANNOUNCE_EVERY = 3600.0

#: Upper limit of event_return_queue.
_MOST = 10_000


def wanted(tag: str, whitelist: Sequence[str], blacklist: Sequence[str]) -> bool:
    """Return whether an event with this tag goes to returners: it matches the whitelist, if there is one, and not the blacklist."""
    return (not whitelist or any(fnmatchcase(tag, one) for one in whitelist)) and not any(
        fnmatchcase(tag, one) for one in blacklist
    )


class EventReturns:
    """Collects events and passes them to the returners of ``event_return`` in batches."""

    def __init__(self, options: MasterOptions, runtime: Runtime, clock: Callable[[], float] = time.monotonic) -> None:
        given = options.event_return
        self.names = [given] if isinstance(given, str) else list(given)
        self._options = options
        self._runtime = runtime
        self._clock = clock
        self._events: list[dict[str, object]] = []
        self._since = 0.0
        #: Stream ids of collected events, and of events that can be acknowledged.
        self._queued_ids: list[str] = []
        self._settled_ids: list[str] = []

    def take_settled(self) -> list[str]:
        """Return the stream ids of events that were delivered or skipped since the last call."""
        ids, self._settled_ids = self._settled_ids, []
        return ids

    def feed(self, tag: str, data: Mapping[str, object], stream_id: str = "") -> None:
        """Add an event to the next batch; deliver the batch if it has more than ``event_return_queue`` events."""
        options = self._options
        if not wanted(tag, options.event_return_whitelist, options.event_return_blacklist):
            self._settled_ids.append(stream_id)
            return
        self._queued_ids.append(stream_id)
        if not self._events:
            self._since = self._clock()
        self._events.append({"tag": tag, "data": without_settings(data)})
        if len(self._events) > min(options.event_return_queue, _MOST):
            self.flush()
        else:
            self.flush_overdue()

    def flush_overdue(self) -> None:
        """Deliver the batch of events if the oldest has waited for ``event_return_queue_max_seconds``."""
        longest = self._options.event_return_queue_max_seconds
        if self._events and longest and self._clock() - self._since >= longest:
            self.flush()

    def flush(self) -> None:
        """Deliver the batch of events. If a returner fails, the error is logged and the other returners still get the events."""
        events, self._events = self._events, []
        if not events:
            return
        for name in self.names:
            try:
                served, function = self._runtime.loader.function(
                    "returners", f"{name}.event_return", self._runtime.context
                )
                served.bound(function, self._runtime.context)([dict(event) for event in events])
            except NotAvailable as missing:
                _LOG.error("event_return: %d events are not stored: %s", len(events), missing)
            except Exception as error:  # noqa: BLE001 - a user's returner may raise anything
                _LOG.error("event_return: the returner %s did not store %d events: %s", name, len(events), error)
        self._settled_ids += self._queued_ids
        self._queued_ids = []


class Follower:
    """Reads the master's events from Redis for ``event_return``; several reactors share the events."""

    def __init__(self, store: Store, returns: EventReturns, options: MasterOptions) -> None:
        self._store = store
        self._returns = returns
        self._wanted = options.event_return_whitelist or ["*"]
        self._name = f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"
        self._alive_at = -_ANNOUNCE_EVERY
        self._announced_at = -_ANNOUNCE_EVERY

    def poll(self) -> bool:
        """Wait up to half a second for events, and deliver the batches that are due; return True. Raises StoreError."""
        groups, now = self._store.event_groups, time.monotonic()
        if now - self._announced_at >= _ANNOUNCE_EVERY:
            self._store.events.want(GROUP, self._wanted)
            self._announced_at = now
        events = []
        if now - self._alive_at >= _ALIVE_EVERY:
            groups.create(GROUP, int(time.time() * 1000))
            events += [event for event, _ in groups.claim(GROUP, self._name, _SILENCE_MS, _BATCH)]
            self._alive_at = now
        batch = groups.read(GROUP, self._name, int(BLOCK_SECONDS * 1000), _BATCH)
        events += batch.events if batch is not None else []
        for event in events:
            found = unpack(event.frame) if event.to in ("", GROUP) else None
            if found is None:
                groups.done(GROUP, [event.id])
            else:
                self._returns.feed(*found, event.id)
        self._returns.flush_overdue()
        groups.done(GROUP, self._returns.take_settled())
        return True

    def close(self) -> None:
        """Deliver all collected events and stop reading. Raises StoreError."""
        self._returns.flush()
        self._store.event_groups.done(GROUP, self._returns.take_settled())
        self._store.event_groups.leave(GROUP, self._name)


def follow(
    options: MasterOptions,
    open_store: Callable[[str], Store],
    runtime: Callable[[], Runtime],
    ended: threading.Event,
) -> None:
    """Deliver events to the returners of ``event_return`` until ``ended`` is set. Runs in a thread of its own.

    ``open_store`` opens a Store; its argument is the name that Redis shows for the connection.
    """
    follow_until(Follower(open_store("event-return"), EventReturns(options, runtime()), options), "event_return", ended)
