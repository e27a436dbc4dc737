"""``salt.utils.immutabletypes``."""

from __future__ import annotations

from types import MappingProxyType


def freeze(obj: object) -> object:
    """A map, list or set that cannot be changed; anything else as it is."""
    if isinstance(obj, dict):
        return MappingProxyType({key: freeze(value) for key, value in obj.items()})
    if isinstance(obj, list):
        return tuple(freeze(value) for value in obj)
    return frozenset(obj) if isinstance(obj, set) else obj
