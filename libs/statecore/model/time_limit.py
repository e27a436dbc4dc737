"""Time limits and memory limits for users' code, such as templates: the code is interrupted by a signal."""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

#: Seconds of CPU time from the limit until the kernel ends the process, for code that does not return to Python: long enough
#: for several interrupts, and shorter than anybody waits for a job.
_GRACE = 10.0

#: Bytes by which the process may grow in the block: less than a small machine has, more than any state tree needs.
_GROWTH = 1 << 30

#: Seconds of CPU time between two checks. A loop that doubles a text makes less than a gigabyte in this time, and most
#: templates end before the first check.
_TICK = 0.1

#: Seconds until a block that continues after an interrupt is interrupted again.
_AGAIN = 1.0

#: File descriptor for faulthandler, which cannot use the Python object sys.stderr.
_STDERR = 2


#: Option with the seconds for one file.
JINJA_TIME_LIMIT = "jinja_time_limit"


class TimeLimitExceeded(BaseException):
    """Raised in a block of users' code whose time limit is over.

    It is a BaseException, so that users' code with ``except Exception`` does not catch it.
    """

    #: FILE:LINE of the interrupted code; "" when unknown.
    place = ""


class ComputedTooMuch(TimeLimitExceeded):
    """Raised when users' code (such as a template) used too much CPU time or memory. ``seconds`` is the limit of CPU
    time, ``option`` the option that sets it.
    """

    def __init__(self, seconds: float, option: str = JINJA_TIME_LIMIT) -> None:
        super().__init__(seconds)
        self.seconds = seconds
        self.option = option


class ComputedTooLong(ComputedTooMuch):
    """Raised when users' code (such as a template) used more CPU time than its limit."""


class ComputedTooLarge(ComputedTooMuch):
    """Raised when users' code (such as a template) made the process that runs it grow by more memory than its limit."""

    @property
    def growth(self) -> int:
        """Number of bytes by which the process that runs users' code may grow during one block of it, such as the
        rendering of one template: 1 GiB.
        """
        return _GROWTH


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeLimitExceeded in the block after so many seconds, and again every second while the block continues.

    Only the main thread can be interrupted. In other threads there is no limit.
    """
    with _interrupted(signal.SIGALRM, signal.ITIMER_REAL, seconds, _AGAIN, TimeLimitExceeded):
        yield


@contextmanager
def computing_limit(seconds: float, option: str = JINJA_TIME_LIMIT) -> Iterator[None]:
    """Raise ComputedTooLong in the block after so many seconds of CPU time, and again after each further second of
    CPU time. ``option``: the option that sets the limit, for the error.

    Raise ComputedTooLarge in the block when the process has grown by 1 GiB. Time spent waiting for commands or requests
    does not count. A limit inside another limit ends no later than the outer one: the inner block then gets the outer limit's
    exception first, and the outer block its own a moment later. Only the main thread has a limit, and memory is measured
    only on Linux. A loop in C that does not check for signals cannot be interrupted: ten seconds of CPU time later the
    kernel ends the process (SIGVTALRM), and faulthandler writes the Python stack to stderr.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    outer = _INNERMOST.get()
    watch = _LimitWatch(seconds, option, outer)
    if outer is not None:
        check_limit()
        token = _INNERMOST.set(watch)
        try:
            yield
        finally:
            _INNERMOST.reset(token)
        return
    if signal.getitimer(signal.ITIMER_PROF)[0]:
        # A profiler has the timer.
        yield
        return
    faulthandler.register(signal.SIGVTALRM, file=_STDERR, all_threads=False, chain=True)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds + _GRACE)
    token = _INNERMOST.set(watch)
    try:
        with _interrupted(signal.SIGPROF, signal.ITIMER_PROF, min(seconds, _TICK), _TICK, _look):
            yield
    finally:
        _INNERMOST.reset(token)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        faulthandler.unregister(signal.SIGVTALRM)


def check_limit() -> None:
    """Raise ComputedTooLong if the limit that holds here (``computing_limit``) is used up, although an inner block has caught
    its exception. Call it before a further step of long work, such as the next file.
    """
    watch = _INNERMOST.get()
    if watch is not None and time.process_time() >= watch.ends:
        raise ComputedTooLong(watch.seconds, watch.option)


def _look() -> ComputedTooMuch | None:
    watch = _INNERMOST.get()
    return None if watch is None else watch.look()


class _LimitWatch:
    """Measures the CPU time and the memory that one block of users' code (such as a template) has used, and decides if
    it exceeds the limits.
    """

    def __init__(self, seconds: float, option: str, outer: _LimitWatch | None) -> None:
        #: The limit that ends first: this block's or that of the block around it; end in seconds of CPU time of the process.
        self.seconds, self.option, self.ends = seconds, option, time.process_time() + seconds
        if outer is not None and outer.ends < self.ends:
            self.seconds, self.option, self.ends = outer.seconds, outer.option, outer.ends
        self._due = self.ends
        #: Resident bytes at the first check. Measuring at the start of the block would slow down every small template.
        self._before: int = 0 if outer is None else outer._before

    def look(self) -> ComputedTooMuch | None:
        """Return the exception to raise in users' code that exceeded its limits; None while it is within its limits."""
        size = _resident()
        self._before = self._before or size
        now = time.process_time()
        if now >= self._due:
            self._due = now + _AGAIN
            return ComputedTooLong(self.seconds, self.option)
        if size - self._before > _GROWTH:
            self._before = size
            return ComputedTooLarge(self.seconds, self.option)
        return None


#: The limit of the innermost block in the main thread.
_INNERMOST: ContextVar[_LimitWatch | None] = ContextVar("statecore.model.time_limit", default=None)


def _resident() -> int:
    """Resident memory of this process in bytes; 0 where /proc/self/statm does not exist."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
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
            # A signal before this line raises, and the outer finally still runs. After this line signals are ignored.
            limited = False
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)
