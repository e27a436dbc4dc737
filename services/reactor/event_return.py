"""Events for users' returners (``event_return``): each gets lists of ``{"tag", "data"}``, in the order of the bus.

A thread of the reactor's process, with a subscription and modules of its own: a returner that is slow holds no reaction.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import zmq

from services.kit.bus import EventSubscriber
from services.kit.config import MasterOptions
from services.kit.links import LinkKeys
from statecore.errors import NotAvailable
from statecore.runtime import Runtime

_LOG = logging.getLogger("saltern.reactor")

#: Seconds to wait for an event before the time and the end are looked at.
_TURN = 0.5

#: Events that are kept together at most, whatever the options say.
_MOST = 10_000


def wanted(tag: str, whitelist: Sequence[str], blacklist: Sequence[str]) -> bool:
    """Whether an event goes to returners: its tag is one of the list, if there is one, and none of the other."""
    return (not whitelist or any(fnmatchcase(tag, one) for one in whitelist)) and not any(
        fnmatchcase(tag, one) for one in blacklist
    )


class EventReturns:
    """Collects events and hands them on."""

    def __init__(self, options: MasterOptions, runtime: Runtime, clock: Callable[[], float] = time.monotonic) -> None:
        given = options.event_return
        self.names = [given] if isinstance(given, str) else list(given)
        self._options = options
        self._runtime = runtime
        self._clock = clock
        self._events: list[dict[str, Any]] = []
        self._since = 0.0

    def feed(self, tag: str, data: Mapping[str, Any]) -> None:
        """Takes an event; hands all on when there are more than ``event_return_queue``."""
        options = self._options
        if not wanted(tag, options.event_return_whitelist, options.event_return_blacklist):
            return
        if not self._events:
            self._since = self._clock()
        self._events.append({"tag": tag, "data": dict(data)})
        if len(self._events) > min(options.event_return_queue, _MOST):
            self.flush()
        else:
            self.turn()

    def turn(self) -> None:
        """Hands on what has waited for ``event_return_queue_max_seconds``."""
        longest = self._options.event_return_queue_max_seconds
        if self._events and longest and self._clock() - self._since >= longest:
            self.flush()

    def flush(self) -> None:
        """Hands everything on. A returner that fails is in the log, and not in the way of the others."""
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


def follow(
    options: MasterOptions,
    keys: LinkKeys,
    context: zmq.Context[zmq.Socket[bytes]],
    runtime: Callable[[], Runtime],
    ended: threading.Event,
) -> None:
    """Hands events on until ``ended`` is set. To be run in a thread of its own."""
    subscriber = EventSubscriber(context, options, keys)
    try:
        subscriber.subscribe("")
        returns = EventReturns(options, runtime())
        while not ended.is_set():
            event = subscriber.next(_TURN)
            if event is not None:
                returns.feed(*event)
            returns.turn()
        returns.flush()
    finally:
        subscriber.close()
