"""``salt.utils.immutabletypes`` for users' modules: read-only views of maps, lists and sets."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any


class ImmutableDict(Mapping[Any, Any]):
    """A read-only view of a map; its values are read-only too."""

    def __init__(self, obj: Mapping[Any, Any]) -> None:
        self._obj = obj

    def __getitem__(self, key: Any) -> Any:
        return freeze(self._obj[key])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._obj)

    def __len__(self) -> int:
        return len(self._obj)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._obj!r}>"

    def __deepcopy__(self, memo: dict[int, object]) -> Any:
        return self.copy()

    def copy(self) -> Any:
        """Return a deep copy of the map as a dict, which can be changed."""
        return copy.deepcopy(self._obj)


class ImmutableList(Sequence[Any]):
    """A read-only view of a list; its items are read-only too."""

    def __init__(self, obj: Sequence[Any]) -> None:
        self._obj = obj

    def __getitem__(self, index: Any) -> Any:
        return freeze(self._obj[index])

    def __len__(self) -> int:
        return len(self._obj)

    def __add__(self, other: Any) -> Any:
        return self._obj + other

    def __radd__(self, other: Any) -> Any:
        return other + self._obj

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._obj!r}>"

    def __deepcopy__(self, memo: dict[int, object]) -> Any:
        return self.copy()

    def copy(self) -> Any:
        """Return a deep copy as a list, which can be changed."""
        return copy.deepcopy(self._obj)


class ImmutableSet(Set[Any]):
    """A read-only view of a set."""

    def __init__(self, obj: Set[Any]) -> None:
        self._obj = obj

    def __contains__(self, item: object) -> bool:
        return item in self._obj

    def __iter__(self) -> Iterator[Any]:
        return iter(self._obj)

    def __len__(self) -> int:
        return len(self._obj)

    @classmethod
    def _from_iterable(cls, it: Any) -> Any:
        return set(it)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._obj!r}>"

    def __deepcopy__(self, memo: dict[int, object]) -> Any:
        return self.copy()

    def copy(self) -> Any:
        """Return a deep copy as a set, which can be changed."""
        return copy.deepcopy(self._obj)


def freeze(obj: Any) -> Any:
    """Return a read-only view of a map, list or set; other values are returned unchanged."""
    if isinstance(obj, dict):
        return ImmutableDict(obj)
    if isinstance(obj, list):
        return ImmutableList(obj)
    return ImmutableSet(obj) if isinstance(obj, set) else obj
