"""The runners that the master starts at set times: the option ``schedule`` of its configuration.

Every replica of the role maintenance evaluates the schedule, so that a replica that takes over knows which jobs were due
already. The replica with the lock starts the runners.
"""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from statecore.system.scheduling.due import Clock, Progress, ScheduleSettings, check
from statecore.system.scheduling.job import GLOBAL, Job, arguments_of, unknown_options

_LOG = logging.getLogger("saltern.maintenance")

#: Returns a random number from the first to the second one.
Draw = Callable[[int, int], int]


@dataclass(frozen=True)
class Due:
    """A runner that the master's schedule starts now: job name, function, arguments, and the id of the request to start it."""

    name: str
    fun: str
    arg: list[object]
    kwarg: dict[str, object]
    request_id: str


@dataclass
class _Entry:
    """A job of the master's schedule, with the times of its last and next run."""

    job: Job
    data: Mapping[str, object]
    progress: Progress = field(default_factory=Progress)
    #: JIDs of the runners that it started.
    begun: list[str] = field(default_factory=list)


def now() -> Clock:
    """Return the current wall-clock time and the seconds since boot."""
    return Clock(datetime.now(), time.clock_gettime(time.CLOCK_BOOTTIME))


class ScheduledRunners:
    """The runners in the master's option ``schedule``, each with the times of its last and next run. A malformed job
    of the schedule is left out and logged as an error.
    """

    def __init__(self, whole: Mapping[str, Any], draw: Draw = random.randint, clock: Callable[[], Clock] = now) -> None:
        self._whole = whole
        self._draw = draw
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        moment = clock().wall
        for name, data in whole.items():
            if name in GLOBAL:
                continue
            try:
                self._entries[name] = _Entry(Job.of(str(name), data, whole, {}, moment), data)
                for fault in unknown_options(data):
                    _LOG.warning("the job %s of the schedule: %s", name, fault)
            except ValueError as error:
                self._entries.pop(name, None)
                _LOG.error("the job %s of the schedule is left out: %s", name, error)

    def due(self, running: Collection[str]) -> Iterator[Due]:
        """Yield the runners of the master's schedule to start now.

        ``running``: JIDs of all running runners; a job with ``maxrunning`` of them is skipped.
        """
        clock = self._clock()
        world = ScheduleSettings(
            enabled=bool(self._whole.get("enabled", True)), skip_function=str(self._whole.get("skip_function") or "")
        )
        for name, entry in list(self._entries.items()):
            try:
                seen = check(entry.job, entry.progress, clock, world, self._draw)
            except ValueError as error:
                _LOG.error("the job %s of the schedule is left out: %s", name, error)
                del self._entries[name]
                continue
            entry.progress = seen.progress
            entry.begun = [jid for jid in entry.begun if jid in running]
            if not seen.function:
                continue
            if len(entry.begun) >= entry.job.maxrunning:
                _LOG.info("the job %s of the schedule still runs (maxrunning)", name)
            elif entry.job.dry_run:
                _LOG.info("the job %s of the schedule is due, and not run: dry_run", name)
            else:
                arg, kwarg = arguments_of(entry.data)
                yield Due(name, seen.function, arg, kwarg, os.urandom(16).hex())

    def began(self, due: Due, jid: str) -> None:
        """Record that a runner of the schedule was started with this JID."""
        if due.name in self._entries:
            self._entries[due.name].begun.append(jid)
