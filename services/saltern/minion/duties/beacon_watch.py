"""The process that runs a minion's beacons. It is forked from the zygote when a beacon is configured, and ends when none is.

Once a second it sends the events of the beacons to the main process, over the control socket, and receives the list of beacons.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from saltern.minion.ipc.control import MinionNotRunning, ask
from saltern.minion.ipc.messages import ControlRequest
from statecore.runtime.beacon_runs import BeaconRuns
from statecore.runtime.runtime import Runtime
from statecore.runtime.state_runs.running_jobs import ProcDirectory

_LOG = logging.getLogger("saltern.minion")

#: Seconds between two rounds of all beacons: Salt's loop_interval.
_LOOK = 1.0

#: Seconds to wait for the main process, which may be signing in.
_PATIENCE = 300.0

_STATE_RUN = re.compile(r"state\b")


def watch(runtime: Runtime, cachedir: Path, parent: int) -> None:
    """Run the minion's beacons until none is configured or the minion has ended. ``parent``: process id of the zygote."""
    runs = BeaconRuns(runtime.loader, runtime.context)
    procs = ProcDirectory(cachedir / "proc")
    run_loop(runs, lambda request: ask(cachedir, request, _PATIENCE), lambda: _states_run(procs), parent)


def run_loop(
    runs: BeaconRuns,
    ask_minion: Callable[[ControlRequest], Mapping[str, object]],
    states_run: Callable[[], bool],
    parent: int,
) -> None:
    """Run all beacons once a second and send their events to the main process.

    ``ask_minion``: sends a control request and returns the answer. ``states_run``: returns whether a state run is in progress.
    """
    events: list[dict[str, object]] = []
    done: list[str] = []
    while os.getppid() == parent:
        try:
            beacons = ask_minion({"area": "beacons", "verb": "look", "events": events, "done": done})["beacons"]
        except MinionNotRunning as error:
            _LOG.info("the process that runs beacons ends: %s", error)
            return
        if not isinstance(beacons, Mapping) or not any(name != "enabled" for name in beacons):
            return
        began = time.monotonic()
        events, done = runs.call_due(beacons, began, states_run)
        if not done:
            time.sleep(max(0.0, began + _LOOK - time.monotonic()))


def _states_run(procs: ProcDirectory) -> bool:
    return any(_STATE_RUN.match(str(job.get("fun"))) for job in procs.running())
