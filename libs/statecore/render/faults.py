"""Errors of templates and of rendered data, with file and line, and the excerpt of lines around an error."""

from __future__ import annotations

from collections.abc import Sequence

from statecore.model.errors import Mark, SlsError, SlsFault

#: Salt's arrow after the faulty line of an excerpt.
ARROW = "    <======================"

#: Number of lines shown before and after the faulty line.
_AROUND = 4


def excerpt(text: str, line: int) -> str:
    """Return the lines of a text around the line number ``line``, that line marked with an arrow (``<====``) as in
    Salt. "" if the text has no such line.
    """
    return excerpt_of(text.splitlines(), line)


def excerpt_of(lines: Sequence[str], line: int) -> str:
    """Return the lines around the line number ``line`` as one text, that line marked with an arrow (``<====``) as in
    Salt. "" if there is no such line.

    ``lines`` is a text that is already split into lines.
    """
    if not 1 <= line <= len(lines):
        return ""
    first = max(0, line - 1 - _AROUND)
    shown = [
        f"{one}{ARROW}" if number == line else one
        for number, one in enumerate(lines[first : line + _AROUND], first + 1)
    ]
    return "\n".join(shown)


class TemplateFault(SlsError):
    """Error: a template cannot be rendered. ``reason`` is the message, which is Salt's if Salt has the same error."""

    def __init__(self, reason: str, mark: Mark, source: str) -> None:
        self.reason = reason
        self.mark = mark
        self.excerpt = excerpt(source, mark.line)
        super().__init__([SlsFault(reason, mark, excerpt=self.excerpt)])
