"""Commenting and uncommenting of lines that match a regular expression (``file.comment``, ``file.uncomment``)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from statecore.host.content.edits.text import compiled


@dataclass(frozen=True, slots=True)
class CommentPattern:
    """The lines to comment or uncomment (``file.comment``): a regular expression, and the comment character.

    Raises InvocationError for an invalid expression.
    """

    regex: str
    #: Comment character. Searches read it as a regular expression, new comments as plain text, as in Salt.
    char: str = "#"

    def __post_init__(self) -> None:
        compiled(self.regex)

    @property
    def bare(self) -> str:
        """The regular expression without anchors and without flags at its start."""
        return re.sub(r"^(?:\(\?[iLmsux]\))?\^?(.*?)\$?$", r"\1", self.regex)

    def has_line(self, text: str) -> bool:
        """Return True if the text has a line that matches the expression and is not a comment."""
        return _holds(text, rf"^(?!\s*{self.char})\s*{self.bare}")

    def has_comment(self, text: str) -> bool:
        """Return True if the text has a comment whose content matches the expression."""
        return _holds(text, self.char + self.bare)

    def has_spaced_comment(self, text: str) -> bool:
        """Return True if the text has a matching comment, with or without space after the comment character."""
        return _holds(text, rf"{self.char}[ \t]*{self.regex.lstrip('^')}")

    def has_indented_line(self, text: str) -> bool:
        """Return True if the text has a line whose start, after optional indentation, matches the expression."""
        return _holds(text, rf"^[ \t]*{self.regex.lstrip('^')}")


def commented(text: str, pattern: CommentPattern) -> str:
    """Return the text of a file with the comment character put before each line that the pattern matches."""
    core, end = _core(pattern.regex)
    meant = compiled(f"({core}){end}")
    return "".join(f"{pattern.char}{line}" if meant.match(line) else line for line in _ended(text))


def uncommented(text: str, pattern: CommentPattern) -> str:
    """Return the text of a file with the comment character removed from each comment that the pattern matches."""
    core, end = _core(pattern.regex)
    meant = compiled(rf"^{pattern.char}\s*({core}){end}")
    return "".join(line.lstrip(pattern.char) if meant.match(line) else line for line in _ended(text))


def _core(regex: str) -> tuple[str, str]:
    return regex.lstrip("^").rstrip("$"), "$" if regex.endswith("$") else ""


def _ended(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _holds(text: str, pattern: str) -> bool:
    return compiled(pattern, re.MULTILINE).search(text) is not None
