"""The flag file ``master-away``: tells the jobs of a minion with several masters that one master has been away for long.

If a master is away, another main process of the minion takes over schedule and beacons. A scheduled job that was started for
the master that is away would wait minutes for it, and would block the next run of the same job. Such a job therefore reads
this flag and stops waiting.
"""

from __future__ import annotations

import logging
from pathlib import Path

from statecore.host.content import private_files

_LOG = logging.getLogger("saltern.minion")

_NAME = "master-away"

#: Seconds without a connection before the flag is set; a restarted master is back by then.
PATIENCE = 25.0


class AwayFlag:
    """Sets and removes the flag file ``master-away``; the main process owns it. Times are monotonic seconds."""

    def __init__(self, state: Path, *, shared: bool) -> None:
        """Remove a flag file that an earlier process left. ``state``: directory of the minion's files about this
        master. ``shared``: whether other main processes of the minion have other masters.
        """
        self._file = state / _NAME
        self._shared = shared
        self._since: float | None = None
        self._written = False
        self._write(False)

    def check(self, *, connected: bool, now: float) -> None:
        """Write the flag file ``master-away`` if there has been no connection to the master for a while and the minion
        has other masters; otherwise remove it.
        """
        if connected:
            self._since = None
        elif self._since is None:
            self._since = now
        away = self._shared and self._since is not None and now - self._since >= PATIENCE
        if away != self._written:
            self._write(away)

    def _write(self, away: bool) -> None:
        self._written = away
        try:
            if away:
                private_files.touch(self._file)
            else:
                self._file.unlink(missing_ok=True)
        except OSError as error:
            _LOG.error("the flag that the master is away cannot be written: %s: %s", self._file, error.strerror)


def is_away(state: Path) -> bool:
    """Return whether the flag file ``master-away`` exists. Jobs that wait for the master call this."""
    return (state / _NAME).exists()
