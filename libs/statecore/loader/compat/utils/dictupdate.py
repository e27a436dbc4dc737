"""``salt.utils.dictupdate`` for users' modules: merges nested maps, and sets values at a path such as ``a:b``."""

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
    """Merge the map ``upd`` into the map ``dest`` and return ``dest``, which is changed. Raise TypeError if one of them
    is not a map.

    With ``merge_lists``, lists are joined instead of replaced. With ``strict`` as well, replacing a list by a map
    raises TypeError. Values are not copied.
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
    """Return the items of the old list, followed by the items of the new list that the old list lacks."""
    return [*old, *(each for each in new if each not in old)]


def merge(
    obj_a: object, obj_b: object, strategy: str = "smart", renderer: str = "yaml", merge_lists: bool = False
) -> object:
    """Return a map merged from two maps by a strategy: smart, aggregate, list, none, overwrite or recurse.

    An unknown strategy means ``recurse``. With ``merge_lists``, lists are joined.
    """
    return _merge(obj_a, obj_b, strategy if strategy in STRATEGIES else "recurse", lists=merge_lists)


def merge_list(obj_a: object, obj_b: object) -> object:
    """Return a map merged from two maps: the value of a key that both maps have becomes a list of both values."""
    return _merge(obj_a, obj_b, "list")


def merge_recurse(obj_a: object, obj_b: object, merge_lists: bool = False) -> object:
    """Return a map merged from two maps at all levels; of two plain values the second map's is used."""
    return _merge(obj_a, obj_b, "recurse", lists=merge_lists)


def merge_overwrite(obj_a: object, obj_b: object, merge_lists: bool = False) -> object:
    """Return a map merged from two maps at the first level; for a key that both maps have, the second map's value is
    used.
    """
    return _merge(obj_a, obj_b, "overwrite", lists=merge_lists)


def ensure_dict_key(in_dict: Map, keys: str, delimiter: str = ":", ordered_dict: bool = False) -> Map:
    """Create the missing maps at a path such as ``a:b`` in nested maps, and return the outermost map."""
    at = in_dict
    for key in keys.split(delimiter):
        at = _map_at(at, key)
    return in_dict


def set_dict_key_value(in_dict: Map, keys: str, value: object, delimiter: str = ":", ordered_dict: bool = False) -> Map:
    """Set the value at a path such as ``a:b`` in nested maps, and return the outermost map. Missing maps are created."""
    holder, key = _holder(in_dict, keys, delimiter)
    holder[key] = value
    return in_dict


def update_dict_key_value(
    in_dict: Map, keys: str, value: object, delimiter: str = ":", ordered_dict: bool = False
) -> Map:
    """Update the map at a path such as ``a:b`` in nested maps with another map, and return the outermost map.

    Raise InvocationError if the value at the path is not a map.
    """
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
    """Append a value to the list at a path such as ``a:b`` in nested maps, and return the outermost map.

    Raise InvocationError if the value at the path is not a list.
    """
    _list_at(in_dict, keys, delimiter, "append").append(value)
    return in_dict


def extend_dict_key_value(
    in_dict: Map, keys: str, value: object, delimiter: str = ":", ordered_dict: bool = False
) -> Map:
    """Append several values to the list at a path such as ``a:b`` in nested maps, and return the outermost map.

    Raise InvocationError if the value at the path is not a list.
    """
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
    """Return (innermost map, last key) of a path in nested maps. Missing maps on the path are created."""
    *path, key = keys.split(delimiter)
    for each in path:
        data = _map_at(data, each)
    return data, key


def _list_at(data: Map, keys: str, delimiter: str, verb: str) -> Any:
    """Return the value at a path in nested maps; a missing value becomes [].

    Raise InvocationError if the value has no method called ``verb`` ("append" or "extend").
    """
    holder, key = _holder(data, keys, delimiter)
    if holder.get(key) is None:
        holder[key] = []
    if not hasattr(holder[key], verb):
        raise InvocationError(f"The last key contains a {type(holder[key])}, which cannot {verb}.")
    return holder[key]
