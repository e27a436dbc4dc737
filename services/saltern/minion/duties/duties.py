"""What the minion does by itself, beside the jobs that the master publishes: its schedule, its beacons, states at its start.

Nothing of it is loaded before there is something to do: an idle minion pays for a few attributes.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saltern.kit.config.minion_options import MinionOptions
from saltern.minion.ipc.messages import JobLoad
from saltwire.jid import new_jid
from statecore.runtime.state_runs.running_jobs import ProcDirectory

if TYPE_CHECKING:
    from saltern.minion.duties.beacons import Beacons
    from saltern.minion.duties.schedule import Schedule

_SCHEDULE = "saltern.minion.duties.schedule"
_BEACONS = "saltern.minion.duties.beacons"

#: Seconds before the process of the beacons is started again that ended by itself.
_PAUSE = 5.0


class Duties:
    """Belongs to the main process."""

    def __init__(self, options: MinionOptions, send_events: Callable[[list[dict[str, Any]]], None]) -> None:
        """``tell`` sends events to the master."""
        self._options = options
        self._send_events = send_events
        self._beacons: Beacons | None = None
        self._beacon_process_runs = False
        self._started = False
        self._resumed = False
        self._next_ping = 0.0
        self._not_before = 0.0
        self._procs = ProcDirectory(Path(options.cachedir) / "proc")
        self._pillar: Mapping[str, Any] = {}
        self._grains: Mapping[str, Any] = {}
        self._schedule: Schedule | None = None
        #: Scheduled jobs from when they are handed out until their process ended: jid -> name of the job.
        self._running_jobs: dict[str, str] = {}

    def update(self, pillar: Mapping[str, Any], grains: Mapping[str, Any]) -> None:
        """Pillar and grains, at the start and whenever they were read anew."""
        self._pillar, self._grains = pillar, grains
        if self._schedule is not None:
            self._schedule.update(pillar, grains, self._own_jobs())
        elif self._options.schedule or pillar.get("schedule") or self._own_jobs() or self._saved_elsewhere():
            self._make_schedule()
        if self._resumed and self._schedule is not None:
            self._schedule.resume()
        self._resumed = False
        if self._beacons is not None:
            self._beacons.update(pillar)
        elif self._options.beacons or pillar.get("beacons"):
            self._make_beacons()

    def resume(self) -> None:
        """Another process had these before: what is done at the start was done, and jobs may have been changed there."""
        self._started = self._resumed = True

    def beacon_process_due(self) -> bool:
        """Whether a process for the beacons is to be started now. Who asks starts it."""
        if (
            self._beacons is None
            or self._beacon_process_runs
            or not self._beacons.any
            or time.monotonic() < self._not_before
        ):
            return False
        self._beacon_process_runs = True
        return True

    def beacon_process_ended(self) -> None:
        """The process of the beacons has ended."""
        self._beacon_process_runs = False
        self._not_before = time.monotonic() + _PAUSE

    def due(self) -> Iterator[JobLoad]:
        """Loads of the jobs that are to run now."""
        if self._options.startup_states and not self._started:
            yield self._startup()
        self._started = True
        self._ping()
        if self._schedule is None:
            return
        for load in self._schedule.due(self._running):
            self._running_jobs[load["jid"]] = load["schedule"]
            yield load

    def _ping(self) -> None:
        """Tells the master each ``ping_interval`` that the minion is there."""
        if not self._options.ping_interval or time.monotonic() < self._next_ping:
            return
        if self._next_ping:
            self._send_events([{"tag": "minion_ping", "data": {"data": "ping", "id": self._options.id}}])
        self._next_ping = time.monotonic() + 60 * self._options.ping_interval

    def job_ended(self, jid: str) -> None:
        """A job's process is gone."""
        self._running_jobs.pop(jid, None)

    def zygote_lost(self) -> None:
        """Who would tell of the end of jobs has died; those that still run have files of their own."""
        self._running_jobs.clear()
        self._beacon_process_runs = False

    def answer(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """To a request of a job or of salt-call. Raises ValueError for one that is none."""
        area = request.get("area")
        if area == "schedule":
            return (self._schedule or self._make_schedule()).manage(request)
        if area == "beacons":
            return (self._beacons or self._make_beacons()).manage(request)
        raise ValueError(f"the minion has no {area}")

    def _saved_elsewhere(self) -> bool:
        return self._resumed and Path(self._options.schedule_file).is_file()

    def _make_schedule(self) -> Schedule:
        options = self._options
        made: Schedule = importlib.import_module(_SCHEDULE).Schedule(
            options.id,
            options.schedule,
            Path(options.schedule_file),
            returners=options.schedule_returner,
        )
        self._schedule = made
        made.update(self._pillar, self._grains, self._own_jobs())
        return made

    def _own_jobs(self) -> dict[str, Any]:
        """Jobs of the schedule that nobody wrote down, by Salt's names."""
        options = self._options
        jobs: dict[str, Any] = {}
        if options.mine_enabled and (options.mine_functions or self._pillar.get("mine_functions")):
            jobs["__mine_interval"] = {
                "function": "mine.update",
                "minutes": options.mine_interval,
                "maxrunning": 2,
                "run_on_start": True,
                "return_job": options.mine_return_job,
            }
        if options.grains_refresh_every:
            jobs["__update_grains"] = {
                "function": "saltutil.refresh_grains",
                "minutes": abs(options.grains_refresh_every),
                "run_on_start": False,
                "return_job": False,
            }
        return jobs

    def _startup(self) -> JobLoad:
        """The job of ``startup_states``."""
        options = self._options
        fun: str
        arg: list[Any]
        if options.startup_states == "sls":
            fun, arg = "state.sls", [options.sls_list]
        elif options.startup_states == "top":
            fun, arg = "state.top", [options.top_file]
        else:
            fun, arg = "state.highstate", []
        jid = new_jid(time.time())
        return {"jid": jid, "fun": fun, "arg": arg, "tgt": options.id, "tgt_type": "glob", "own": True}

    def _make_beacons(self) -> Beacons:
        options = self._options
        made: Beacons = importlib.import_module(_BEACONS).Beacons(
            options.beacons, Path(options.beacons_file), self._send_events
        )
        self._beacons = made
        made.update(self._pillar)
        return made

    def _running(self, name: str) -> int:
        """How many jobs of this name run: those of an earlier start of the minion too."""
        found = {str(job["jid"]) for job in self._procs.running() if job.get("schedule") == name}
        return len(found.union(jid for jid, job in self._running_jobs.items() if job == name))
