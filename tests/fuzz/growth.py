"""Finds inputs whose cost grows faster than their length: CPU time of n, 2n and 4n repetitions of a piece.

A parser of linear time needs twice as long for twice the input, a parser of quadratic time four times as long. CPU time is
compared, not wall time, and the least of three runs, so that a busy machine does not change the answer. Both steps must
grow: a fault behind the first buffer of a parser makes one step look steep. Parsers that are faster than ``FLOOR`` for the
largest input pass: their growth cannot be measured, and does not matter.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

#: Seconds of CPU time of the longest input from which growth is judged.
FLOOR = 0.03

#: Least seconds of the shortest input: less is no measurement, or an input that is refused at its beginning.
_MEASURABLE = 0.001

#: Largest allowed quotient of the times for an input and for its half, in both steps. Linear is 2, quadratic 4.
_ALLOWED = 2.9

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


def shape_of(data: bytes) -> tuple[int, Shape] | None:
    """Return (number of a parser, shape) that the bytes of a fuzzer describe: a byte for the parser, then head, piece and
    tail with null bytes between them. None if there is no piece.
    """
    head, _, rest = data[1:].decode("latin-1").partition("\0")
    piece, _, tail = rest.partition("\0")
    return (data[0], Shape(piece, head, tail)) if piece else None


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
    large = min(length * 2, longest)
    sizes = (large // 4, large // 2, large)
    for _ in range(2):
        one, two, four = (min(seconds(call, shape.text(size)) for _ in range(_RUNS)) for size in sizes)
        if four < FLOOR or one < _MEASURABLE or two <= _ALLOWED * one or four <= _ALLOWED * two:
            return ""
    return f"{large} characters take {four:.3f} s, half of them {two:.3f} s, a quarter {one:.3f} s: {shape}"
