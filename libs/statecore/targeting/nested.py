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
    data: object, expression: str, fits: Fits, delimiter: str = DELIMITER, *, wildcards: bool = True
) -> bool:
    """Return True if a minion's grains or pillar match an expression such as ``os:Debian`` or ``roles:web:*``.

    The last part of the expression is compared with the value at the path before it. Every split into path and value is
    tried, the longest path first. In a map the keys are compared, in a list the members. The path ``*`` is the whole
    map; ``*`` before a pattern means every value of a map. Without ``wildcards``, ``*`` is a text like any other.
    """
    return _Search(fits, wildcards).found(data, expression, delimiter)


class _Search:
    """One comparison of data with an expression.

    A map that contains maps is reached by many splits. Each pair of map and pattern is therefore compared only once:
    without this rule the time doubles with each level of nesting.
    """

    def __init__(self, fits: Fits, wildcards: bool) -> None:
        self._fits, self._wildcards = fits, wildcards
        #: Pairs (identity of a map, pattern) that were compared. The data holds the maps, so identities stay unique.
        self._compared: set[tuple[int, str]] = set()

    def found(self, data: object, expression: str, delimiter: str) -> bool:
        for path, wanted in _cuts(expression, delimiter):
            if path == "*" and self._wildcards:
                value, wanted = data, expression
            else:
                value = traverse(data, path, {}, delimiter)
            if value == {}:
                continue
            if isinstance(value, Mapping):
                if self._in_map(value, wanted):
                    return True
            elif isinstance(value, list | tuple):
                for member in value:
                    if (isinstance(member, Mapping) and self._in_map(member, wanted)) or self._fits(member, wanted):
                        return True
            elif self._fits(value, wanted):
                return True
        return False

    def _in_map(self, value: Mapping[object, object], pattern: str) -> bool:
        # A match ends the whole comparison, so a pair that was compared before did not match.
        if (id(value), pattern) in self._compared:
            return False
        self._compared.add((id(value), pattern))
        any_key = self._wildcards and pattern.startswith("*:")
        pattern = pattern.removeprefix("*:") if any_key else pattern
        if (pattern == "*" and self._wildcards) or pattern in value or any(self._fits(key, pattern) for key in value):
            return True
        # As in Salt, the rest of an expression is split at colons, whatever its delimiter is.
        if self.found(value, pattern, DELIMITER):
            return True
        for item in value.values() if any_key else ():
            if isinstance(item, Mapping):
                if self._in_map(item, pattern):
                    return True
            elif any(self._fits(each, pattern) for each in (item if isinstance(item, list) else [item])):
                return True
        return False


@lru_cache(maxsize=1000)
def _cuts(expression: str, delimiter: str) -> tuple[tuple[str, str], ...]:

    parts = expression.split(delimiter)
    return tuple((delimiter.join(parts[:at]), delimiter.join(parts[at:])) for at in range(len(parts) - 1, 0, -1))
