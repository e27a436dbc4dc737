"""Jobs that run on this minion, as files ``<cachedir>/proc/<jid>``: what saltutil.running and find_job answer from."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgpack


class ProcDirectory:
    """Implements statecore's port ``Jobs``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    @contextlib.contextmanager
    def record(self, load: Mapping[str, Any]) -> Iterator[None]:
        """The job counts as running in this process while the block runs."""
        path = self._directory / str(load["jid"])
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_bytes(msgpack.packb({**load, "pid": os.getpid()}, default=str))
        temporary.rename(path)
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
            except (ValueError, msgpack.UnpackException):
                path.unlink(missing_ok=True)
                continue
            if _alive(int(job.get("pid", 0))):
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


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
