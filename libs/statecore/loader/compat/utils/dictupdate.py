"""``salt.utils.dictupdate``: merge nested maps, and set values at a path such as ``a:b``."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, TypeAlias

from statecore.model.errors import InvocationError
from statecore.model.values import STRATEGIES
from statecore.model.values import merge as _merge

#: A map that a function of this module changes in place.
Map: TypeAlias = MutableMapping[str, object]


def update(
    dest: object, upd: object, recursive_update: bool = True, merge_lists: bool = False, strict: bool = False
) -> object:
    """``upd`` merged into ``dest``, which is changed and returned. Raises TypeError for what is no map.

    Unlike in a merge of its own, what is taken over is not copied. ``strict``, with ``merge_lists``: a list is not replaced
    by a map.
    """
    if not isinstance(dest, MutableMapping) or not isinstance(upd, Mapping):
        raise TypeError("Cannot update using non-dict types in dictupdate.update()")
    for key, value in upd.items():
        old = dest.get(key)
        if recursive_update and isinstance(old, MutableMapping) and isinstance(value, Mapping):
            update(old, value, merge_lists=merge_lists)
        elif recursive_update and merge_lists and isinstance(old, list) and isinstance(value, list):
            dest[key] = _joined(old, value)
        elif recursive_update and strict and merge_lists and isinstance(old, list) and isinstance(value, Mapping):
            raise TypeError(f"cannot update the list under key={key!r} with a map in dictupdate.update()")
        else:
            dest[key] = value
    return dest


def _joined(old: list[object], new: list[object]) -> list[object]:
    """Return the old values, followed by the new values that are not among them."""
    return [*old, *(each for each in new if each not in old)]


def merge(
    obj_a: object, obj_b: object, strategy: str = "smart", renderer: str = "yaml", merge_lists: bool = False
) -> object:
    """Return two maps merged by a strategy; an unknown strategy means ``recurse``."""
    return _merge(obj_a, obj_b, strategy if strategy in STRATEGIES else "recurse", lists=merge_lists)


def merge_list(obj_a: object, obj_b: object) -> object:
    """Return the first map; the value of each key that both maps have becomes a list of both values."""
    return _merge(obj_a, obj_b, "list")


def merge_recurse(obj_a: object, obj_b: object, merge_lists: bool = False) -> object:
    """Return two maps merged at all levels."""
    return _merge(obj_a, obj_b, "recurse", lists=merge_lists)


def merge_overwrite(obj_a: object, obj_b: object, merge_lists: bool = False) -> object:
    """Return two maps merged; the second map's value wins."""
    return _merge(obj_a, obj_b, "overwrite", lists=merge_lists)


def ensure_dict_key(in_dict: Map, keys: str, delimiter: str = ":", ordered_dict: bool = False) -> Map:
    """Create a map for each key of the path that is missing, and return the whole map."""
    at = in_dict
    for key in keys.split(delimiter):
        at = _map_at(at, key)
    return in_dict


def set_dict_key_value(in_dict: Map, keys: str, value: object, delimiter: str = ":", ordered_dict: bool = False) -> Map:
    """Set the value at a path, creating maps on the way, and return the whole map."""
    holder, key = _holder(in_dict, keys, delimiter)
    holder[key] = value
    return in_dict


def update_dict_key_value(
    in_dict: Map, keys: str, value: object, delimiter: str = ":", ordered_dict: bool = False
) -> Map:
    """Update the map at a path and return the whole map. Raise InvocationError if the path holds another type."""
    holder, key = _holder(in_dict, keys, delimiter)
    if holder.get(key) is None:
        holder[key] = {}
    update_value = getattr(holder[key], "update", None)
    if update_value is None:
        raise InvocationError(f"The last key contains a {type(holder[key])}, which cannot update.")
    try:
        update_value(value)
    except (ValueError, TypeError):
        raise InvocationError(f"Cannot update {type(holder[key])} with a {type(value)}.") from None
    return in_dict


def append_dict_key_value(
    in_dict: Map, keys: str, value: object, delimiter: str = ":", ordered_dict: bool = False
) -> Map:
    """Append the value to the list at a path and return the whole map. Raise InvocationError if the path holds another type."""
    _list_at(in_dict, keys, delimiter, "append").append(value)
    return in_dict


def extend_dict_key_value(
    in_dict: Map, keys: str, value: object, delimiter: str = ":", ordered_dict: bool = False
) -> Map:
    """Extend the list at a path and return the whole map. Raise InvocationError if the path holds another type."""
    there = _list_at(in_dict, keys, delimiter, "extend")
    try:
        there.extend(value)
    except TypeError:
        raise InvocationError(f"Cannot extend {type(there)} with a {type(value)}.") from None
    return in_dict


def _map_at(data: Map, key: str) -> Map:
    inner = data.get(key)
    if not isinstance(inner, dict):
        inner = data[key] = {}
    return inner


def _holder(data: Map, keys: str, delimiter: str) -> tuple[Map, str]:
    """Return (the map that holds the path's last key, that key); create the map if it is missing."""
    *path, key = keys.split(delimiter)
    for each in path:
        data = _map_at(data, each)
    return data, key


def _list_at(data: Map, keys: str, delimiter: str, verb: str) -> Any:
    """Return the value at the path, which has the method ``verb`` of a list. Raise InvocationError if it has not."""
    holder, key = _holder(data, keys, delimiter)
    if holder.get(key) is None:
        holder[key] = []
    if not hasattr(holder[key], verb):
        raise InvocationError(f"The last key contains a {type(holder[key])}, which cannot {verb}.")
    return holder[key]
