"""``salt.utils.data``."""

from __future__ import annotations

import contextlib
from typing import Any

from statecore.values import filter_by as _filter_by
from statecore.values import traverse


def traverse_dict_and_list(data: Any, key: str | int, default: Any = None, delimiter: str = ":") -> Any:
    """The value at a path through dicts and lists."""
    return traverse(data, key, default, delimiter)


#: Salt's name for the same walk through dicts alone.
traverse_dict = traverse_dict_and_list


def is_true(value: Any = None) -> bool:
    """Whether a value means yes: numbers above 0, "true", anything else by its truth."""
    with contextlib.suppress(ValueError, TypeError):
        value = int(value)
    if isinstance(value, int | float):
        return value > 0
    if isinstance(value, str):
        return value.lower() == "true"
    return bool(value)


def filter_by(
    lookup_dict: Any, lookup: str, traverse: Any, merge: Any = None, default: str = "default", base: str | None = None
) -> Any:
    """The entry of a table that matches a value."""
    return _filter_by(lookup_dict, lookup, traverse, merge, default, base)
