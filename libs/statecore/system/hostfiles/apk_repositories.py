"""/etc/apk/repositories: one URL on each line, optionally after a tag. Lines with ``#`` are disabled."""

from __future__ import annotations

import re
from dataclasses import dataclass

from statecore.model.text_lines import lines_of

_LINE = re.compile(r"^\s*(?P<disabled>#+\s*)?(?:@(?P<tag>[\w.-]+)\s+)?(?P<url>(?:[a-z]+://|/)\S+)\s*$")


@dataclass(frozen=True, slots=True)
class Repository:
    """One line of /etc/apk/repositories: URL, tag, and whether it is enabled."""

    url: str
    #: Tag of the repository; "" for an untagged one.
    tag: str = ""
    disabled: bool = False

    @property
    def line(self) -> str:
        """The repository as a line of /etc/apk/repositories."""
        return f"{'#' if self.disabled else ''}{f'@{self.tag} ' if self.tag else ''}{self.url}"

    def same_place(self, other: Repository) -> bool:
        """Return True if both apk repositories have the same tag and URL."""
        return (self.tag, self.url.rstrip("/")) == (other.tag, other.url.rstrip("/"))


def parse_line(text: str) -> Repository | None:
    """Return the apk repository on a line of /etc/apk/repositories, or None for a line without one."""
    match = _LINE.match(text)
    return Repository(match["url"], match["tag"] or "", bool(match["disabled"])) if match else None


def parse(text: str) -> list[Repository]:
    """List of all apk repositories in the text of /etc/apk/repositories."""
    return [found for line in lines_of(text) if (found := parse_line(line)) is not None]


def with_repository(text: str, wanted: Repository) -> str:
    """Return the text of /etc/apk/repositories with ``wanted`` in place of the repository of the same tag and URL, or
    at the end.
    """
    lines = lines_of(text)
    for at, line in enumerate(lines):
        found = parse_line(line)
        if found is not None and found.same_place(wanted):
            lines[at] = wanted.line
            break
    else:
        lines.append(wanted.line)
    return "".join(f"{line}\n" for line in lines)


def without(text: str, gone: Repository) -> str:
    """Return the text of /etc/apk/repositories without the repository ``gone``."""
    lines = lines_of(text, keepends=True)
    return "".join(line for line in lines if (found := parse_line(line)) is None or not found.same_place(gone))
