"""Jinja filters for lists and maps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, MutableMapping
from typing import TypeAlias

import jinja2

from statecore.model import values
from statecore.model.errors import InvocationError
from statecore.render.filters.text import to_num
from statecore.render.jinja.variables import plain_data

#: A map that a filter changes in place.
_Map: TypeAlias = MutableMapping[str, object]


def unique(given: Iterable[object]) -> Collection[object]:
    """Jinja filter: return a list without repeated values, in the same order. A set stays a set."""
    if isinstance(given, set | frozenset):
        return set(given)
    found: list[object] = []
    for value in given:
        if value not in found:
            found.append(value)
    return found


def sequence(value: object) -> object:
    """Jinja filter: return a list, tuple, set or map unchanged, and any other value as the only item of a list."""
    return value if isinstance(value, list | tuple | set | dict) else [value]


def _both_hashable(left: object, right: object) -> bool:
    """Return whether two values are hashable, such as tuples: as in Salt, set operations on these return a set,
    otherwise a list.
    """
    return isinstance(left, Hashable) and isinstance(right, Hashable)


def intersect(lst1: Collection[object], lst2: Collection[object]) -> Collection[object]:
    """Jinja filter: return the values that are in both lists."""
    if _both_hashable(lst1, lst2):
        return set(lst1) & set(lst2)
    return unique([value for value in lst1 if value in lst2])


def difference(lst1: Collection[object], lst2: Collection[object]) -> Collection[object]:
    """Jinja filter: return the values of the list ``lst1`` that are not in the list ``lst2``."""
    if _both_hashable(lst1, lst2):
        return set(lst1) - set(lst2)
    return unique([value for value in lst1 if value not in lst2])


def union(lst1: Collection[object], lst2: Collection[object]) -> Collection[object]:
    """Jinja filter: return the values that are in one of the two lists, without repetition."""
    if _both_hashable(lst1, lst2):
        return set(lst1) | set(lst2)
    return unique([*lst1, *lst2])


def symmetric_difference(lst1: Collection[object], lst2: Collection[object]) -> Collection[object]:
    """Jinja filter: return the values that are in exactly one of the two lists."""
    if _both_hashable(lst1, lst2):
        return set(lst1) ^ set(lst2)
    both = intersect(lst1, lst2)
    return [value for value in union(lst1, lst2) if value not in both]


def average(given: object) -> float:
    """Jinja filter ``avg``: return the mean of a list of numbers; 0.0 for an empty list."""
    listed = given if isinstance(given, Iterable) else [given]
    numbers = list(listed)
    return float(sum(numbers) / len(numbers)) if numbers else 0.0


def flatten(given: Iterable[object], levels: int | None = None, preserve_nulls: bool = False) -> list[object]:
    """Jinja filter: return nested lists as one list, down to ``levels`` levels (None: all levels). Of a map, the keys
    are taken.

    Nulls are removed unless ``preserve_nulls`` is true. Raise RecursionError for a list that contains itself.
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


def exactly(iterable: Iterable[object], amount: int = 1) -> bool:
    """Jinja filter ``exactly_n_true``: return whether exactly ``amount`` of the values are true."""
    return sum(1 for value in iterable if value) == amount


def exactly_one(iterable: Iterable[object]) -> bool:
    """Jinja filter ``exactly_one_true``: return whether exactly one of the values is true."""
    return exactly(iterable)


def is_iterable(thing: object, ignore: type | tuple[type, ...] = (str,)) -> bool:
    """Jinja filter ``is_iter``: return whether the value can be iterated and is of none of the types in ``ignore``."""
    return isinstance(thing, Iterable) and not (ignore and isinstance(thing, ignore))


def compare_lists(old: list[object], new: list[object]) -> dict[str, list[object]]:
    """Jinja filter: return {"new": values only in the new list, "old": values only in the old list}. Empty lists are
    left out.
    """
    sides = {"new": [value for value in new if value not in old], "old": [value for value in old if value not in new]}
    return {side: found for side, found in sides.items() if found}


def compare_dicts(old: Mapping[object, object], new: Mapping[object, object]) -> dict[object, dict[str, object]]:
    """Jinja filter: map each key whose value differs in two maps to {"old": old value, "new": new value}; "" for a
    missing value.
    """
    return {
        key: {"old": old.get(key, ""), "new": new.get(key, "")}
        for key in dict.fromkeys((*new, *old))
        if key not in old or key not in new or old[key] != new[key]
    }


def to_entries(data: object) -> list[dict[str, object]]:
    """Jinja filter: return a map (or the indexes and items of a list) as a list of {"key": key, "value": value}.

    Raise TemplateRuntimeError for other values.
    """
    if not isinstance(data, Mapping | list):
        raise jinja2.TemplateRuntimeError("Input data must be a dict or list")
    pairs = data.items() if isinstance(data, Mapping) else enumerate(data)
    return [{"key": key, "value": value} for key, value in pairs]


def from_entries(entries: Iterable[Mapping[str, object]]) -> dict[object, object]:
    """Jinja filter: return a list of {"key": key, "value": value} (or "name" for "key") as one map."""
    found: dict[object, object] = {}
    for entry in entries:
        lower = {str(key).lower(): value for key, value in entry.items()}
        key = lower.get("key") or lower.get("name")
        if key:
            found[key] = lower.get("value")
    return found


def traverse(data: object, key: str, default: object = None, delimiter: str = values.DELIMITER) -> object:
    """Jinja filter: return the value at a path such as ``a:b`` in nested maps and lists; ``default`` if there is none."""
    return values.traverse(data, key, default, delimiter)


def set_value(
    in_dict: _Map, keys: str, value: object, delimiter: str = values.DELIMITER, ordered_dict: bool = False
) -> _Map:
    """Jinja filter ``set_dict_key_value``: set the value at a path such as ``a:b`` in nested maps, and return the
    outermost map.

    Missing maps on the path are created.
    """
    return _changed(in_dict, keys.split(delimiter), lambda old: value)


def append_value(
    in_dict: _Map, keys: str, value: object, delimiter: str = values.DELIMITER, ordered_dict: bool = False
) -> _Map:
    """Jinja filter ``append_dict_key_value``: append a value to the list at a path such as ``a:b``, and return the
    outermost map.

    Raise InvocationError if the value at the path is not a list.
    """
    return _changed(in_dict, keys.split(delimiter), lambda old: [*_list(old, "append"), value])


def extend_value(
    in_dict: _Map, keys: str, value: object, delimiter: str = values.DELIMITER, ordered_dict: bool = False
) -> _Map:
    """Jinja filter ``extend_dict_key_value``: append several values to the list at a path such as ``a:b``, and return
    the outermost map.

    Raise InvocationError if the value at the path is not a list.
    """
    if not isinstance(value, Iterable):
        raise InvocationError(f"Cannot extend with a {type(value).__name__}")
    return _changed(in_dict, keys.split(delimiter), lambda old: [*_list(old, "extend"), *value])


def update_value(
    in_dict: _Map, keys: str, value: object, delimiter: str = values.DELIMITER, ordered_dict: bool = False
) -> _Map:
    """Jinja filter ``update_dict_key_value``: update the map at a path such as ``a:b`` with another map, and return the
    outermost map.

    Raise InvocationError if the value at the path is not a map.
    """
    if not isinstance(value, Mapping):
        raise InvocationError(f"Cannot update with a {type(value).__name__}")
    return _changed(in_dict, keys.split(delimiter), lambda old: {**_map(old), **value})


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
    """Replace the value at a path in nested maps by the result of ``change`` for this value, and return the outermost
    map.
    """
    at = data
    for key in path[:-1]:
        inner = at.get(key)
        if not isinstance(inner, dict):
            inner = at[key] = {}
        at = inner
    at[path[-1]] = change(at.get(path[-1]))
    return data


def encoded(
    data: object,
    encoding: str | None = None,
    errors: str = "strict",
    keep: bool = False,
    preserve_dict_class: bool = False,
    preserve_tuples: bool = False,
) -> object:
    """Jinja filter ``json_encode_list``: return nested maps and lists with every text in them, keys too, encoded as
    bytes.

    Tuples become lists unless ``preserve_tuples`` is true. ``keep``: a text that cannot be encoded stays a text;
    otherwise raise UnicodeEncodeError. ``preserve_dict_class`` has no effect.
    """

    def inner(value: object) -> object:
        return encoded(value, encoding, errors, keep, preserve_dict_class, preserve_tuples)

    if isinstance(data, str):
        try:
            return data.encode(encoding or "utf-8", errors)
        except UnicodeEncodeError:
            if not keep:
                raise
            return data
    if isinstance(data, Mapping):
        return {inner(key): inner(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        items = [inner(value) for value in data]
        return tuple(items) if preserve_tuples and isinstance(data, tuple) else items
    return data


def mysql_rows(lines: Iterable[str], key: str) -> dict[str | float, dict[str, str | float]]:
    """Jinja filter ``mysql_to_dict``: parse the table that the program mysql prints. Map the value of column ``key`` to
    its row.

    A row is {column: value}.
    """
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


def json_query(data: object, expr: str) -> object:
    """Jinja filter: return the result of a JMESPath expression for nested data.

    Raise TemplateRuntimeError if the Python package jmespath is not installed.
    """
    try:
        import jmespath  # optional: few templates use it
    except ImportError as error:
        raise jinja2.TemplateRuntimeError("json_query requires jmespath module installed") from error
    # jmespath calls the method ``get`` of every object.
    return jmespath.search(expr, plain_data(data))
