"""Lines that are made comments, and comments that are made lines again."""

from __future__ import annotations

import re
from dataclasses import dataclass

from statecore.host.content.edits.text import compiled


@dataclass(frozen=True, slots=True)
class Pattern:
    """Which lines are meant, and what makes one a comment. Raises InvocationError."""

    regex: str
    #: Read as part of a regular expression where comments are looked for, as it stands where one is made; Salt does so.
    char: str = "#"

    def __post_init__(self) -> None:
        compiled(self.regex)

    @property
    def bare(self) -> str:
        """The regular expression without anchors and leading flags."""
        return re.sub(r"^(?:\(\?[iLmsux]\))?\^?(.*?)\$?$", r"\1", self.regex)

    def has_line(self, text: str) -> bool:
        """Whether a line that is meant is no comment."""
        return _holds(text, rf"^(?!\s*{self.char})\s*{self.bare}")

    def has_comment(self, text: str) -> bool:
        """Whether a line that is meant is a comment."""
        return _holds(text, self.char + self.bare)

    def has_spaced_comment(self, text: str) -> bool:
        """The same, with space behind the comment's character."""
        return _holds(text, rf"{self.char}[ \t]*{self.regex.lstrip('^')}")

    def has_indented_line(self, text: str) -> bool:
        """Whether a line, indented perhaps, begins as is meant."""
        return _holds(text, rf"^[ \t]*{self.regex.lstrip('^')}")


def commented(text: str, pattern: Pattern) -> str:
    """The text with the lines that begin as is meant made comments."""
    core, end = _core(pattern.regex)
    meant = compiled(f"({core}){end}")
    return "".join(f"{pattern.char}{line}" if meant.match(line) else line for line in _ended(text))


def uncommented(text: str, pattern: Pattern) -> str:
    """The text with the comments that hold what is meant made lines."""
    core, end = _core(pattern.regex)
    meant = compiled(rf"^{pattern.char}\s*({core}){end}")
    return "".join(line.lstrip(pattern.char) if meant.match(line) else line for line in _ended(text))


def _core(regex: str) -> tuple[str, str]:
    return regex.lstrip("^").rstrip("$"), "$" if regex.endswith("$") else ""


def _ended(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _holds(text: str, pattern: str) -> bool:
    return compiled(pattern, re.MULTILINE).search(text) is not None
