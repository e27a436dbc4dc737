"""Whether nested data holds a value: ``a:b:value``, as targets by grains and pillar ask (Salt: salt.utils.data.subdict_match)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from statecore.model.values import DELIMITER, traverse

#: (value, pattern) -> whether they fit: a glob, a regular expression, the very text.
Fits: TypeAlias = Callable[[Any, str], bool]


def nested_match(data: Any, expression: str, fits: Fits, delimiter: str = DELIMITER) -> bool:
    """Whether the value at a path of ``expression`` fits its last part.

    Every way to part path and value is tried, the longest path first. Of a map the keys are asked, of a list each member; ``*``
    alone as path asks the whole map, and ``*`` before a pattern everything in a map.
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
    """Every path and value that an expression can be parted into. Kept: one target asks thousands of minions."""
    parts = expression.split(delimiter)
    return tuple((delimiter.join(parts[:at]), delimiter.join(parts[at:])) for at in range(len(parts) - 1, 0, -1))


def _in_map(found: Mapping[Any, Any], pattern: str, fits: Fits) -> bool:
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
