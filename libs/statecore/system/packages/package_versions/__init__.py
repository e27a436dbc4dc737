"""Version conditions of system packages (``>=1.2, <2``). A module for each package manager compares versions."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

_CONDITION = re.compile(r"(<=|>=|!=|==|=|<>|<|>)?\s*(.*)$")

#: Operator -> function that returns True if it holds for the result of comparing installed and wanted version.
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
    """Function that compares two package versions by the rules of a package manager."""

    def __call__(self, left: str, right: str, /, *, ignore_epoch: bool = False) -> int:
        """Return -1, 0 or 1 if the package version ``left`` is older than, equal to or newer than ``right``."""
        ...


def conditions(text: str) -> list[tuple[str, str]]:
    """Return the package version conditions in a text such as ``">=1.2, <2"`` as [(operator, version), ...]. A bare
    version has the operator ``==``.
    """
    found: list[tuple[str, str]] = []
    for piece in text.split(","):
        match = _CONDITION.match(piece.strip())
        if match and match[2]:
            operator = match[1] or "=="
            found.append(("==" if operator == "=" else operator, match[2]))
    return found


def is_range(text: str) -> bool:
    """Return True if the text is a version condition that many versions can meet (``>=1.2``), not a single version."""
    return text.lstrip().startswith(("<", ">", "!"))


def fulfils(version: str, text: str, *, order: Order, ignore_epoch: bool | None = None) -> bool:
    """Return True if a package version meets all conditions of a text. ``==`` accepts globs (``1.22*``).

    With ``ignore_epoch`` None, the epoch counts only if the condition names an epoch or has ``<`` or ``>``, as in Salt.
    """
    for operator, wanted in conditions(text):
        if operator == "==" and fnmatch.fnmatchcase(version, wanted):
            continue
        loose = "<" not in operator and ">" not in operator and ":" not in wanted
        found = order(version, wanted, ignore_epoch=loose if ignore_epoch is None else ignore_epoch)
        if not _HOLDS[operator](found):
            return False
    return True


def best(versions: Iterable[str], text: str, *, order: Order, ignore_epoch: bool = False) -> str | None:
    """Return the first of the package versions (given newest first) that meets all conditions, or None."""
    return next(
        (version for version in versions if fulfils(version, text, order=order, ignore_epoch=ignore_epoch)), None
    )
