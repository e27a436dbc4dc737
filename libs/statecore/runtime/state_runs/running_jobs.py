"""Jobs that run on this minion, as files ``<cachedir>/proc/<jid>``: what saltutil.running and find_job answer from."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgpack

from statecore.host.content import atomic_file

_LOG = logging.getLogger(__name__)

#: Field of a proc file that tells its writer from a later process of the same number.
_BORN = "__born__"

#: States of a process that has ended and waits for its parent to take note.
_OVER = frozenset("ZX")


class ProcDirectory:
    """Implements statecore's port ``Jobs``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    @contextlib.contextmanager
    def record(self, load: Mapping[str, Any]) -> Iterator[None]:
        """The job counts as running in this process while the block runs. Where that cannot be written it runs unseen."""
        path = self._directory / str(load["jid"])
        own = {"pid": os.getpid(), _BORN: birth(os.getpid())}
        packed = msgpack.packb({**load, **own}, default=str, unicode_errors="backslashreplace")
        try:
            atomic_file.write(path, packed)
        except OSError as error:
            _LOG.warning("%s: %s; the job is not among those that run", path, error.strerror)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def running(self) -> list[dict[str, Any]]:
        """Loads of running jobs, each with its ``pid``. Files of processes that are gone are removed."""
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
        """Signals the job's process and its children; Salt's sentence about what was done, "" when no such job runs."""
        for job in self.running():
            if str(job["jid"]) != jid:
                continue
            pid = int(job["pid"])
            try:
                os.killpg(pid, number)
            except ProcessLookupError:
                return ""
            except PermissionError as error:
                return f"Signal {number} was not sent to job {jid} at pid {pid}: {error.strerror}"
            return f"Signal {int(signal.Signals(number))} sent to job {jid} at pid {pid}"
        return ""


def still_runs(pid: Any, born: Any) -> bool:
    """Whether the very process runs that ``birth`` was asked about. A restarted container gives its first numbers to others."""
    return isinstance(pid, int) and is_alive(pid) and birth(pid) == born


def birth(pid: int) -> str:
    """When a process began, in the kernel's ticks since boot; empty where that cannot be known, or the process has ended."""
    try:
        # The name in parentheses may hold spaces; what follows it is fields 3 and on: the state, and as field 22 the start.
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return "" if fields[0] in _OVER else fields[19]
    except (OSError, IndexError):
        return ""


def is_alive(pid: int) -> bool:
    """Whether a process of this number runs."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
