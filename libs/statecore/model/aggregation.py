"""Aggregation: maps and lists that are marked so that a later value of their key is joined to them.

The renderer ``yamlex`` marks the values that its tag ``!aggregate`` names; the merge strategy ``aggregate`` joins them. A
value that is not marked is replaced by a later one.

Salt: salt/utils/aggregation.py.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence as AnySequence
from typing import Any, TypeAlias


class Aggregate:
    """Base class of marked values."""


class Map(dict[Any, Any], Aggregate):
    """A marked map: keys of a later marked map are added to it."""


class Sequence(list[Any], Aggregate):
    """A marked list: items of a later marked list are added to it, each once."""


#: How many levels of two values are joined even if they are not marked: a number, True for all, or one flag for each level.
Level: TypeAlias = "bool | int | str | AnySequence[object]"


def scalar(value: object) -> Sequence:
    """Return a marked list with one item."""
    return Sequence([value])


def mark(value: object, map_class: type[dict[Any, Any]] = Map, sequence_class: type[list[Any]] = Sequence) -> object:
    """Return a value as a marked one: a map, a list (also of a tuple or set), or a list with the value as its only
    item.
    """
    if isinstance(value, Aggregate):
        return value
    if isinstance(value, dict):
        return map_class(value)
    return sequence_class(value if isinstance(value, list | tuple | set) else [value])


def levelise(level: Level) -> tuple[bool, Level]:
    """Return (whether this level is joined although its values are not marked, the Level of the level below)."""
    if not level:
        return False, False
    if level is True:
        return True, True
    if isinstance(level, int):
        return True, level - 1
    return bool(int(str(level[0]))), level[1:]


def aggregate(
    under: object,
    over: object,
    level: Level = False,
    map_class: type[dict[Any, Any]] = Map,
    sequence_class: type[list[Any]] = Sequence,
) -> Any:
    """Return ``over`` merged over ``under``; neither is changed.

    Marked values of the same type are joined, others replaced. Of two maps that are not both marked, only the keys of
    ``over`` stay. ``level`` says how many levels are treated as marked.
    """
    deep, below = levelise(level)
    if deep:
        under, over = (mark(each, map_class, sequence_class) for each in (under, over))
    marked = isinstance(under, Aggregate) and isinstance(over, Aggregate)
    if isinstance(under, dict) and isinstance(over, dict):
        merged = copy.copy(under if marked else over)
        for key, value in over.items():
            old = key in under
            merged[key] = aggregate(under[key], value, below, map_class, sequence_class) if old else value
        return merged
    if isinstance(under, Sequence) and isinstance(over, Sequence):
        return type(under)([*under, *(item for item in over if item not in under)])
    return copy.copy(over)
