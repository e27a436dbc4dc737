"""The jobs that the minion starts by itself: its schedule, its beacons, startup_states, ping_interval.

The modules for schedule and beacons are imported at their first use, so an idle minion stays small.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from saltern.kit.config.minion_options import MinionOptions
from saltern.minion.ipc.messages import JobLoad
from saltwire.jid import new_jid
from statecore.runtime.state_runs.running_jobs import ProcDirectory

if TYPE_CHECKING:
    from saltern.minion.duties.beacons import Beacons
    from saltern.minion.duties.schedule import Schedule

_SCHEDULE = "saltern.minion.duties.schedule"
_BEACONS = "saltern.minion.duties.beacons"

#: Seconds before the process that runs beacons is restarted after it ended by itself.
_PAUSE = 5.0


class Duties:
    """Schedule and beacons of a minion. They belong to the main process that holds the leader's lock."""

    def __init__(self, options: MinionOptions, send_events: Callable[[list[dict[str, object]]], None]) -> None:
        """Create the duties of a minion; ``update`` provides pillar and grains. ``send_events``: sends events to the master."""
        self._options = options
        self._send_events = send_events
        self._beacons: Beacons | None = None
        self._beacon_process_runs = False
        self._engines_run = False
        self._started = False
        self._resumed = False
        self._next_ping = 0.0
        self._not_before = 0.0
        self._procs = ProcDirectory(Path(options.cachedir) / "proc")
        self._pillar: Mapping[str, object] = {}
        self._grains: Mapping[str, object] = {}
        self._schedule: Schedule | None = None
        #: JID -> name of the job, for scheduled jobs whose jobber has not ended.
        self._running_jobs: dict[str, str] = {}

    def update(self, pillar: Mapping[str, object], grains: Mapping[str, object]) -> None:
        """Apply new pillar and grains to the minion's schedule and beacons. Call at the start and after each refresh."""
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
        """Record that another process of the minion was the leader before this one.

        startup_states are not run again, and the saved schedule is read.
        """
        self._started = self._resumed = True

    def beacon_process_due(self) -> bool:
        """Return whether the caller must start the beacon process now. After True the process counts as running."""
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
        """Record that the beacon process has ended. It may be started again after 5 seconds."""
        self._beacon_process_runs = False
        self._not_before = time.monotonic() + _PAUSE

    def engines_due(self) -> bool:
        """Return True, once, if the option ``engines`` names engines: the caller must then let the zygote run them.
        Afterwards return False.
        """
        if self._engines_run or not self._options.engines:
            return False
        self._engines_run = True
        return True

    def is_idle(self) -> bool:
        """Return whether there is no schedule, and no beacon process to start."""
        return self._schedule is None and (self._beacons is None or self._beacon_process_runs)

    def due(self) -> Iterator[JobLoad]:
        """Yield the loads of the jobs that the minion must start by itself now: startup_states once, and jobs of its schedule."""
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
        """Fire the event ``minion_ping`` if ``ping_interval`` minutes have passed since the last one. The first call
        only starts the interval.
        """
        if not self._options.ping_interval or time.monotonic() < self._next_ping:
            return
        if self._next_ping:
            self._send_events([{"tag": "minion_ping", "data": {"data": "ping", "id": self._options.id}}])
        self._next_ping = time.monotonic() + 60 * self._options.ping_interval

    def job_ended(self, jid: str) -> None:
        """Record that the jobber of a scheduled job with this JID has ended."""
        self._running_jobs.pop(jid, None)

    def zygote_lost(self) -> None:
        """Record that the zygote has died and reports no more ends of jobs.

        Scheduled jobs that still run are found by their files in ``proc``.
        """
        self._running_jobs.clear()
        self._beacon_process_runs = self._engines_run = False

    def answer(self, request: Mapping[str, object]) -> Mapping[str, object]:
        """Return the answer map for a control request of a job or of salt-call: ``area`` "schedule" or "beacons", and a ``verb``.

        Raise ValueError for an unknown area or verb.
        """
        area = request.get("area")
        if area == "schedule":
            return (self._schedule or self._make_schedule()).manage(request)
        if area == "beacons":
            return (self._beacons or self._make_beacons()).manage(request)
        raise ValueError(f"a control request has the unknown area {area}; use schedule or beacons")

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

    def _own_jobs(self) -> dict[str, object]:
        """Return the scheduled jobs that the minion adds itself (mine, grains refresh) as a map of Salt's name to definition."""
        options = self._options
        jobs: dict[str, object] = {}
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
        """Return the load of the job of ``startup_states``: state.highstate, state.sls or state.top."""
        options = self._options
        fun: str
        arg: list[object]
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
        """Return the number of running jobs with this name in the schedule, also those started before the last restart."""
        found = {str(job["jid"]) for job in self._procs.running() if job.get("schedule") == name}
        return len(found.union(jid for jid, job in self._running_jobs.items() if job == name))
