"""``salt-call`` among the jobs of its host: one state run at a time, whoever started it."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from saltern.kit.config.minion_options import MinionOptions
from statecore.runtime.state_runs.running_jobs import ProcDirectory


def directory(options: MinionOptions, fun: str) -> ProcDirectory | None:
    """Where jobs are known to each other; None where this user may not write, which the log tells who runs states."""
    place = Path(options.cachedir) / "proc"
    try:
        procs = ProcDirectory(place)
        writable = os.access(place, os.W_OK)
    except OSError:
        writable = False
    if writable:
        return procs
    logging.getLogger("saltern.minion").log(
        logging.WARNING if fun.startswith("state.") else logging.INFO,
        "other jobs on this host are not known here, nor is this one to them: %s is not for this user to write to",
        place,
    )
    return None
