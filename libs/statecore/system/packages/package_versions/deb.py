"""Comparison of package versions by Debian's rules (deb-version(7))."""

from __future__ import annotations

import re
from itertools import zip_longest


def compare(left: str, right: str, *, ignore_epoch: bool = False) -> int:
    """Return -1, 0 or 1 if the Debian version ``left`` is older than, equal to or newer than ``right``.

    Invalid text is compared by the same rules.
    """
    one, two = _parts(left), _parts(right)
    if one[0] != two[0] and not ignore_epoch:
        return -1 if _size(one[0]) < _size(two[0]) else 1
    return _compare_part(one[1], two[1]) or _compare_part(one[2], two[2])


def _parts(version: str) -> tuple[str, str, str]:
    """Return (epoch without leading zeros, upstream version, revision) of a Debian version."""
    head, separator, rest = version.strip().partition(":")
    epoch, body = (
        (head.lstrip("0"), rest) if separator and head.isascii() and head.isdecimal() else ("", version.strip())
    )
    upstream, separator, revision = body.rpartition("-")
    return (epoch, upstream, revision) if separator else (epoch, body, "")


def _compare_part(left: str, right: str) -> int:
    """Compare two upstream versions, or two revisions, of Debian packages: runs of non-digits and of digits
    alternately, each by its own rule. Return -1, 0 or 1.
    """
    for (text_one, number_one), (text_two, number_two) in zip_longest(_runs(left), _runs(right), fillvalue=("", "")):
        if text_one != text_two:
            return _compare_text(text_one, text_two)
        if number_one != number_two:
            return -1 if _size(number_one) < _size(number_two) else 1
    return 0


def _size(number: str) -> tuple[int, str]:
    # Numbers are compared by length first, because Python refuses to convert very long ones.
    return len(number), number


def _runs(text: str) -> list[tuple[str, str]]:
    return [(match[1], match[2].lstrip("0")) for match in re.finditer(r"([^0-9]*)([0-9]*)", text) if match[0]]


def _compare_text(left: str, right: str) -> int:
    for one, two in zip_longest(map(_weight, left), map(_weight, right), fillvalue=0):
        if one != two:
            return -1 if one < two else 1
    return 0


def _weight(character: str) -> int:
    """Return the sort weight of a character in a Debian version: a tilde sorts before the end of the text, letters
    before all others.
    """
    if character == "~":
        return -1
    return ord(character) if character.isascii() and character.isalpha() else ord(character) + 256
