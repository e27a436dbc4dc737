"""Watchdog of a worker: ends the process if a request takes longer than its command may take (its deadline), and
restarts it if it has grown too large.

The pulse thread checks once a second while a request is in hand. A request over its deadline cannot be stopped from outside, so
the process ends: first the reqserver is told, and the stack of the main loop is logged. The orchestrator starts a new process.
If the GIL is held, no Python thread runs; faulthandler's native watchdog thread then ends the process.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field

#: Exit code of a worker that hung: EX_SOFTWARE of sysexits.h.
EX_HUNG = 70

#: Seconds without a call of ``arm`` after which the process ends. Only code that holds the GIL (for example a regular expression
#: with exponential backtracking) blocks the pulse thread so long. A process that was stopped for longer ends, too, when it goes on.
_LOCKED_SECONDS = 60.0

_PAGE = os.sysconf("SC_PAGESIZE")


@dataclass
class Watchdog:
    """The request that a worker's main loop is handling, and the time by which the worker must have answered it.
    Written by the main thread, read by the pulse thread. Times are monotonic seconds.
    """

    deadlines: Mapping[str, int]
    #: Deadline, seconds, of commands that are not in ``deadlines`` and of requests that are not decrypted yet.
    default: float
    cmd: str = ""
    since: float | None = None
    #: Number of requests so far.
    count: int = 0
    _thread: int = field(default_factory=threading.get_ident)
    #: Set when a request begins and when the worker ends; cleared by the pulse thread before it waits.
    _stirred: threading.Event = field(default_factory=threading.Event)
    #: Set when the worker ends.
    _ended: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> None:
        """Record that the main loop has received a request: count it and start its time. Its command is not known yet."""
        self.cmd, self.since = "", time.monotonic()
        self.count += 1
        # A look is ten times cheaper than to set it again, and there is a request each millisecond.
        if not self._stirred.is_set():
            self._stirred.set()

    def end(self) -> None:
        """Record that the worker has answered its request."""
        self.since = None

    def overdue(self, now: float) -> str:
        """Return in words which request of the worker takes longer than its command may take; empty text if none does."""
        since, cmd = self.since, self.cmd
        if since is None or now - since <= self.deadlines.get(cmd, self.default):
            return ""
        return f"{cmd or 'a request'} takes {now - since:.0f} s, more than its deadline (request_deadlines)"

    def wait_for_request(self, seconds: float) -> bool:
        """Wait until a request is in hand or the worker ends, at most ``seconds``. Return False if the time passed without either.

        For the pulse thread. It returns at once if a request is in hand.
        """
        # Cleared before the look: a request that begins after the look sets it again.
        self._stirred.clear()
        return self.since is not None or self._ended.is_set() or self._stirred.wait(seconds)

    def wait_for_end(self, seconds: float) -> bool:
        """Wait at most ``seconds`` until the worker ends. Return whether it ends."""
        return self._ended.wait(max(0.0, seconds))

    def close(self) -> None:
        """Tell the pulse thread that the worker ends: ``wait_for_request`` and ``wait_for_end`` return True from now on."""
        self._ended.set()
        self._stirred.set()

    def where(self) -> str:
        """Return the stack of the worker's main thread as text."""
        frame = sys._current_frames().get(self._thread)
        return "".join(traceback.format_stack(frame)) if frame is not None else ""

    def longest(self) -> float:
        """Return the largest number of seconds that a worker may spend on a request, over all commands."""
        return max(self.default, *self.deadlines.values())


def arm() -> None:
    """Restart the timer of faulthandler's watchdog.

    If it is not restarted within 60 s, the process ends with all stacks on stderr.
    """
    faulthandler.dump_traceback_later(_LOCKED_SECONDS, exit=True)


def disarm() -> None:
    """Stop the timer of faulthandler's watchdog."""
    faulthandler.cancel_dump_traceback_later()


@dataclass
class Wear:
    """Limits after which a worker restarts: number of requests, and resident memory in bytes. 0: no limit."""

    max_requests: int
    max_rss: int
    _looked: float = 0.0

    def out(self, requests: int, now: float) -> str:
        """Return why the worker must restart; empty text if no limit is reached. Memory is measured once a second."""
        if self.max_requests and requests >= self.max_requests:
            return f"{requests} requests (worker_max_requests)"
        if self.max_rss and now - self._looked >= 1.0:
            self._looked = now
            rss = resident_bytes()
            if rss >= self.max_rss:
                return f"{rss} bytes of memory (worker_max_rss)"
        return ""


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE
