"""Jobs that run on this minion, as files ``<cachedir>/proc/<jid>``. saltutil.running and saltutil.find_job read them.

Source: docs/execution.md#running-jobs
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgpack

from statecore.host.content import private_files
from statecore.model.redaction import shown_arguments
from statecore.model.values import to_int

_LOG = logging.getLogger(__name__)

#: Key of a proc file: ``birth`` of the job's process. A later process may have the same pid.
_BORN = "__born__"

#: Letters of /proc/PID/stat for an ended process (zombie, dead).
_OVER = frozenset("ZX")


class ProcDirectory:
    """The jobs that run on this minion, as files ``<cachedir>/proc/<jid>``. Implements the interface ``ports.Jobs``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        private_files.directory(directory)

    @contextlib.contextmanager
    def record(self, load: Mapping[str, object]) -> Iterator[None]:
        """List the job of this process among the running jobs while the block runs, by a file
        ``<cachedir>/proc/<jid>``.

        If the file cannot be written, a warning is logged.
        """
        path = self._directory / str(load["jid"])
        own: dict[str, object] = {"pid": os.getpid(), _BORN: birth(os.getpid())}
        if "arg" in load:
            # The file is shown by saltutil.running; the job itself does not read its arguments here.
            own["arg"] = shown_arguments(load.get("fun"), load["arg"])
        packed = msgpack.packb({**load, **own}, default=str, unicode_errors="backslashreplace")
        try:
            private_files.write(path, packed)
        except OSError as error:
            _LOG.warning("%s: %s; the job is not among those that run", path, error.strerror)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def running(self) -> list[dict[str, object]]:
        """List of the loads of running jobs, each with its ``pid``. Removes the files of processes that have ended."""
        found = []
        for path in sorted(self._directory.glob("[0-9]*")):
            try:
                job = msgpack.unpackb(path.read_bytes(), strict_map_key=False)
            except FileNotFoundError:
                continue
            except (ValueError, TypeError, msgpack.UnpackException):
                job = None
            if isinstance(job, dict) and still_runs(job.get("pid"), job.pop(_BORN, "")):
                found.append(job)
            else:
                path.unlink(missing_ok=True)
        return found

    def signal(self, jid: str, number: int) -> str:
        """Send a signal to the job's process group. Return Salt's sentence "Signal 15 sent to job ... at pid ...", or the reason
        why it was not sent; "" if no such job runs.
        """
        for job in self.running():
            if str(job["jid"]) != jid:
                continue
            pid = to_int(job["pid"])
            try:
                os.killpg(pid, number)
            except ProcessLookupError:
                return ""
            except PermissionError as error:
                return f"Signal {number} was not sent to job {jid} at pid {pid}: {error.strerror}"
            return f"Signal {int(signal.Signals(number))} sent to job {jid} at pid {pid}"
        return ""


def still_runs(pid: object, born: object) -> bool:
    """Return True if a process with the id ``pid`` runs and has the start time ``born``, as returned by ``birth``.

    A restarted container gives the same pids to other processes.
    """
    return isinstance(pid, int) and is_alive(pid) and birth(pid) == born


def birth(pid: int) -> str:
    """Return the process's start time in kernel ticks since boot, as text; "" if it is unknown or the process has
    ended.
    """
    try:
        # The name in parentheses may hold spaces. Fields from the third on follow it: field 3 is the state, 22 the start time.
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return "" if fields[0] in _OVER else fields[19]
    except (OSError, IndexError):
        return ""


def is_alive(pid: int) -> bool:
    """Return True if a process with this pid runs."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
