"""The journal: files that make sure that each job runs at most once and gets a return, whichever process is killed.

A job in progress is a file of ``<state>/journal`` that holds its load. The file's name is the step that the job has reached:

    <jid>.received               the main process has the job; no jobber has begun it
    <jid>.began.<pid>.<birth>    the jobber with this pid and start time runs it
    <jid>.ended                  its return is in the spool

A step is a rename, which succeeds for one process only: if two jobbers begin the same job, the second finds no file. ``began``
is on the disk before the job executes, so the job does not run again after a power cut. Ended jobs are lines of
``<state>/jids``; the file is removed when the line is written. ``<state>/asked`` holds the time until which all publications
are known.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import cast

import msgpack

from saltern.minion.ipc.messages import JobLoad
from saltwire.jid import is_jid
from statecore.host.content import private_files
from statecore.runtime.state_runs.running_jobs import birth, is_alive, still_runs

_LOG = logging.getLogger("saltern.minion")

#: JIDs that are remembered at least: a restarted publisher repeats up to this many jobs.
_AT_LEAST = 1000


class JournalStep(Enum):
    """The step that a job in the minion's journal has reached: received, began or ended."""

    RECEIVED = "received"
    BEGAN = "began"
    ENDED = "ended"


_NAME = re.compile(r"(?P<jid>.+)\.(?:(?P<step>received|ended)|began\.(?P<pid>\d+)\.(?P<born>\d*))")


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A job in the minion's journal, read from the name of its file."""

    jid: str
    step: JournalStep
    path: Path
    #: For a job that began: pid of the jobber, and its start time (``running_jobs.birth``).
    pid: int = 0
    born: str = ""

    def alive(self) -> bool:
        """Return whether the job's jobber is running."""
        return still_runs(self.pid, self.born)

    def since_ms(self) -> int:
        """Return the time of the job's step in milliseconds since 1970 by this host's clock; 0 if the file is gone."""
        try:
            return self.path.stat().st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return 0


def entry_of(path: Path) -> JournalEntry | None:
    """Return the journal entry that the file's name describes; None for a file that is no entry."""
    found = _NAME.fullmatch(path.name)
    if found is None:
        return None
    if found["step"]:
        return JournalEntry(found["jid"], JournalStep(found["step"]), path)
    return JournalEntry(found["jid"], JournalStep.BEGAN, path, int(found["pid"]), found["born"])


def may_still_run(load: Mapping[str, object], received_ms: int, now_ms: int, window: float) -> bool:
    """Return whether a received job that had to wait may still run.

    A load with ``replay_until`` (milliseconds since 1970) may run until then. A load without it may run for ``window``
    seconds after the minion received it.
    """
    until = load.get("replay_until")
    if isinstance(until, int | float) and not isinstance(until, bool):
        return now_ms <= until
    return now_ms - received_ms <= window * 1000


class Journal:
    """The journal of the minion's jobs in a state directory, as the main process uses it."""

    def __init__(self, state: Path, remembered: int) -> None:
        """Open the journal in the directory ``state``.

        ``remembered``: number of JIDs to remember (option minion_jid_queue_hwm), at least 1000.
        """
        self._directory = state / "journal"
        self._asked = state / "asked"
        private_files.directory(self._directory)
        for path in self._directory.glob(".*"):
            writer = path.name.rpartition(".")[2]
            if not writer.isdecimal() or not is_alive(int(writer)):
                path.unlink(missing_ok=True)
        self._seen = SeenJobs(state / "jids", max(remembered, _AT_LEAST))
        self._in_progress: set[str] = set()
        self.entries()

    def __contains__(self, jid: str) -> bool:
        return jid in self._in_progress or jid in self._seen

    def __bool__(self) -> bool:
        """Return whether the journal holds a job in progress."""
        return bool(self._in_progress)

    def asked_until(self) -> int:
        """Return the time until which the minion knows all publications of its master, as the last run of the minion
        stored it.

        It is milliseconds since 1970 by the master's clock; 0 if unknown or unreadable.
        """
        try:
            return int(self._asked.read_text("ascii"))
        except FileNotFoundError:
            return 0
        except (OSError, ValueError) as error:
            _LOG.warning(
                "%s cannot be read: %s; the master is asked for all jobs that may still run", self._asked, error
            )
            return 0

    def keep_asked_until(self, ms: int) -> None:
        """Store the time until which all publications are known, for the minion's next start.

        A failure is only logged; the minion then asks the master again.
        """
        try:
            private_files.write(self._asked, f"{ms}\n")
        except OSError as error:
            _LOG.debug("%s: %s", self._asked, error.strerror)

    def receive(self, load: Mapping[str, object]) -> bool:
        """Add a received job to the journal. Return True if it has a journal entry.

        Return False if its file cannot be written or its JID is malformed: the JID is remembered, and the job
        runs without an entry.
        """
        jid = str(load["jid"])
        if is_jid(jid):
            packed = msgpack.packb(load, default=str, unicode_errors="surrogateescape")
            try:
                private_files.write(self._directory / f"{jid}.{JournalStep.RECEIVED.value}", packed)
            except OSError as error:
                _LOG.warning(
                    "%s: %s; the job runs without a journal", self._directory, error.strerror, extra={"jid": jid}
                )
            else:
                self._in_progress.add(jid)
                return True
        self._seen.add(jid)
        return False

    def remember(self, jid: str) -> None:
        """Remember the JID of a job that was refused, so that a repeated publication of it is ignored."""
        self._seen.add(jid)

    def entries(self) -> list[JournalEntry]:
        """Return the jobs in progress, sorted by JID. Entries of jobs that ended are moved to the file of remembered JIDs."""
        found = []
        for path in sorted(self._directory.iterdir()):
            entry = entry_of(path)
            if entry is None:
                continue
            if entry.step is JournalStep.ENDED:
                self.end(entry)
            else:
                found.append(entry)
        self._in_progress = {entry.jid for entry in found}
        return found

    def end(self, entry: JournalEntry) -> None:
        """Record in the journal that the job's return is in the spool. If the JID cannot be written, the entry's file is kept."""
        self._in_progress.discard(entry.jid)
        if self._seen.add(entry.jid):
            entry.path.unlink(missing_ok=True)
        elif entry.step is not JournalStep.ENDED:
            with contextlib.suppress(OSError):
                entry.path.rename(self._directory / f"{entry.jid}.{JournalStep.ENDED.value}")

    def load(self, entry: JournalEntry) -> JobLoad | None:
        """Return the publication's load of a job in the journal; None if its file is gone, or invalid (logged)."""
        try:
            load = msgpack.unpackb(entry.path.read_bytes(), strict_map_key=False, unicode_errors="surrogateescape")
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            _LOG.error("%s cannot be read: %s", entry.path, error, extra={"jid": entry.jid})
            return None
        return cast("JobLoad", load) if isinstance(load, dict) else None


class JobSteps:
    """Writes to the minion's journal that a job was begun and ended. A jobber uses it for its one job."""

    def __init__(self, state: Path) -> None:
        self._directory = state / "journal"

    def begin(self, jid: str) -> Path | None:
        """Record in the journal that this process runs the job.

        Return the path of the job's journal file; None if another process has begun or ended the job.
        """
        path = self._directory / f"{jid}.{JournalStep.BEGAN.value}.{os.getpid()}.{birth(os.getpid())}"
        try:
            (self._directory / f"{jid}.{JournalStep.RECEIVED.value}").rename(path)
        except FileNotFoundError:
            return None
        os.utime(path)
        directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
        return path

    def end(self, begun: Path, jid: str) -> None:
        """Record in the minion's job journal that the return is in the spool directory. The file ``begun``, which ``begin``
        returned, is renamed to ``<jid>.ended``.
        """
        with contextlib.suppress(FileNotFoundError):
            begun.rename(self._directory / f"{jid}.{JournalStep.ENDED.value}")


#: The file is rewritten when it has this many times more lines than JIDs are remembered.
_SLACK = 10


class SeenJobs:
    """The JIDs of the minion's last ended and refused jobs, in memory and in a file, so that no job runs twice."""

    def __init__(self, path: Path, limit: int) -> None:
        """Read the remembered JIDs from the file ``path``. ``limit``: number of JIDs to remember.

        A file that cannot be read is logged and treated as empty.
        """
        self._path = path
        self._limit = max(1, limit)
        lines: list[str] = []
        try:
            lines = path.read_text("ascii", "replace").split()
        except FileNotFoundError:
            private_files.directory(path.parent)
        except OSError as error:
            _LOG.warning("%s: %s; jobs from before this start may run a second time", path, error.strerror)
        self._jids = deque(lines, maxlen=self._limit)
        self._lines = len(lines)
        self._failed = False

    def __contains__(self, jid: str) -> bool:
        return jid in self._jids

    def add(self, jid: str) -> bool:
        """Remember the JID of an ended job. Return False if it cannot be written; the first failure is logged."""
        if jid not in self._jids:
            self._jids.append(jid)
        try:
            if self._lines >= self._limit * _SLACK:
                self._write_anew()
            else:
                with private_files.opened(self._path, "a") as file:
                    # A failed write may have left half a line.
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
        private_files.write(self._path, "".join(f"{jid}\n" for jid in self._jids).encode("ascii"))
        self._lines = len(self._jids)
