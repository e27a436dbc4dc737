"""Time for code that is not ours: it is interrupted where it stands."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TimeLimitExceeded(BaseException):
    """The time is over. No Exception: code that catches all of those must not catch this."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeLimitExceeded in the body after so many seconds, and again each second that it goes on.

    Only the main thread can be interrupted; in others there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    limited = True

    def end(number: int, frame: FrameType | None) -> None:
        if limited:
            raise TimeLimitExceeded

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        try:
            yield
        finally:
            # An alarm before this line ends in the outer finally; one behind it is none.
            limited = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
