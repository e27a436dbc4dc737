"""Time for code that is not ours: it is interrupted where it stands."""

from __future__ import annotations

import faulthandler
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: Seconds of computing after which what does not return to Python ends with its process: several chances to stop in between,
#: and well within the time for which anybody would wait for a job.
_GRACE = 10.0

#: Where the interpreter writes the place of what it cannot interrupt; it has no time for Python's own stderr.
_STDERR = 2


class TimeLimitExceeded(BaseException):
    """The time is over. No Exception: code that catches all of those must not catch this."""

    #: FILE:LINE of what was interrupted.
    place = ""


class ComputedTooLong(TimeLimitExceeded):
    """The time for computing is over."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeLimitExceeded in the body after so many seconds, and again each second that it goes on.

    Only the main thread can be interrupted; in others there is no limit.
    """
    with _interrupted(signal.SIGALRM, signal.ITIMER_REAL, seconds, TimeLimitExceeded()):
        yield


@contextmanager
def computing_limit(seconds: float) -> Iterator[None]:
    """Raises ComputedTooLong in the body once this process has computed for so many seconds, and again for each one more.

    What it waits for (commands, requests) does not count. A limit inside of another is none: the outer one goes on. Only the
    main thread has one. A loop in C that never asks for signals cannot be interrupted: after ten seconds more the
    system ends the process (SIGVTALRM), and where it was is on stderr.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_PROF)[0]:
        yield
        return
    faulthandler.register(signal.SIGVTALRM, file=_STDERR, all_threads=False, chain=True)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds + _GRACE)
    try:
        with _interrupted(signal.SIGPROF, signal.ITIMER_PROF, seconds, ComputedTooLong(seconds)):
            yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        faulthandler.unregister(signal.SIGVTALRM)


@contextmanager
def _interrupted(number: signal.Signals, timer: int, seconds: float, error: TimeLimitExceeded) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    limited = True

    def end(number: int, frame: FrameType | None) -> None:
        if limited:
            error.place = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""
            raise error.with_traceback(None)

    before = signal.signal(number, end)
    signal.setitimer(timer, seconds, 1.0)
    try:
        try:
            yield
        finally:
            # A signal before this line ends in the outer finally; one behind it is none.
            limited = False
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)
