"""What can be wrong with a file while it is rendered, with its line; and the lines around it, as people are shown them."""

from __future__ import annotations

from collections.abc import Sequence

from statecore.model.errors import Mark, SlsError, SlsFault

#: Salt's arrow behind the faulty line of an excerpt.
ARROW = "    <======================"

#: Lines shown around a faulty one.
_AROUND = 4


def excerpt(text: str, line: int) -> str:
    """Lines around a faulty one, with Salt's arrow; "" for a line that there is not."""
    return excerpt_of(text.splitlines(), line)


def excerpt_of(lines: Sequence[str], line: int) -> str:
    """``excerpt`` of a text that is split already."""
    if not 1 <= line <= len(lines):
        return ""
    first = max(0, line - 1 - _AROUND)
    shown = [
        f"{one}{ARROW}" if number == line else one
        for number, one in enumerate(lines[first : line + _AROUND], first + 1)
    ]
    return "\n".join(shown)


class TemplateFault(SlsError):
    """A template that cannot be rendered; ``reason`` is what to say of it, in Salt's words where Salt has some."""

    def __init__(self, reason: str, mark: Mark, source: str) -> None:
        self.reason = reason
        self.mark = mark
        self.excerpt = excerpt(source, mark.line)
        super().__init__([SlsFault(reason, mark, excerpt=self.excerpt)])


class DataFault(Exception):
    """Text that cannot be read as data. ``line`` and ``column`` count from 1 in the text that was parsed; 0: unknown.

    ``earlier``: the line of what it is in conflict with (the first of two equal keys), 0 without.
    """

    def __init__(self, message: str, line: int, column: int = 0, earlier: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column
        self.earlier = earlier
