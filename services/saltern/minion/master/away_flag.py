"""Whether the master of one of several processes has been away for long, as its jobs are told by a file.

What the minion does by itself is another process's turn by then. A job that this one had begun for it would wait for its request's
end, minutes, and hold up the next run of the same job: no more of it may run at once.
"""

from __future__ import annotations

import logging
from pathlib import Path

_LOG = logging.getLogger("saltern.minion")

_NAME = "master-away"

#: Seconds: a master that is merely restarted is back by then.
PATIENCE = 25.0


class AwayFlag:
    """Belongs to the main process. Times are monotonic seconds."""

    def __init__(self, state: Path, *, shared: bool) -> None:
        """``state``: where what belongs to this master is kept. ``several``: other processes have other masters."""
        self._file = state / _NAME
        self._shared = shared
        self._since: float | None = None
        self._written = False
        self._write(False)

    def check(self, *, connected: bool, now: float) -> None:
        """``hears``: whether there is a connection to the master."""
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
                self._file.touch()
            else:
                self._file.unlink(missing_ok=True)
        except OSError as error:
            _LOG.error("jobs cannot be told whether the master is away: %s: %s", self._file, error.strerror)


def is_away(state: Path) -> bool:
    """What a job asks while it waits."""
    return (state / _NAME).exists()
