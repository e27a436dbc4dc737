"""Looks at a worker from beside it: whether its loop is stuck in one request, and whether it has grown too large.

The pulse's thread looks once a second. A request over its deadline ends the process: what holds it (a lock, a query, a module of a
user) cannot be stopped from outside, and a process that is started anew holds nothing. The orchestrator starts it. Before, the
reqserver is told that it need not wait for silence, and the log where the loop is. Where Python's own lock is held, no thread of
Python runs: then faulthandler's, which is none, ends the process.
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

#: Exit code of a worker that hung: sysexits' EX_SOFTWARE.
EX_HUNG = 70

#: Seconds without a turn of the pulse's thread after which the process ends. Only what holds Python's lock (a regular expression
#: that explodes) keeps it so long; a process that was stopped for longer ends when it goes on, too.
_LOCKED_SECONDS = 60.0

_PAGE = os.sysconf("SC_PAGESIZE")


@dataclass
class Watchdog:
    """What the loop is busy with: written by the loop's thread, read by the pulse's. Times are of one monotonic clock."""

    deadlines: Mapping[str, int]
    #: Seconds for commands that are not in ``deadlines``, and for what is not opened yet.
    default: float
    cmd: str = ""
    since: float | None = None
    #: Requests that were begun.
    count: int = 0
    _thread: int = field(default_factory=threading.get_ident)

    def begin(self) -> None:
        """A request is opened."""
        self.cmd, self.since = "", time.monotonic()
        self.count += 1

    def end(self) -> None:
        """It is answered."""
        self.since = None

    def overdue(self, now: float) -> str:
        """What the loop is stuck in, empty where it is not."""
        since, cmd = self.since, self.cmd
        if since is None or now - since <= self.deadlines.get(cmd, self.default):
            return ""
        return f"{cmd or 'a request'} takes {now - since:.0f} s, more than its deadline (request_deadlines)"

    def where(self) -> str:
        """Where the loop is now, as lines of files."""
        frame = sys._current_frames().get(self._thread)
        return "".join(traceback.format_stack(frame)) if frame is not None else ""

    def longest(self) -> float:
        """The longest of all deadlines."""
        return max(self.default, *self.deadlines.values())


def arm() -> None:
    """To be called each second: ends the process, with all stacks on stderr, when it is not for _LOCKED_SECONDS."""
    faulthandler.dump_traceback_later(_LOCKED_SECONDS, exit=True)


def disarm() -> None:
    """The process is about to end by itself."""
    faulthandler.cancel_dump_traceback_later()


@dataclass
class Wear:
    """Whether a worker is to begin anew: after so many requests, or once it is so large. 0: never."""

    max_requests: int
    max_rss: int
    _looked: float = 0.0

    def out(self, requests: int, now: float) -> str:
        """Why it is to begin anew, empty where it is not. Memory is looked at once a second."""
        if self.max_requests and requests >= self.max_requests:
            return f"{requests} requests (worker_max_requests)"
        if self.max_rss and now - self._looked >= 1.0:
            self._looked = now
            rss = resident_bytes()
            if rss >= self.max_rss:
                return f"{rss} bytes of memory (worker_max_rss)"
        return ""


def resident_bytes() -> int:
    """Memory of this process that is in use now."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE
