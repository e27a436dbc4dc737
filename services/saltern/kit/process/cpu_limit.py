"""A limit on the CPU time of a block of pure Python, such as matching a target that somebody else wrote.

The limit also ends a regular expression of the module ``re`` that backtracks: its engine checks for signals.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class CpuLimit(Exception):
    """Raised in a block with ``cpu_limit`` that has used up its CPU time."""


class _State:
    """State of ``cpu_limit`` in this process: whether the signal handler is installed, and whether a limited
    block runs now.
    """

    #: The signal's handler is installed, in this process or in the one that forked it.
    installed = False
    active = False


def _expired(signum: int, frame: FrameType | None) -> None:
    if _State.active:
        _State.active = False
        raise CpuLimit


@contextlib.contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Context manager: raise CpuLimit in the block after this process has used ``seconds`` seconds of CPU time.

    The block must be free of I/O, locks and other cleanup, because the exception can rise at any line. Only the main
    thread has a limit (Python delivers signals there). A block inside a limited block has no limit of its own.
    """
    if _State.active or threading.current_thread() is not threading.main_thread():
        yield
        return
    if not _State.installed:
        signal.signal(signal.SIGVTALRM, _expired)
        _State.installed = True
    _State.active = True
    # CPU time, so that a busy machine changes nothing. pytest-timeout and others use the timer of real time.
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        _State.active = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
