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


def nested_match(
    data: object,
    expression: str,
    fits: Fits,
    delimiter: str = DELIMITER,
    *,
    wildcards: bool = True,
    _compared: set[tuple[int, str]] | None = None,
) -> bool:
    """Return whether the value at a path of ``expression`` fits the last part of the expression.

    Every split into path and value is tried, the longest path first. For a map, the pattern is compared with its keys;
    for a list, with each member. The path ``*`` is the whole map, and ``*`` before a pattern means every value of a
    map. Without ``wildcards``, ``*`` is a text like any other.

    A map that contains maps is reached by many splits. Each pair of map and pattern is therefore compared only once:
    without this rule the time doubles with each level of nesting. ``_compared``: the pairs (identity of a map, pattern)
    so far. The data holds the maps, so identities stay unique.
    """
    for path, wanted in _cuts(expression, delimiter):
        if path == "*" and wildcards:
            value, wanted = data, expression
        else:
            value = traverse(data, path, {}, delimiter)
        if value == {}:
            continue
        if isinstance(value, Mapping):
            if _in_map(value, wanted, fits, wildcards, _compared):
                return True
        elif isinstance(value, list | tuple):
            for member in value:
                if isinstance(member, Mapping) and _in_map(member, wanted, fits, wildcards, _compared):
                    return True
                if fits(member, wanted):
                    return True
        elif fits(value, wanted):
            return True
    return False


def _in_map(
    value: Mapping[object, object], pattern: str, fits: Fits, wildcards: bool, compared: set[tuple[int, str]] | None
) -> bool:
    any_key = False
    # As in Salt, the rest of an expression is split at colons, whatever its delimiter is.
    if DELIMITER in pattern:
        compared = set() if compared is None else compared
        # A match ends the whole comparison, so a pair that was compared before did not match.
        if (id(value), pattern) in compared:
            return False
        compared.add((id(value), pattern))
        any_key = wildcards and pattern.startswith("*:")
        pattern = pattern.removeprefix("*:") if any_key else pattern
    if (pattern == "*" and wildcards) or pattern in value or any(fits(key, pattern) for key in value):
        return True
    if DELIMITER in pattern and nested_match(value, pattern, fits, wildcards=wildcards, _compared=compared):
        return True
    for item in value.values() if any_key else ():
        if isinstance(item, Mapping):
            if _in_map(item, pattern, fits, wildcards, compared):
                return True
        elif any(fits(each, pattern) for each in (item if isinstance(item, list) else [item])):
            return True
    return False


@lru_cache(maxsize=1000)
def _cuts(expression: str, delimiter: str) -> tuple[tuple[str, str], ...]:

    parts = expression.split(delimiter)
    return tuple((delimiter.join(parts[:at]), delimiter.join(parts[at:])) for at in range(len(parts) - 1, 0, -1))
