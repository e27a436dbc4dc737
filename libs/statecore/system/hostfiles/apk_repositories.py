"""/etc/apk/repositories: a URL on each line, with a tag in front of it or without; ``#`` before those that are disabled. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"^\s*(?P<disabled>#+\s*)?(?:@(?P<tag>[\w.-]+)\s+)?(?P<url>(?:[a-z]+://|/)\S+)\s*$")


@dataclass(frozen=True, slots=True)
class Repository:
    """One line."""

    url: str
    #: "" for packages that are named without one.
    tag: str = ""
    disabled: bool = False

    @property
    def line(self) -> str:
        """As it is written."""
        return f"{'#' if self.disabled else ''}{f'@{self.tag} ' if self.tag else ''}{self.url}"

    def same_place(self, other: Repository) -> bool:
        """Whether both mean the same packages."""
        return (self.tag, self.url.rstrip("/")) == (other.tag, other.url.rstrip("/"))


def parse_line(text: str) -> Repository | None:
    """The repository of a line, None for any other line."""
    match = _LINE.match(text)
    return Repository(match["url"], match["tag"] or "", bool(match["disabled"])) if match else None


def parse(text: str) -> list[Repository]:
    """All repositories of a file."""
    return [found for line in text.splitlines() if (found := parse_line(line)) is not None]


def placed(text: str, wanted: Repository) -> str:
    """The text with a repository as it is wanted, where it is or behind all others."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        found = parse_line(line)
        if found is not None and found.same_place(wanted):
            lines[at] = wanted.line
            break
    else:
        lines.append(wanted.line)
    return "".join(f"{line}\n" for line in lines)


def without(text: str, gone: Repository) -> str:
    """The text without a repository."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if (found := parse_line(line)) is None or not found.same_place(gone))
