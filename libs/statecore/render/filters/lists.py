"""Jinja filters over lists and maps."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import jinja2

from statecore.model import values
from statecore.model.errors import InvocationError
from statecore.render.filters.text import to_num


def unique(given: Any) -> Any:
    """Values without repetition, in order; a set stays one."""
    if isinstance(given, set | frozenset):
        return set(given)
    found: list[Any] = []
    for value in given:
        if value not in found:
            found.append(value)
    return found


def sequence(value: Any) -> Any:
    """The value if it is a collection, else a list of it."""
    return value if isinstance(value, list | tuple | set | dict) else [value]


def _both_hashable(left: Any, right: Any) -> bool:
    """Salt answers with a set for two tuples or texts, and with a list otherwise."""
    return isinstance(left, Hashable) and isinstance(right, Hashable)


def intersect(left: Any, right: Any) -> Any:
    """Values of both."""
    if _both_hashable(left, right):
        return set(left) & set(right)
    return unique([value for value in left if value in right])


def difference(left: Any, right: Any) -> Any:
    """Values of the left that the right has not."""
    if _both_hashable(left, right):
        return set(left) - set(right)
    return unique([value for value in left if value not in right])


def union(left: Any, right: Any) -> Any:
    """Values of either."""
    if _both_hashable(left, right):
        return set(left) | set(right)
    return unique([*left, *right])


def symmetric_difference(left: Any, right: Any) -> Any:
    """Values of one of them only."""
    if _both_hashable(left, right):
        return set(left) ^ set(right)
    both = intersect(left, right)
    return [value for value in union(left, right) if value not in both]


def average(given: Any) -> float:
    """The mean; 0.0 of nothing."""
    listed = given if isinstance(given, Iterable) else [given]
    numbers = list(listed)
    return float(sum(numbers) / len(numbers)) if numbers else 0.0


def flatten(given: Any, levels: int | None = None, preserve_nulls: bool = False) -> list[Any]:
    """A list without lists in it (keys stand for maps), as many levels deep as asked; nulls are dropped unless they are
    to stay. Raises RecursionError for a list that is in itself.
    """
    flat: list[Any] = []
    for value in given:
        if not preserve_nulls and value in (None, "None", "null"):
            continue
        if is_iterable(value) and (levels is None or levels > 0):
            flat += flatten(value, None if levels is None else int(levels) - 1, preserve_nulls)
        else:
            flat.append(value)
    return flat


def exactly(given: Iterable[Any], amount: int = 1) -> bool:
    """Whether so many of the values are true."""
    return sum(1 for value in given if value) == amount


def is_iterable(value: Any) -> bool:
    """Whether a value, not a text, can be walked over."""
    return isinstance(value, Iterable) and not isinstance(value, str)


def compare_lists(old: list[Any], new: list[Any]) -> dict[str, list[Any]]:
    """What is only in the new one, and only in the old one."""
    told = {"new": [value for value in new if value not in old], "old": [value for value in old if value not in new]}
    return {side: found for side, found in told.items() if found}


def compare_dicts(old: Mapping[Any, Any], new: Mapping[Any, Any]) -> dict[Any, dict[str, Any]]:
    """Key -> old and new, of the keys whose values differ; "" for none."""
    return {
        key: {"old": old.get(key, ""), "new": new.get(key, "")}
        for key in dict.fromkeys((*new, *old))
        if key not in old or key not in new or old[key] != new[key]
    }


def to_entries(data: Any) -> list[dict[str, Any]]:
    """``{key, value}`` of each entry of a map or a list."""
    if not isinstance(data, Mapping | list):
        raise jinja2.TemplateRuntimeError("Input data must be a dict or list")
    pairs = data.items() if isinstance(data, Mapping) else enumerate(data)
    return [{"key": key, "value": value} for key, value in pairs]


def from_entries(entries: Iterable[Mapping[str, Any]]) -> dict[Any, Any]:
    """The map of ``{key, value}`` or ``{name, value}``."""
    found: dict[Any, Any] = {}
    for entry in entries:
        lower = {str(key).lower(): value for key, value in entry.items()}
        key = lower.get("key") or lower.get("name")
        if key:
            found[key] = lower.get("value")
    return found


def traverse(data: Any, key: str, default: Any = None, delimiter: str = values.DELIMITER) -> Any:
    """The value at a path of keys."""
    return values.traverse(data, key, default, delimiter)


def set_value(data: Any, path: str, value: Any, delimiter: str = values.DELIMITER) -> Any:
    """The map with a value at a path; maps on the way are made."""
    return _changed(data, path.split(delimiter), lambda old: value)


def append_value(data: Any, path: str, value: Any, delimiter: str = values.DELIMITER) -> Any:
    """The map with a value more in the list at a path. Raises InvocationError where something else stands."""
    return _changed(data, path.split(delimiter), lambda old: [*_list(old, "append"), value])


def extend_value(data: Any, path: str, value: Any, delimiter: str = values.DELIMITER) -> Any:
    """The map with more values in the list at a path. Raises InvocationError where something else stands."""
    if not isinstance(value, Iterable):
        raise InvocationError(f"Cannot extend with a {type(value).__name__}")
    return _changed(data, path.split(delimiter), lambda old: [*_list(old, "extend"), *value])


def update_value(data: Any, path: str, value: Any, delimiter: str = values.DELIMITER) -> Any:
    """The map with more keys in the map at a path. Raises InvocationError where something else stands."""
    if not isinstance(value, Mapping):
        raise InvocationError(f"Cannot update with a {type(value).__name__}")
    return _changed(data, path.split(delimiter), lambda old: {**_map(old), **value})


def _list(value: Any, verb: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvocationError(f"The last key contains a {type(value).__name__}, which cannot {verb}.")
    return value


def _map(value: Any) -> Mapping[Any, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvocationError(f"The last key contains a {type(value).__name__}, which cannot update.")
    return value


def _changed(data: Any, path: list[str], change: Any) -> Any:
    at = data
    for key in path[:-1]:
        if not isinstance(at.get(key), dict):
            at[key] = {}
        at = at[key]
    at[path[-1]] = change(at.get(path[-1]))
    return data


def encoded(data: Any, encoding: str = "utf-8", errors: str = "strict", **_: Any) -> Any:
    """Maps and lists with every text in them, keys too, as bytes."""
    if isinstance(data, str):
        return data.encode(encoding, errors)
    if isinstance(data, Mapping):
        return {encoded(key, encoding, errors): encoded(value, encoding, errors) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [encoded(value, encoding, errors) for value in data]
    return data


def mysql_rows(lines: Iterable[str], key: str) -> dict[Any, dict[str, Any]]:
    """Rows of what the program mysql prints, by the value of one column."""
    rows: dict[Any, dict[str, Any]] = {}
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


def json_query(data: Any, expression: str) -> Any:
    """What a JMESPath expression finds. Raises TemplateRuntimeError where jmespath is not installed."""
    try:
        import jmespath  # few templates use it, and not everybody has it
    except ImportError as error:
        raise jinja2.TemplateRuntimeError("json_query requires jmespath module installed") from error
    return jmespath.search(expression, data)
