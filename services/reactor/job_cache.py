"""A second job cache, of the site's own (``master_job_cache``): jobs and returns go to a returner on the master, too.

A thread of the reactor's process reads them from the stream of events, as a group: a database that is slow or away holds no job and
no minion, what came meanwhile is handed on afterwards, in order, and of several reactors each hands on its own. Redis stays what
`salt` and `salt-run jobs.*` read. The returner's functions are Salt's: ``save_load(jid, load, minions)`` and ``returner(ret)``.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from masterstore.errors import StoreError
from masterstore.events import KeptEvent
from masterstore.store import Store
from saltwire import tags
from services.kit.bus import unpack
from services.kit.config import MasterOptions
from services.kit.reactor_rows import JOB_TAGS
from statecore.errors import NotAvailable
from statecore.runtime import Runtime

_LOG = logging.getLogger("saltern.reactor")

#: Name of the group on the stream of events.
GROUP = "job_cache"

#: Events taken at once.
_BATCH = 50

#: Seconds to wait for an event; between signs of life; the silence (milliseconds) after which another reactor takes over.
_TURN = 0.5
_SIGN_EVERY = 1.0
_SILENCE = 5000

#: Seconds between two times that the wish is said.
_WISH_EVERY = 3600.0

#: Seconds before an event is tried again, and how often: for some ten minutes. Then it is buried, so that the next get their turn.
PAUSES = (1.0, 5.0, 30.0)
TRIES = 22


class JobCache:
    """One reader of the group."""

    def __init__(self, store: Store, runtime: Runtime, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        """``name``: of the returner."""
        self._store = store
        self._runtime = runtime
        self._returner = name
        self._clock = clock
        self._name = f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"
        self._signed = self._wished = -_WISH_EVERY
        #: Events in hand, oldest first; how often the oldest was tried; when it is due.
        self._events: list[KeptEvent] = []
        self._tries = 0
        self._due = 0.0

    def turn(self) -> bool:
        """Takes what there is and hands on what is due; False where it has to wait. Raises StoreError."""
        groups, now = self._store.event_groups, self._clock()
        if now - self._wished >= _WISH_EVERY:
            self._store.events.want(GROUP, JOB_TAGS)
            self._wished = now
        if now - self._signed >= _SIGN_EVERY:
            groups.create(GROUP, int(time.time() * 1000))
            self._events += [event for event, _ in groups.claim(GROUP, self._name, _SILENCE, _BATCH)]
            self._signed = now
        if not self._events:
            batch = groups.read(GROUP, self._name, int(_TURN * 1000), _BATCH)
            self._events = batch.events if batch is not None else []
        while self._events and self._clock() >= self._due:
            event = self._events[0]
            why = self._handed_on(event)
            if not why:
                groups.done(GROUP, [event.id])
            elif self._tries < TRIES:
                self._due = self._clock() + PAUSES[min(self._tries - 1, len(PAUSES) - 1)]
                return False
            else:
                groups.bury(GROUP, event, why, self._tries)
                _LOG.error("master_job_cache: event %s is given up after %d tries: %s", event.id, self._tries, why)
            self._events.pop(0)
            self._tries = 0
        return not self._events

    def close(self) -> None:
        """What is in hand is for the next. Raises StoreError."""
        self._store.event_groups.leave(GROUP, self._name)

    def _handed_on(self, event: KeptEvent) -> str:
        """Empty once the returner has it, else why not."""
        self._tries += 1
        found = unpack(event.frame) if event.to in ("", GROUP) else None
        if found is None:
            return ""
        tag, data = found
        try:
            self._hand_on(tag, data)
        except NotAvailable as missing:
            why = str(missing)
        except Exception as error:  # noqa: BLE001 - a user's returner may raise anything
            why = f"{type(error).__name__}: {error}"
        else:
            return ""
        if self._tries == 1:
            _LOG.error("master_job_cache: the returner %s did not take %s, which waits: %s", self._returner, tag, why)
        return why

    def _hand_on(self, tag: str, data: Mapping[str, Any]) -> None:
        about = tags.parse(tag)
        if about is None or about.kind not in _CALLS:
            return
        name, arguments = _CALLS[about.kind]
        served, function = self._runtime.loader.function("returners", f"{self._returner}.{name}", self._runtime.context)
        served.bound(function, self._runtime.context)(*arguments(dict(data)))


def _of_load(data: dict[str, Any]) -> tuple[Any, ...]:
    minions = data.pop("minions", [])
    return (
        str(data["jid"]),
        {name: value for name, value in data.items() if name not in ("_stamp", "missing")},
        minions,
    )


def _of_return(data: dict[str, Any]) -> tuple[Any, ...]:
    return ({name: value for name, value in data.items() if name not in ("_stamp", "cmd")},)


#: Kind of an event -> function of the returner, and what it is called with.
_CALLS: Mapping[str, tuple[str, Callable[[dict[str, Any]], tuple[Any, ...]]]] = {
    "job_new": ("save_load", _of_load),
    "job_ret": ("returner", _of_return),
}


def follow(options: MasterOptions, runtime: Callable[[], Runtime], ended: threading.Event) -> None:
    """Hands jobs and returns on until ``ended`` is set. To be run in a thread of its own."""
    cache = JobCache(Store.open(options.redis_url, client_name="job-cache"), runtime(), options.master_job_cache)
    away = False
    while not ended.is_set():
        try:
            going = cache.turn()
            away = False
        except StoreError as error:
            if not away:
                _LOG.error("master_job_cache: %s; jobs and returns wait until that is over", error)
            away, going = True, False
        if not going:
            ended.wait(_TURN)
    try:
        cache.close()
    except StoreError as error:
        _LOG.error("master_job_cache: %s; what is in hand comes again", error)
