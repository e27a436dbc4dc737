"""Comparison of package versions by RPM's rules (rpm-version(7), ``rpmvercmp``)."""

from __future__ import annotations

import re

#: Separators between the parts of a version. They are ignored.
_SEPARATORS = re.compile(r"[^a-zA-Z0-9~^]*")
#: Most digits of an epoch.
_EPOCH = 20
_PART = re.compile(r"[0-9]+|[a-zA-Z]+")


def compare(left: str, right: str, *, ignore_epoch: bool = False) -> int:
    """Return -1, 0 or 1 if the RPM version ``left`` is older than, equal to or newer than ``right``.

    Releases count only if both name one.
    """
    one, two = split(left), split(right)
    if one[0] != two[0] and not ignore_epoch:
        return -1 if one[0] < two[0] else 1
    return compare_part(one[1], two[1]) or (compare_part(one[2], two[2]) if one[2] and two[2] else 0)


def split(version: str) -> tuple[int, str, str]:
    """Return (epoch or 0, version, release or "") of an RPM version."""
    head, separator, rest = version.strip().partition(":")
    has_epoch = separator and head.isascii() and head.isdigit() and len(head) <= _EPOCH
    epoch, body = (int(head), rest) if has_epoch else (0, version.strip())
    name, _, release = body.partition("-")
    return epoch, name, release


def compare_part(left: str, right: str) -> int:
    """Compare the versions, or the releases, of two RPM packages part by part. Return -1, 0 or 1."""
    if left == right:
        return 0
    at, other = 0, 0
    while True:
        at, other = _end(_SEPARATORS, left, at), _end(_SEPARATORS, right, other)
        signs = (left[at : at + 1], right[other : other + 1])
        if "~" in signs or "^" in signs:
            if signs[0] != signs[1]:
                return 1 if _weight(signs[0]) > _weight(signs[1]) else -1
            at, other = at + 1, other + 1
            continue
        if not signs[0] or not signs[1]:
            return bool(signs[0]) - bool(signs[1])
        one, two = _end(_PART, left, at), _end(_PART, right, other)
        if order := _compare_run(left[at:one], right[other:two]):
            return order
        at, other = one, two


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return the position behind what a pattern matches at a position of a text; the position itself for no match."""
    found = pattern.match(text, at)
    return found.end() if found else at


def _weight(text: str) -> int:
    """Return the sort weight of the first character of a part of an RPM version: ``~`` is older than the end of the
    text, ``^`` newer, others newer still.
    """
    return {"~": 0, "": 1, "^": 2}.get(text, 3)


def _compare_run(one: str, two: str) -> int:
    """Return -1, 0 or 1 from the comparison of two runs (all digits or all letters) of RPM versions. Numbers compare by
    value and are newer than letters.
    """
    if one[0].isdigit() != two[0].isdigit():
        return 1 if one[0].isdigit() else -1
    # Numbers are compared by length first, because Python refuses to convert very long ones.
    first, second = (
        ((len(run), run) for run in (one.lstrip("0"), two.lstrip("0"))) if one[0].isdigit() else ((0, one), (0, two))
    )
    return (first > second) - (first < second)
