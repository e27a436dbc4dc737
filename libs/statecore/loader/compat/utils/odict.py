"""``salt.utils.odict`` for users' modules: ordered dicts. Every dict keeps its order today; older modules import these
names.
"""

from __future__ import annotations

import copy
from collections import OrderedDict as OrderedDict
from collections.abc import Callable

__all__ = ["DefaultOrderedDict", "HashableOrderedDict", "OrderedDict"]


class DefaultOrderedDict(OrderedDict[object, object]):
    """An ordered dict that creates a missing value by calling ``default_factory``."""

    def __init__(self, default_factory: Callable[[], object] | None = None, *args: object, **kwargs: object) -> None:
        if default_factory is not None and not callable(default_factory):
            raise TypeError("first argument must be callable")
        super().__init__(*args, **kwargs)
        self.default_factory = default_factory

    def __missing__(self, key: object) -> object:
        if self.default_factory is None:
            raise KeyError(key)
        self[key] = value = self.default_factory()
        return value

    def copy(self) -> DefaultOrderedDict:
        """Return a copy of the dict with the same entries and the same ``default_factory``."""
        return type(self)(self.default_factory, self)

    def __deepcopy__(self, memo: dict[int, object]) -> DefaultOrderedDict:
        return type(self)(self.default_factory, copy.deepcopy(list(self.items()), memo))


class HashableOrderedDict(OrderedDict[object, object]):
    """An ordered dict that can be a map's key. Its hash is its identity."""

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)
