"""Comparison of package versions by the rules of apk-tools: ``1.2.3a_rc1_p2-r4``."""

from __future__ import annotations

import re
from typing import NamedTuple

#: Suffixes, oldest first. Those before "" are pre-releases.
_SUFFIXES = ("alpha", "beta", "pre", "rc", "", "cvs", "svn", "git", "hg", "p")
_RELEASED = _SUFFIXES.index("")

#: Kinds of parts in the order of a version. If two parts differ in kind, the later kind is older.
_KINDS = ("number", "letter", "suffix", "suffix_number", "hash", "revision", "end")
_PARTS = re.compile(
    r"(?:(?:^|\.)(?P<number>\d+))|(?P<letter>[a-z])(?![a-z])|_(?P<suffix>alpha|beta|pre|rc|cvs|svn|git|hg|p)"
    r"|(?P<suffix_number>\d+)|~(?P<hash>[0-9a-f]+)|-r(?P<revision>\d+)"
)


class _Part(NamedTuple):
    kind: str
    text: str
    #: True for the first number of a version, whose leading zeros are ignored.
    first: bool = False


def compare(left: str, right: str, *, ignore_epoch: bool = False) -> int:
    """Return -1, 0 or 1 if the apk version ``left`` is older than, equal to or newer than ``right``. apk has no epochs.

    Invalid text is newest.
    """
    one, two = _parts(left.strip()), _parts(right.strip())
    for mine, other in zip(one, two, strict=False):
        if mine.kind != other.kind:
            return _compare_kinds(mine, other)
        if order := _compare_values(mine, other):
            return order
    return 0


def _parts(version: str) -> list[_Part]:
    found: list[_Part] = []
    at = 0
    while match := _PARTS.match(version, at):
        found.append(_Part(str(match.lastgroup), match[str(match.lastgroup)], first=not found))
        at = match.end()
    # The rest is not part of a version. It is compared as text.
    return [*found, _Part("end", version[at:])]


def _compare_kinds(mine: _Part, other: _Part) -> int:
    for part, sign in ((mine, -1), (other, 1)):
        if part.kind == "suffix" and _SUFFIXES.index(part.text) < _RELEASED:
            return sign
    return -1 if _KINDS.index(mine.kind) > _KINDS.index(other.kind) else 1


def _compare_values(mine: _Part, other: _Part) -> int:
    one, two = _weight(mine, other), _weight(other, mine)
    return (one > two) - (one < two)


def _weight(part: _Part, other: _Part) -> tuple[int, str]:
    if part.kind == "suffix":
        return _SUFFIXES.index(part.text), ""
    # A number with a leading zero is compared as a fraction: 1.05 is older than 1.1.
    fraction = part.kind == "number" and not part.first and "0" in (part.text[0], other.text[0])
    if part.kind in ("number", "suffix_number", "revision") and not fraction:
        # Compared by length first, because Python refuses to convert very long numbers.
        plain = part.text.lstrip("0")
        return len(plain), plain
    return 0, part.text
