"""``salt.utils.immutabletypes`` for users' modules."""

from __future__ import annotations

from types import MappingProxyType


def freeze(obj: object) -> object:
    """Return a read-only copy of nested maps, lists and sets; a list becomes a tuple. Other values are returned
    unchanged.
    """
    if isinstance(obj, dict):
        return MappingProxyType({key: freeze(value) for key, value in obj.items()})
    if isinstance(obj, list):
        return tuple(freeze(value) for value in obj)
    return frozenset(obj) if isinstance(obj, set) else obj
