"""Time and memory for code that is not ours: it is interrupted where it stands."""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

#: Seconds of computing after which what does not return to Python ends with its process: several chances to stop in between,
#: and well within the time for which anybody would wait for a job.
_GRACE = 10.0

#: Bytes that a process may grow by while it computes: less than what a small machine has, more than any tree needs.
_GROWTH = 1 << 30

#: Seconds of computing between two looks at time and memory: what doubles a text in a loop makes less than a gigabyte meanwhile,
#: and most computing is over before the first one.
_TICK = 0.1

#: Seconds of computing after which what was interrupted, and goes on, is interrupted again.
_AGAIN = 1.0

#: Where the interpreter writes the place of what it cannot interrupt; it has no time for Python's own stderr.
_STDERR = 2


class TimeLimitExceeded(BaseException):
    """The time is over. No Exception: code that catches all of those must not catch this."""

    #: FILE:LINE of what was interrupted.
    place = ""


class ComputedTooMuch(TimeLimitExceeded):
    """What was computed took more than it may. ``seconds``: those that it had."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class ComputedTooLong(ComputedTooMuch):
    """The time for computing is over."""


class ComputedTooLarge(ComputedTooMuch):
    """The memory for computing is full."""

    @property
    def growth(self) -> int:
        """Bytes by which the process may grow."""
        return _GROWTH


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeLimitExceeded in the body after so many seconds, and again each second that it goes on.

    Only the main thread can be interrupted; in others there is no limit.
    """
    with _interrupted(signal.SIGALRM, signal.ITIMER_REAL, seconds, _AGAIN, TimeLimitExceeded):
        yield


@contextmanager
def computing_limit(seconds: float) -> Iterator[None]:
    """Raises ComputedTooLong in the body once this process has computed for so many seconds, and again for each one more;
    ComputedTooLarge where it has grown by a gigabyte.

    What it waits for (commands, requests) does not count. A limit inside of another is none: the outer one goes on. Only the
    main thread has one, and only Linux tells a process's size. A loop in C that never asks for signals cannot be interrupted:
    after ten seconds more the system ends the process (SIGVTALRM), and where it was is on stderr.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_PROF)[0]:
        yield
        return
    faulthandler.register(signal.SIGVTALRM, file=_STDERR, all_threads=False, chain=True)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds + _GRACE)
    try:
        with _interrupted(signal.SIGPROF, signal.ITIMER_PROF, min(seconds, _TICK), _TICK, _LimitWatch(seconds).look):
            yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        faulthandler.unregister(signal.SIGVTALRM)


class _LimitWatch:
    """What has been computed in the body of a limit."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._due = time.process_time() + seconds
        #: Its size at the first look: another one at the beginning would cost each small file.
        self._before = 0

    def look(self) -> ComputedTooMuch | None:
        """What is to be raised now."""
        size = _resident()
        self._before = self._before or size
        now = time.process_time()
        if now >= self._due:
            self._due = now + _AGAIN
            return ComputedTooLong(self._seconds)
        if size - self._before > _GROWTH:
            self._before = size
            return ComputedTooLarge(self._seconds)
        return None


def _resident() -> int:
    """Bytes of memory that this process has; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as told:
            return int(told.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


@contextmanager
def _interrupted(
    number: signal.Signals,
    timer: int,
    first: float,
    interval: float,
    look: Callable[[], TimeLimitExceeded | None],
) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    limited = True

    def end(number: int, frame: FrameType | None) -> None:
        error = look() if limited else None
        if error is not None:
            error.place = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""
            raise error

    before = signal.signal(number, end)
    signal.setitimer(timer, first, interval)
    try:
        try:
            yield
        finally:
            # A signal before this line ends in the outer finally; one behind it is none.
            limited = False
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)
