"""Finds inputs whose cost grows faster than their length: CPU time of n, 2n and 4n repetitions of a piece.

A parser of linear time needs four times as long for four times the input. A parser of quadratic time needs sixteen
times as long. CPU time is compared, not wall time, and the least of three runs, so that a busy machine does not change
the answer. Parsers that are faster than ``FLOOR`` for the largest input pass: their growth cannot be measured, and
does not matter.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

#: Seconds of CPU time from which growth is judged.
FLOOR = 0.03

#: Largest allowed quotient of the times for 4n and n. Linear is 4, quadratic 16.
_ALLOWED = 9.0

#: Runs of one input; the least time counts.
_RUNS = 3


@dataclass(frozen=True)
class Shape:
    """An input that is made longer by repetition: ``head``, then ``piece`` again and again, then ``tail``.

    ``#`` in a piece stands for the number of the repetition.
    """

    piece: str
    head: str = ""
    tail: str = ""
    separator: str = ""

    def text(self, length: int) -> str:
        """Return the input of about ``length`` characters."""
        times = max(1, length // (len(self.piece) + len(self.separator) or 1))
        if "#" in self.piece:
            body = self.separator.join(self.piece.replace("#", str(number)) for number in range(times))
        else:
            body = self.separator.join([self.piece] * times) if self.separator else self.piece * times
        return self.head + body + self.tail


def seconds(call: Callable[[str], object], text: str) -> float:
    """Return the CPU seconds that a call takes for a text."""
    began = time.process_time()
    call(text)
    return time.process_time() - began


def grows(call: Callable[[str], object], shape: Shape, longest: int, *, start: int = 1024) -> str:
    """Return a sentence if the CPU time of ``call`` grows faster than the input; "" if it does not.

    ``longest``: the number of characters up to which the input is doubled; a caller's own bound on its input.
    """
    length = start
    while length <= longest and seconds(call, shape.text(length)) < FLOOR / 4:
        length *= 2
    if 2 * length > longest:
        return ""
    small, large = length // 2 or 1, min(length * 2, longest)
    for _ in range(2):
        one = min(seconds(call, shape.text(small)) for _ in range(_RUNS))
        four = min(seconds(call, shape.text(large)) for _ in range(_RUNS))
        allowed = _ALLOWED * (large / small) / 4
        if four < FLOOR or four <= allowed * one:
            return ""
    return f"{large} characters take {four:.3f} s, {small} take {one:.3f} s: {shape}"
