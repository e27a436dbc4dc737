"""Jobs that this minion has had: it runs none twice, also when it was restarted between the two deliveries.

A publisher that comes back sends what it sent lately once more (see services/saltern/publisher); a minion that was restarted
meanwhile must know what it has had. Jobs that are not over yet are in the journal (``services/saltern/minion/jobs/journal.py``).
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from pathlib import Path

_LOG = logging.getLogger("saltern.minion")

#: The file is written anew when it holds so many times the JIDs that are remembered.
_SLACK = 10


class SeenJobs:
    """The last JIDs, in memory and in a file."""

    def __init__(self, path: Path, limit: int) -> None:
        """``limit``: how many are remembered (option minion_jid_queue_hwm). A file that cannot be read is a warning."""
        self._path = path
        self._limit = max(1, limit)
        lines: list[str] = []
        try:
            lines = path.read_text("ascii", "replace").split()
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            _LOG.warning("%s: %s; jobs of before this start may run a second time", path, error.strerror)
        self._jids = deque(lines, maxlen=self._limit)
        self._lines = len(lines)
        self._failed = False

    def __contains__(self, jid: str) -> bool:
        return jid in self._jids

    def add(self, jid: str) -> bool:
        """The job is over. False where that could not be written, which is said once and stops nothing; it may be tried again."""
        if jid not in self._jids:
            self._jids.append(jid)
        try:
            if self._lines >= self._limit * _SLACK:
                self._write_anew()
            else:
                with self._path.open("a", encoding="ascii") as file:
                    # What failed may have left a part of a line.
                    file.write(f"\n{jid}\n" if self._failed else f"{jid}\n")
                self._lines += 1
        except OSError as error:
            if not self._failed:
                _LOG.warning("%s: %s; a job may run a second time after a restart", self._path, error.strerror)
            self._failed = True
            return False
        self._failed = False
        return True

    def _write_anew(self) -> None:
        temporary = self._path.with_name(f".{self._path.name}")
        try:
            temporary.write_text("".join(f"{jid}\n" for jid in self._jids), "ascii")
            temporary.replace(self._path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
        self._lines = len(self._jids)
