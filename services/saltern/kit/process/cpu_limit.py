"""A limit on the CPU time of a block of pure Python, such as matching a target that somebody else wrote.

The limit also ends a regular expression of the module ``re`` that backtracks: its engine checks for signals.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from statecore.model.time_limit import ComputedTooMuch, computing_limit


class CpuLimit(Exception):
    """Raised by ``cpu_limit`` for a block that has used up its CPU time."""


@contextlib.contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Context manager: end the block with CpuLimit after this process has used ``seconds`` seconds of CPU time, by
    ``computing_limit``.

    The block must be free of I/O, locks and other cleanup, because the exception can rise at any line. Only the main
    thread has a limit (Python delivers signals there).
    """
    try:
        with computing_limit(seconds):
            yield
    except ComputedTooMuch as error:
        raise CpuLimit from error
