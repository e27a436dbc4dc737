"""Jinja filters for lists and maps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, MutableMapping
from typing import TypeAlias

import jinja2

from statecore.model import values
from statecore.model.errors import InvocationError
from statecore.render.filters.text import to_num

#: A map that a filter changes in place.
_Map: TypeAlias = MutableMapping[str, object]


def unique(given: Iterable[object]) -> Collection[object]:
    """Return the values without repetition, in order. A set stays a set."""
    if isinstance(given, set | frozenset):
        return set(given)
    found: list[object] = []
    for value in given:
        if value not in found:
            found.append(value)
    return found


def sequence(value: object) -> object:
    """Return the value if it is a collection, else a list of the value."""
    return value if isinstance(value, list | tuple | set | dict) else [value]


def _both_hashable(left: object, right: object) -> bool:
    """Return True for two tuples or texts: as in Salt, set operations on these return a set, otherwise a list."""
    return isinstance(left, Hashable) and isinstance(right, Hashable)


def intersect(left: Collection[object], right: Collection[object]) -> Collection[object]:
    """Return the values that are in both."""
    if _both_hashable(left, right):
        return set(left) & set(right)
    return unique([value for value in left if value in right])


def difference(left: Collection[object], right: Collection[object]) -> Collection[object]:
    """Return the values of ``left`` that are not in ``right``."""
    if _both_hashable(left, right):
        return set(left) - set(right)
    return unique([value for value in left if value not in right])


def union(left: Collection[object], right: Collection[object]) -> Collection[object]:
    """Return the values that are in ``left`` or ``right``."""
    if _both_hashable(left, right):
        return set(left) | set(right)
    return unique([*left, *right])


def symmetric_difference(left: Collection[object], right: Collection[object]) -> Collection[object]:
    """Return the values that are in exactly one of the two."""
    if _both_hashable(left, right):
        return set(left) ^ set(right)
    both = intersect(left, right)
    return [value for value in union(left, right) if value not in both]


def average(given: object) -> float:
    """Return the mean of the numbers; 0.0 for an empty list."""
    listed = given if isinstance(given, Iterable) else [given]
    numbers = list(listed)
    return float(sum(numbers) / len(numbers)) if numbers else 0.0


def flatten(given: Iterable[object], levels: int | None = None, preserve_nulls: bool = False) -> list[object]:
    """Return a list without nested lists, down to ``levels`` levels (None: all). Of a map, the keys are taken.

    Nulls are removed unless ``preserve_nulls``. Raises RecursionError for a list that contains itself.
    """
    flat: list[object] = []
    for value in given:
        if not preserve_nulls and value in (None, "None", "null"):
            continue
        if isinstance(value, Iterable) and not isinstance(value, str) and (levels is None or levels > 0):
            flat += flatten(value, None if levels is None else int(levels) - 1, preserve_nulls)
        else:
            flat.append(value)
    return flat


def exactly(given: Iterable[object], amount: int = 1) -> bool:
    """Return True if exactly ``amount`` of the values are true."""
    return sum(1 for value in given if value) == amount


def is_iterable(value: object) -> bool:
    """Return True if the value is iterable and not a text."""
    return isinstance(value, Iterable) and not isinstance(value, str)


def compare_lists(old: list[object], new: list[object]) -> dict[str, list[object]]:
    """Map with "new" (values only in the new list) and "old" (values only in the old list). Empty ones are left out."""
    sides = {"new": [value for value in new if value not in old], "old": [value for value in old if value not in new]}
    return {side: found for side, found in sides.items() if found}


def compare_dicts(old: Mapping[object, object], new: Mapping[object, object]) -> dict[object, dict[str, object]]:
    """Map of each key whose value differs to its "old" and "new" value; "" for a missing value."""
    return {
        key: {"old": old.get(key, ""), "new": new.get(key, "")}
        for key in dict.fromkeys((*new, *old))
        if key not in old or key not in new or old[key] != new[key]
    }


def to_entries(data: object) -> list[dict[str, object]]:
    """List of ``{key, value}`` maps, one for each entry of a map or list."""
    if not isinstance(data, Mapping | list):
        raise jinja2.TemplateRuntimeError("Input data must be a dict or list")
    pairs = data.items() if isinstance(data, Mapping) else enumerate(data)
    return [{"key": key, "value": value} for key, value in pairs]


def from_entries(entries: Iterable[Mapping[str, object]]) -> dict[object, object]:
    """Return the map described by a list of ``{key, value}`` or ``{name, value}`` maps."""
    found: dict[object, object] = {}
    for entry in entries:
        lower = {str(key).lower(): value for key, value in entry.items()}
        key = lower.get("key") or lower.get("name")
        if key:
            found[key] = lower.get("value")
    return found


def traverse(data: object, key: str, default: object = None, delimiter: str = values.DELIMITER) -> object:
    """Return the value at a path of keys separated by ``delimiter``, or ``default``."""
    return values.traverse(data, key, default, delimiter)


def set_value(data: _Map, path: str, value: object, delimiter: str = values.DELIMITER) -> _Map:
    """Set the value at a path and return the map. Missing maps on the path are created."""
    return _changed(data, path.split(delimiter), lambda old: value)


def append_value(data: _Map, path: str, value: object, delimiter: str = values.DELIMITER) -> _Map:
    """Append a value to the list at a path and return the map.

    Raises InvocationError if the path holds something else.
    """
    return _changed(data, path.split(delimiter), lambda old: [*_list(old, "append"), value])


def extend_value(data: _Map, path: str, value: object, delimiter: str = values.DELIMITER) -> _Map:
    """Append several values to the list at a path and return the map.

    Raises InvocationError if the path holds something else.
    """
    if not isinstance(value, Iterable):
        raise InvocationError(f"Cannot extend with a {type(value).__name__}")
    return _changed(data, path.split(delimiter), lambda old: [*_list(old, "extend"), *value])


def update_value(data: _Map, path: str, value: object, delimiter: str = values.DELIMITER) -> _Map:
    """Update the map at a path and return the whole map. Raises InvocationError if the path holds something else."""
    if not isinstance(value, Mapping):
        raise InvocationError(f"Cannot update with a {type(value).__name__}")
    return _changed(data, path.split(delimiter), lambda old: {**_map(old), **value})


def _list(value: object, verb: str) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvocationError(f"The last key contains a {type(value).__name__}, which cannot {verb}.")
    return value


def _map(value: object) -> Mapping[object, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvocationError(f"The last key contains a {type(value).__name__}, which cannot update.")
    return value


def _changed(data: _Map, path: list[str], change: Callable[[object], object]) -> _Map:
    """Replace the value at a path of nested maps by ``change`` of this value, and return the outermost map."""
    at = data
    for key in path[:-1]:
        inner = at.get(key)
        if not isinstance(inner, dict):
            inner = at[key] = {}
        at = inner
    at[path[-1]] = change(at.get(path[-1]))
    return data


def encoded(data: object, encoding: str = "utf-8", errors: str = "strict", **_: object) -> object:
    """Return maps and lists with every text in them, keys too, encoded as bytes."""
    if isinstance(data, str):
        return data.encode(encoding, errors)
    if isinstance(data, Mapping):
        return {encoded(key, encoding, errors): encoded(value, encoding, errors) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [encoded(value, encoding, errors) for value in data]
    return data


def mysql_rows(lines: Iterable[str], key: str) -> dict[str | float, dict[str, str | float]]:
    """Map of the value of column ``key`` to its row, parsed from the table that the program mysql prints."""
    rows: dict[str | float, dict[str, str | float]] = {}
    headers: list[str] = []
    for line in lines:
        if not line or line.startswith("+"):
            continue
        cells = [cell.strip() for cell in line.split("|")][1:-1]
        if not headers:
            headers = cells
            continue
        row = dict(zip(headers, map(to_num, cells), strict=False))
        rows[row[key]] = row
    return rows


def json_query(data: object, expression: str) -> object:
    """Return the result of a JMESPath expression. Raises TemplateRuntimeError if jmespath is not installed."""
    try:
        import jmespath  # optional: few templates use it
    except ImportError as error:
        raise jinja2.TemplateRuntimeError("json_query requires jmespath module installed") from error
    return jmespath.search(expression, data)
