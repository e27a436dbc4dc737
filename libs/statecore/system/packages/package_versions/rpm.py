"""The order of versions as RPM has it (rpm-version(7), ``rpmvercmp``). Pure."""

from __future__ import annotations

import re

#: What stands between the parts of a version has no weight.
_SEPARATORS = re.compile(r"[^a-zA-Z0-9~^]*")
_PART = re.compile(r"[0-9]+|[a-zA-Z]+")


def compare(left: str, right: str, *, ignore_epoch: bool = False) -> int:
    """-1, 0 or 1: ``left`` is older, the same, newer. Where one of them names no release, releases do not count."""
    one, two = split(left), split(right)
    if one[0] != two[0] and not ignore_epoch:
        return -1 if one[0] < two[0] else 1
    return compare_part(one[1], two[1]) or (compare_part(one[2], two[2]) if one[2] and two[2] else 0)


def split(version: str) -> tuple[int, str, str]:
    """Epoch (0 where none is named), version, release ("" where none is named)."""
    head, separator, rest = version.strip().partition(":")
    epoch, body = (int(head), rest) if separator and head.isascii() and head.isdigit() else (0, version.strip())
    name, _, release = body.partition("-")
    return epoch, name, release


def compare_part(left: str, right: str) -> int:
    """The order of two versions, or of two releases, part by part."""
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
    """Where text starts, or ends, with a sign on either side: ``~`` is older than the end, ``^`` newer, all else newer still."""
    return {"~": 0, "": 1, "^": 2}.get(text[:1], 3)


def _compare_run(one: str, two: str) -> int:
    """Numbers by their value, and newer than letters."""
    if one[0].isdigit() != two[0].isdigit():
        return 1 if one[0].isdigit() else -1
    # Numbers by length first: some are longer than what Python converts.
    first, second = (
        ((len(run), run) for run in (one.lstrip("0"), two.lstrip("0"))) if one[0].isdigit() else ((0, one), (0, two))
    )
    return (first > second) - (first < second)
