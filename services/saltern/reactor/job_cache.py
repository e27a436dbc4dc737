"""Copies jobs and returns from the master to a returner (option ``master_job_cache``).

With ``ext_job_cache`` the minions send their returns to a returner themselves. Then only the jobs are copied, so that the
returner can attribute the returns. A thread of the reactor reads the stream of events in Redis as a consumer group: a slow
database delays no job, events that came meanwhile are delivered afterwards and in order, and several reactors share the
events. `salt` and `salt-run jobs.*` still read Redis.

The returner has Salt's functions ``save_load(jid, load, minions)`` and ``returner(ret)``.
Salt: salt/master.py, publish; salt/utils/job.py, store_job
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from masterstore.events import KeptEvent
from masterstore.store import Store
from saltern.kit.config.master import MasterOptions
from saltern.kit.config.reactor_rows import JOB_TAGS, LOAD_TAGS, has_ext_cache, has_own_cache
from saltern.kit.links.event_bus import unpack
from saltern.reactor.following import BLOCK_SECONDS, follow_until
from saltwire import tags
from statecore.model.errors import NotAvailable
from statecore.system.returner_settings import without_settings

if TYPE_CHECKING:
    from statecore.runtime.runtime import Runtime

_LOG = logging.getLogger("saltern.reactor")

#: Names of the groups on the stream of events: for master_job_cache, and for ext_job_cache (jobs alone).
GROUP = "job_cache"
LOADS_GROUP = "ext_job_cache"

#: Most events read at once.
_BATCH = 50

#: Seconds between signs of life; milliseconds of silence after which another reactor takes over.
_ALIVE_EVERY = 1.0
_SILENCE_MS = 5000

#: Seconds between two registrations of the wanted tags.
_ANNOUNCE_EVERY = 3600.0

#: Seconds between two calls of the returner's ``clean_old_jobs``.
_CLEAN_EVERY = 3600.0

#: Seconds before the second attempt, the third, and all others; number of attempts. After about ten minutes an event is dead.
PAUSES = (1.0, 5.0, 30.0)
TRIES = 22


class JobCache:
    """Reads the events of jobs and returns, and calls the returner of ``master_job_cache`` or ``ext_job_cache`` for each."""

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        name: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        loads_alone: bool = False,
    ) -> None:
        """Prepare to copy jobs and returns from the master to the returner ``name``.

        ``loads_alone``: copy jobs but no returns; a returner without ``save_load`` is then allowed.
        """
        self._store = store
        self._group = LOADS_GROUP if loads_alone else GROUP
        self._tags: tuple[str, ...] = LOAD_TAGS if loads_alone else JOB_TAGS
        self._option = "ext_job_cache" if loads_alone else "master_job_cache"
        self._loads_alone = loads_alone
        self._runtime = runtime
        self._returner = name
        self._missing_logged = False
        self._clock = clock
        self._name = f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"
        self._alive_at = self._announced_at = -_ANNOUNCE_EVERY
        self._cleaned_at = -_CLEAN_EVERY
        #: Events to deliver, oldest first; number of attempts for the oldest; time of its next attempt.
        self._events: list[KeptEvent] = []
        self._tries = 0
        self._due = 0.0

    def poll(self) -> bool:
        """Read events about jobs and returns, and pass them to the returner. Events that the returner refused are
        passed again after a pause.

        Return False if an event still waits for its next try, so that the caller must wait before the next call.
        Raises StoreError.
        """
        groups, now = self._store.event_groups, self._clock()
        if now - self._announced_at >= _ANNOUNCE_EVERY:
            self._store.events.want(self._group, self._tags)
            self._announced_at = now
        if not self._loads_alone and now - self._cleaned_at >= _CLEAN_EVERY:
            self._cleaned_at = now
            self._clean_old_jobs()
        if now - self._alive_at >= _ALIVE_EVERY:
            groups.create(self._group, int(time.time() * 1000))
            self._events += [event for event, _ in groups.claim(self._group, self._name, _SILENCE_MS, _BATCH)]
            self._alive_at = now
        if not self._events:
            batch = groups.read(self._group, self._name, int(BLOCK_SECONDS * 1000), _BATCH)
            self._events = batch.events if batch is not None else []
        while self._events and self._clock() >= self._due:
            event = self._events[0]
            why = self._deliver(event)
            if not why:
                groups.done(self._group, [event.id])
            elif self._tries < TRIES:
                self._due = self._clock() + PAUSES[min(self._tries - 1, len(PAUSES) - 1)]
                return False
            else:
                groups.bury(self._group, event, why, self._tries)
                _LOG.error("%s: event %s is given up after %d tries: %s", self._option, event.id, self._tries, why)
            self._events.pop(0)
            self._tries = 0
        return not self._events

    def close(self) -> None:
        """Stop reading events: leave the reactors' consumer group in Redis, so that other reactors take over the
        events that this one has not acknowledged. Raises StoreError.
        """
        self._store.event_groups.leave(self._group, self._name)

    def _clean_old_jobs(self) -> None:
        """Let the returner delete its old jobs, if it has the function; a failure is logged."""
        try:
            self._call("clean_old_jobs", ())
        except NotAvailable:
            return
        except Exception as error:  # noqa: BLE001 - a user's returner may raise anything
            _LOG.error("%s: the returner %s did not delete old jobs: %s", self._option, self._returner, error)

    def _deliver(self, event: KeptEvent) -> str:
        """Pass an event of a job or return to the returner that ``master_job_cache`` or ``ext_job_cache`` names. Return an
        empty text if the returner succeeded, else the reason.
        """
        self._tries += 1
        found = unpack(event.frame) if event.to in ("", self._group) else None
        if found is None:
            return ""
        tag, data = found
        try:
            self._call_returner(tag, data)
        except NotAvailable as missing:
            why = str(missing)
            if self._loads_alone:
                self._log_missing(why)
                return ""
        except Exception as error:  # noqa: BLE001 - a user's returner may raise anything
            why = f"{type(error).__name__}: {error}"
        else:
            return ""
        if self._tries == 1:
            _LOG.error("%s: the returner %s did not take %s, which waits: %s", self._option, self._returner, tag, why)
        return why

    def _log_missing(self, why: str) -> None:
        if not self._missing_logged:
            _LOG.error("%s: the returner gets no jobs: %s", self._option, why)
        self._missing_logged = True

    def _call_returner(self, tag: str, data: Mapping[str, object]) -> None:
        about = tags.parse(tag)
        if about is None or about.kind not in _CALLS or (self._loads_alone and about.kind != "job_new"):
            return
        # A job that its minion started itself has no event of its own; its return contains the job's fields.
        if about.kind == "job_ret" and "tgt" in data:
            self._call("save_load", _own_job_arguments(dict(data)))
        name, arguments = _CALLS[about.kind]
        self._call(name, arguments(dict(data)))

    def _call(self, name: str, arguments: tuple[object, ...]) -> None:
        served, function = self._runtime.loader.function("returners", f"{self._returner}.{name}", self._runtime.context)
        try:
            served.signature(function).bind(*arguments)
        except TypeError:
            # The function takes no third argument (the minions), as in some returners.
            arguments = arguments[:2]
        served.bound(function, self._runtime.context)(*arguments)


def _save_load_arguments(data: dict[str, object]) -> tuple[object, ...]:
    minions = data.pop("minions", [])
    return (
        str(data["jid"]),
        {name: value for name, value in data.items() if name not in ("_stamp", "missing")},
        minions,
    )


def _own_job_arguments(data: dict[str, object]) -> tuple[object, ...]:
    load = {name: data[name] for name in ("jid", "fun", "arg", "tgt", "tgt_type", "user") if name in data}
    return (str(data["jid"]), {"user": data["tgt"], **load}, [data["id"]])


def _returner_arguments(data: dict[str, object]) -> tuple[object, ...]:
    return ({name: value for name, value in without_settings(data).items() if name not in ("_stamp", "cmd")},)


#: Map of an event's kind to the returner's function and the arguments for it.
_CALLS: Mapping[str, tuple[str, Callable[[dict[str, object]], tuple[object, ...]]]] = {
    "job_new": ("save_load", _save_load_arguments),
    "job_ret": ("returner", _returner_arguments),
}


def follow(
    options: MasterOptions,
    open_store: Callable[[str], Store],
    runtime: Callable[[], Runtime],
    ended: threading.Event,
) -> None:
    """Copy jobs and returns to ``master_job_cache`` until ``ended`` is set. Runs in its own thread.

    ``open_store`` opens a Store; its argument is the name that Redis shows for the connection.
    """
    follow_until(JobCache(open_store("job-cache"), runtime(), options.master_job_cache), "master_job_cache", ended)


def follow_loads(
    options: MasterOptions,
    open_store: Callable[[str], Store],
    runtime: Callable[[], Runtime],
    ended: threading.Event,
) -> None:
    """Copy jobs to ``ext_job_cache`` until ``ended`` is set. Runs in its own thread.

    ``open_store`` opens a Store; its argument is the name that Redis shows for the connection.
    """
    follow_until(
        JobCache(open_store("ext-job-cache"), runtime(), options.ext_job_cache, loads_alone=True),
        "ext_job_cache",
        ended,
    )


#: Function of a follower's thread: (options, opens a Store for the name of a client, makes the Runtime, the end) -> None.
Follow: TypeAlias = "Callable[[MasterOptions, Callable[[str], Store], Callable[[], Runtime], threading.Event], None]"


def followers(options: MasterOptions) -> list[tuple[str, Follow]]:
    """Return (thread name, function) for each thread that copies jobs to a returner with these options; [] if none is set."""
    wanted = (("job-cache", follow, has_own_cache(options)), ("ext-job-cache", follow_loads, has_ext_cache(options)))
    return [(name, work) for name, work, needed in wanted if needed]
