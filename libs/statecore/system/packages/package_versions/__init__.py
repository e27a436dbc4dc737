"""Versions of packages: conditions on them (``>=1.2, <2``). Pure; what order they have is told by a module for each family."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
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

    def __call__(self, left: str, right: str, /, *, ignore_epoch: bool = False) -> int:
        """-1, 0 or 1."""
        ...


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


def fulfils(version: str, text: str, *, order: Order, ignore_epoch: bool | None = None) -> bool:
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


def best(versions: Iterable[str], text: str, *, order: Order, ignore_epoch: bool = False) -> str | None:
    """The first of the versions (newest first, as repositories list them) that meets all conditions."""
    return next(
        (version for version in versions if fulfils(version, text, order=order, ignore_epoch=ignore_epoch)), None
    )
