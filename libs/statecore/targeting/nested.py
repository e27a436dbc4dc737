"""Comparison of nested data with an expression ``a:b:value``, for targets by grains and pillar.

Salt: salt/utils/data.py, subdict_match
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeAlias

from statecore.model.values import DELIMITER, traverse

#: (value, pattern) -> True when they match: by glob, by regular expression, or as equal texts.
Fits: TypeAlias = Callable[[object, str], bool]


def nested_match(data: object, expression: str, fits: Fits, delimiter: str = DELIMITER) -> bool:
    """Return whether the value at a path of ``expression`` fits the last part of the expression.

    Every split into path and value is tried, the longest path first. For a map, the pattern is compared with its keys;
    for a list, with each member. The path ``*`` is the whole map, and ``*`` before a pattern means every value of a
    map.
    """
    for path, wanted in _cuts(expression, delimiter):
        if path == "*":
            found, wanted = data, expression
        else:
            found = traverse(data, path, {}, delimiter)
        if found == {}:
            continue
        if isinstance(found, Mapping):
            if _in_map(found, wanted, fits):
                return True
        elif isinstance(found, list | tuple):
            for member in found:
                if (isinstance(member, Mapping) and _in_map(member, wanted, fits)) or fits(member, wanted):
                    return True
        elif fits(found, wanted):
            return True
    return False


@lru_cache(maxsize=1000)
def _cuts(expression: str, delimiter: str) -> tuple[tuple[str, str], ...]:
    """Return every (path, value) that the expression can be split into. Cached, because a target is compared with
    many minions.
    """
    parts = expression.split(delimiter)
    return tuple((delimiter.join(parts[:at]), delimiter.join(parts[at:])) for at in range(len(parts) - 1, 0, -1))


def _in_map(found: Mapping[object, object], pattern: str, fits: Fits) -> bool:
    any_key = pattern.startswith("*:")
    pattern = pattern.removeprefix("*:")
    if pattern == "*" or pattern in found or any(fits(key, pattern) for key in found):
        return True
    if nested_match(found, pattern, fits):
        return True
    for value in found.values() if any_key else ():
        if isinstance(value, Mapping):
            if _in_map(value, pattern, fits):
                return True
        elif any(fits(item, pattern) for item in (value if isinstance(value, list) else [value])):
            return True
    return False
