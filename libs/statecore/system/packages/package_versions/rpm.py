"""Comparison of package versions by RPM's rules (rpm-version(7), ``rpmvercmp``)."""

from __future__ import annotations

import re

#: Separators between the parts of a version. They are ignored.
_SEPARATORS = re.compile(r"[^a-zA-Z0-9~^]*")
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
    epoch, body = (int(head), rest) if separator and head.isascii() and head.isdigit() else (0, version.strip())
    name, _, release = body.partition("-")
    return epoch, name, release


def compare_part(left: str, right: str) -> int:
    """Compare the versions, or the releases, of two RPM packages part by part. Return -1, 0 or 1."""
    while left != right:
        left, right = _SEPARATORS.sub("", left, count=1), _SEPARATORS.sub("", right, count=1)
        signs = (left[:1], right[:1])
        if "~" in signs or "^" in signs:
            if signs[0] != signs[1]:
                return 1 if _weight(left) > _weight(right) else -1
            left, right = left[1:], right[1:]
            continue
        if not left or not right:
            return bool(left) - bool(right)
        one, two = _PART.match(left), _PART.match(right)
        if one is None or two is None:
            raise AssertionError(f"{left!r} and {right!r} start with a part")
        if order := _compare_run(one[0], two[0]):
            return order
        left, right = left[one.end() :], right[two.end() :]
    return 0


def _weight(text: str) -> int:
    """Return the sort weight of the first character of a part of an RPM version: ``~`` is older than the end of the
    text, ``^`` newer, others newer still.
    """
    return {"~": 0, "": 1, "^": 2}.get(text[:1], 3)


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
