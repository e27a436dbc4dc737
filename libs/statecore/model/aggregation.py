"""Aggregation: marks maps and lists, so that two marked values of the same key are joined when maps are merged.

The renderer ``yamlex`` marks the values that its tag ``!aggregate`` names; the merge strategy ``aggregate`` joins
them. A value that is not marked is replaced by a later one.

Salt: salt/utils/aggregation.py.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence as AnySequence
from typing import Any, TypeAlias


class Aggregate:
    """Base class of the maps and lists that are marked to be joined when they are merged."""


class Map(dict[Any, Any], Aggregate):
    """A map that is marked to be joined: when a later marked map is merged over it, the keys of both stay."""


class Sequence(list[Any], Aggregate):
    """A list that is marked to be joined: when a later marked list is merged over it, the later items are added, each
    once.
    """


#: How many levels of two values are joined even if they are not marked: a number, True for all, or one flag for each level.
Level: TypeAlias = "bool | int | str | AnySequence[object]"


def scalar(value: object) -> Sequence:
    """Return a list with the value as its only item, marked to be joined when it is merged."""
    return Sequence([value])


def mark(value: object, map_class: type[dict[Any, Any]] = Map, sequence_class: type[list[Any]] = Sequence) -> object:
    """Return a value marked to be joined when it is merged: a map as a Map; a list, tuple or set as a Sequence; any
    other value as a Sequence with one item. A marked value is returned unchanged.
    """
    if isinstance(value, Aggregate):
        return value
    if isinstance(value, dict):
        return map_class(value)
    return sequence_class(value if isinstance(value, list | tuple | set) else [value])


def levelise(level: Level) -> tuple[bool, Level]:
    """Split a Level into the flag of the current level and the rest. Return (True if the values of the current level
    are joined although they are not marked, the Level for the next inner level).
    """
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

    Two marked maps, or two marked lists, are joined; other values are replaced. Of two maps that are not both marked,
    only the keys of ``over`` stay. ``level`` says for how many levels values are treated as marked.
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
