"""Queue of state runs: one runs at a time, the others wait or are refused.

Each run writes a file ``<cachedir>/state_queue/<jid>`` with its pid, its function, and whether it runs or waits. Files
are written and compared under one lock, so of two runs that start together one is first. Files of processes that have
ended are ignored. Runs wait in the order of their JIDs, which are times.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple

from statecore.host.content import private_files
from statecore.model.context import Context
from statecore.model.errors import InvocationError

#: Key of ctx.scratch, set while this process runs states: a state that applies states is part of the run.
_HELD = "state.turn"

#: Seconds between two checks of the queue while a run waits.
_PATIENCE = 0.2

_REFUSED = 1


class QueueEntry(NamedTuple):
    """One state run in the minion's queue: its JID, process, function, and whether it waits."""

    jid: str
    pid: int
    fun: str
    waits: bool = False

    def sentence(self) -> str:
        """Return Salt's sentence about a state run that is in progress: "The function ... is running as PID ..."."""
        return (
            f'The function "{self.fun}" is running as PID {self.pid} and was started at {_started(self.jid)}'
            f" with jid {self.jid}"
        )


class QueueDecision(Enum):
    """Decision about a new state run while others are in progress: start, wait or refuse."""

    GO = auto()
    WAIT = auto()
    REFUSED = auto()


def judge(others: Sequence[QueueEntry], jid: str, queue: bool | int, *, waiting: bool = False) -> QueueDecision:
    """Return the decision if a new state run may start, must wait or is refused, given the minion's other state runs.

    ``queue`` False refuses the run if there is any other run. True lets it wait for runs with an earlier JID. A number
    lets it wait if fewer than so many runs are before it (0: no limit). ``waiting``: the run already waits, so it is
    not refused any more.
    """
    ahead = _ahead(others, jid)
    if queue is False:
        return QueueDecision.REFUSED if others else QueueDecision.GO
    if not ahead:
        return QueueDecision.GO
    full = queue is not True and queue > 0 and len(ahead) >= queue
    return QueueDecision.REFUSED if full and not waiting else QueueDecision.WAIT


def _ahead(others: Sequence[QueueEntry], jid: str) -> list[QueueEntry]:
    return [entry for entry in others if not entry.waits or not jid or entry.jid < jid]


def queue_of(ctx: Context, queue: object) -> bool | int:
    """Return the argument ``queue`` of ``state.apply``, or the option ``state_queue`` if the argument is None.

    Raises InvocationError for anything but True, False, or a number of at least 0.
    """
    value = ctx.opts.get("state_queue", False) if queue is None else queue
    if isinstance(value, bool) or (isinstance(value, int) and value >= 0):
        return value
    raise InvocationError(
        f"'queue' must be True, False, or the number of state runs that may wait, not the {type(value).__name__} {value!r}"
    )


@contextlib.contextmanager
def taken(ctx: Context, queue: object = None, concurrent: object = False) -> Iterator[list[str]]:
    """Run the block as the minion's only state run; wait for other state runs first if ``queue`` says so.

    Yield [] when the run may start, else Salt's sentence about each run before it. ``concurrent`` starts at once, but
    other runs see it. A state run inside a state run counts as part of it.
    """
    mode = queue_of(ctx, queue)
    if ctx.scratch.get(_HELD):
        yield []
        return
    files = _QueueFiles.of(ctx)
    reasons: list[str] = []
    waiting = False
    try:
        while True:
            with files.lock():
                others = files.others()
                decision = QueueDecision.GO if concurrent else judge(others, files.jid, mode, waiting=waiting)
                if decision is not QueueDecision.REFUSED:
                    files.write(waits=decision is QueueDecision.WAIT)
            if decision is not QueueDecision.WAIT:
                break
            waiting = True
            time.sleep(_PATIENCE)
        if decision is QueueDecision.REFUSED:
            reasons = [entry.sentence() for entry in others]
            ctx.scratch["retcode"] = _REFUSED
        else:
            ctx.scratch[_HELD] = True
        yield reasons
    finally:
        if not reasons:
            ctx.scratch.pop(_HELD, None)
        files.clear()


def others(ctx: Context) -> list[QueueEntry]:
    """List of the minion's other state runs, running or waiting, in order of their JIDs."""
    return _QueueFiles.of(ctx).others()


@dataclass(slots=True)
class _QueueFiles:
    """The files of the queue of state runs, read and written for one process. A process without a cachedir or a JID writes
    none.
    """

    directory: Path | None
    #: JID of this process's job; "" if the process runs no job that other processes could see.
    jid: str
    fun: str
    ctx: Context

    @classmethod
    def of(cls, ctx: Context) -> _QueueFiles:
        own = next((job for job in ctx.jobs.running() if int(job.get("pid", 0)) == os.getpid()), {})
        fun = own.get("fun", "")
        cachedir = ctx.opts.get("cachedir")
        directory = Path(str(cachedir)) / "state_queue" if cachedir else None
        named = fun if isinstance(fun, str) else next((each for each in fun if str(each).startswith("state.")), "")
        return cls(directory, str(own.get("jid", "")), str(named) or "state.apply", ctx)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:

        with contextlib.ExitStack() as stack:
            if self.directory is not None and self.jid:
                with contextlib.suppress(OSError):
                    private_files.directory(self.directory)
                    file = stack.enter_context(private_files.opened(self.directory / ".lock"))
                    fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def others(self) -> list[QueueEntry]:

        entries = {path: _read(path) for path in sorted(self.directory.glob("[0-9]*"))} if self.directory else {}
        # Ask after reading the files: a job is listed as running until its process has ended.
        living = (
            {(str(job.get("jid")), int(job.get("pid", 0))) for job in self.ctx.jobs.running()} if entries else set()
        )
        found = []
        for path, entry in entries.items():
            if entry is None or (entry.jid, entry.pid) not in living:
                # A process without a job may have no list of jobs: it must not remove files.
                with contextlib.suppress(OSError):
                    if self.jid:
                        path.unlink()
            elif entry.jid != self.jid:
                found.append(entry)
        return found

    def write(self, *, waits: bool) -> None:
        if self.directory is None or not self.jid:
            return
        path = self.directory / self.jid
        with contextlib.suppress(OSError):
            private_files.write(path, json.dumps(QueueEntry(self.jid, os.getpid(), self.fun, waits)._asdict()))

    def clear(self) -> None:
        if self.directory is not None and self.jid:
            with contextlib.suppress(OSError):
                (self.directory / self.jid).unlink()


def _read(path: Path) -> QueueEntry | None:
    try:
        return QueueEntry(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _started(jid: str) -> str:
    """Return the time in a JID as text in Salt's format (``2026, Jan 31 10:20:30.123456``); "" if the JID is not a time."""
    try:
        return datetime.strptime(jid[:20], "%Y%m%d%H%M%S%f").strftime("%Y, %b %d %H:%M:%S.%f")
    except ValueError:
        return ""
