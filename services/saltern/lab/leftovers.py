"""Processes of a lab that its supervisord no longer keeps: it was killed, or they ran away from it. Found by the mark in
their environment, so nothing else on the machine is ever touched."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
from pathlib import Path

from saltern.lab.plan import Paths
from saltern.lab.supervisor import MARK, wait_until

#: Seconds that they have to end by themselves.
_TERM_SECONDS = 15.0
_KILL_SECONDS = 5.0


def marked(paths: Paths) -> list[int]:
    """Pids of this user's processes that belong to the lab."""
    return sorted(
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal() and int(entry.name) != os.getpid() and _belongs(entry, paths)
    )


def _belongs(entry: Path, paths: Paths) -> bool:
    try:
        if os.fsencode(f"{MARK}={paths.root}") in (entry / "environ").read_bytes().split(b"\0"):
            return True
        # Redis writes its title over its environment; nobody else works in the directory of its data.
        name = (entry / "comm").read_text("utf-8", "replace").strip()
        return name.startswith("redis-") and name != "redis-cli" and (entry / "cwd").readlink() == paths.redis_data
    except OSError:
        # Another user's, or gone meanwhile.
        return False


def end_all(paths: Paths) -> list[int]:
    """Ends them; returns the pids of those that do not go."""
    for number, seconds in ((signal.SIGTERM, _TERM_SECONDS), (signal.SIGKILL, _KILL_SECONDS)):
        told: set[int] = set()
        if wait_until(functools.partial(_all_gone, paths, number, told), seconds):
            return []
    return marked(paths)


def _all_gone(paths: Paths, number: signal.Signals, told: set[int]) -> bool:
    """Signals each process once, those that appear meanwhile too; True when there is none."""
    there = marked(paths)
    for pid in there:
        if pid not in told:
            told.add(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    return not there
