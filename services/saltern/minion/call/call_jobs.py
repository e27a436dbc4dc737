"""Registers a ``salt-call`` among the running jobs of its host, because a host allows only one state run at a time."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from saltern.kit.config.minion_options import MinionOptions
from statecore.host.content import private_files
from statecore.runtime.state_runs.running_jobs import ProcDirectory


def directory(options: MinionOptions, fun: str) -> ProcDirectory | None:
    """Return the directory in which running jobs of this host are registered; None if this user cannot write there.

    A missing directory is logged: as a warning if ``fun`` belongs to the module ``state``, else at level info.
    """
    directory_path = Path(options.cachedir) / "proc"
    try:
        private_files.top(Path(options.cachedir))
        procs = ProcDirectory(directory_path)
        writable = os.access(directory_path, os.W_OK)
    except OSError:
        writable = False
    if writable:
        return procs
    logging.getLogger("saltern.minion").log(
        logging.WARNING if fun.startswith("state.") else logging.INFO,
        "other jobs on this host are not known here, nor is this one to them: %s is not for this user to write to",
        directory_path,
    )
    return None
