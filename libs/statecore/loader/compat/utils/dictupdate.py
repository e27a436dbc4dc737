"""``salt.utils.dictupdate``: merge nested maps, and set values at a path such as ``a:b``."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from statecore.model.errors import InvocationError
from statecore.model.values import STRATEGIES
from statecore.model.values import merge as _merge


def update(dest: Any, upd: Any, recursive_update: bool = True, merge_lists: bool = False, strict: bool = False) -> Any:
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


def _joined(old: list[Any], new: list[Any]) -> list[Any]:
    """Return the old values, followed by the new values that are not among them."""
    return [*old, *(each for each in new if each not in old)]


def merge(obj_a: Any, obj_b: Any, strategy: str = "smart", renderer: str = "yaml", merge_lists: bool = False) -> Any:
    """Return two maps merged by a strategy; an unknown strategy means ``recurse``."""
    return _merge(obj_a, obj_b, strategy if strategy in STRATEGIES else "recurse", lists=merge_lists)


def merge_list(obj_a: Any, obj_b: Any) -> Any:
    """Return the first map; the value of each key that both maps have becomes a list of both values."""
    return _merge(obj_a, obj_b, "list")


def merge_recurse(obj_a: Any, obj_b: Any, merge_lists: bool = False) -> Any:
    """Return two maps merged at all levels."""
    return _merge(obj_a, obj_b, "recurse", lists=merge_lists)


def merge_overwrite(obj_a: Any, obj_b: Any, merge_lists: bool = False) -> Any:
    """Return two maps merged; the second map's value wins."""
    return _merge(obj_a, obj_b, "overwrite", lists=merge_lists)


def ensure_dict_key(in_dict: Any, keys: str, delimiter: str = ":", ordered_dict: bool = False) -> Any:
    """Create a map for each key of the path that is missing, and return the whole map."""
    at = in_dict
    for key in keys.split(delimiter):
        if not isinstance(at.get(key), dict):
            at[key] = {}
        at = at[key]
    return in_dict


def set_dict_key_value(in_dict: Any, keys: str, value: Any, delimiter: str = ":", ordered_dict: bool = False) -> Any:
    """Set the value at a path, creating maps on the way, and return the whole map."""
    holder, key = _holder(in_dict, keys, delimiter)
    holder[key] = value
    return in_dict


def update_dict_key_value(in_dict: Any, keys: str, value: Any, delimiter: str = ":", ordered_dict: bool = False) -> Any:
    """Update the map at a path and return the whole map. Raise InvocationError if the path holds another type."""
    holder, key = _holder(in_dict, keys, delimiter)
    if holder.get(key) is None:
        holder[key] = {}
    if not hasattr(holder[key], "update"):
        raise InvocationError(f"The last key contains a {type(holder[key])}, which cannot update.")
    try:
        holder[key].update(value)
    except (ValueError, TypeError):
        raise InvocationError(f"Cannot update {type(holder[key])} with a {type(value)}.") from None
    return in_dict


def append_dict_key_value(in_dict: Any, keys: str, value: Any, delimiter: str = ":", ordered_dict: bool = False) -> Any:
    """Append the value to the list at a path and return the whole map. Raise InvocationError if the path holds another type."""
    _list_at(in_dict, keys, delimiter, "append").append(value)
    return in_dict


def extend_dict_key_value(in_dict: Any, keys: str, value: Any, delimiter: str = ":", ordered_dict: bool = False) -> Any:
    """Extend the list at a path and return the whole map. Raise InvocationError if the path holds another type."""
    there = _list_at(in_dict, keys, delimiter, "extend")
    try:
        there.extend(value)
    except TypeError:
        raise InvocationError(f"Cannot extend {type(there)} with a {type(value)}.") from None
    return in_dict


def _holder(data: Any, keys: str, delimiter: str) -> tuple[Any, str]:
    """Return (the map that holds the path's last key, that key); create the map if it is missing."""
    path, nested, key = keys.rpartition(delimiter)
    if nested:
        ensure_dict_key(data, path, delimiter)
        for each in path.split(delimiter):
            data = data[each]
    return data, key


def _list_at(data: Any, keys: str, delimiter: str, verb: str) -> Any:
    holder, key = _holder(data, keys, delimiter)
    if holder.get(key) is None:
        holder[key] = []
    if not hasattr(holder[key], verb):
        raise InvocationError(f"The last key contains a {type(holder[key])}, which cannot {verb}.")
    return holder[key]
