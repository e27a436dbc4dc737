"""Versions of packages: conditions on them (``>=1.2, <2``), and their order as Debian has it (deb-version(7)). Pure."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from typing import Protocol

_CONDITION = re.compile(r"\s*(<=|>=|!=|==|=|<>|<|>)?\s*(.*?)\s*$")

#: Operator -> whether it holds for the three-way comparison of installed and wanted version.
_HOLDS: Mapping[str, Callable[[int], bool]] = {
    "==": lambda order: order == 0,
    "!=": lambda order: order != 0,
    "<>": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


class Order(Protocol):
    """Three-way comparison of two versions."""

    def __call__(self, left: str, right: str, /, *, ignore_epoch: bool) -> int:
        """-1, 0 or 1."""
        ...


def compare(left: str, right: str, *, ignore_epoch: bool = False) -> int:
    """-1, 0 or 1: ``left`` is older, the same, newer. Total: text that is no version is ordered by the same rules."""
    one, two = _parts(left), _parts(right)
    if one[0] != two[0] and not ignore_epoch:
        return -1 if one[0] < two[0] else 1
    return _compare_part(one[1], two[1]) or _compare_part(one[2], two[2])


def conditions(text: str) -> list[tuple[str, str]]:
    """``">=1.2, <2"`` as [(operator, version), ...]; a bare version has the operator ``==``."""
    found: list[tuple[str, str]] = []
    for piece in text.split(","):
        match = _CONDITION.match(piece)
        if match and match[2]:
            operator = match[1] or "=="
            found.append(("==" if operator == "=" else operator, match[2]))
    return found


def is_range(text: str) -> bool:
    """Whether the text is a condition that a repository's versions must be searched for (``>=1.2``)."""
    return text.lstrip().startswith(("<", ">", "!"))


def fulfils(version: str, text: str, *, ignore_epoch: bool | None = None, order: Order = compare) -> bool:
    """Whether a version meets all conditions. ``==`` takes globs (``1.22*``). With ``ignore_epoch`` None an epoch counts
    only if the condition names one, or orders (Salt's rule)."""
    for operator, wanted in conditions(text):
        if operator == "==" and fnmatch.fnmatchcase(version, wanted):
            continue
        loose = "<" not in operator and ">" not in operator and ":" not in wanted
        found = order(version, wanted, ignore_epoch=loose if ignore_epoch is None else ignore_epoch)
        if not _HOLDS[operator](found):
            return False
    return True


def best(versions: Iterable[str], text: str, *, ignore_epoch: bool = False) -> str | None:
    """The first of the versions (newest first, as repositories list them) that meets all conditions."""
    return next((version for version in versions if fulfils(version, text, ignore_epoch=ignore_epoch)), None)


def _parts(version: str) -> tuple[int, str, str]:
    """Epoch, upstream version, revision."""
    head, separator, rest = version.strip().partition(":")
    epoch, body = (int(head), rest) if separator and head.isdecimal() else (0, version.strip())
    upstream, separator, revision = body.rpartition("-")
    return (epoch, upstream, revision) if separator else (epoch, body, "")


def _compare_part(left: str, right: str) -> int:
    """Runs of non-digits and of digits in turn, each by its own rule."""
    for (text_one, number_one), (text_two, number_two) in zip_longest(_runs(left), _runs(right), fillvalue=("", 0)):
        if text_one != text_two:
            return _compare_text(text_one, text_two)
        if number_one != number_two:
            return -1 if number_one < number_two else 1
    return 0


def _runs(text: str) -> list[tuple[str, int]]:
    return [(match[1], int(match[2] or 0)) for match in re.finditer(r"([^0-9]*)([0-9]*)", text) if match[0]]


def _compare_text(left: str, right: str) -> int:
    for one, two in zip_longest(map(_weight, left), map(_weight, right), fillvalue=0):
        if one != two:
            return -1 if one < two else 1
    return 0


def _weight(character: str) -> int:
    """A tilde sorts before the end of the text, letters before all else."""
    if character == "~":
        return -1
    return ord(character) if character.isascii() and character.isalpha() else ord(character) + 256
