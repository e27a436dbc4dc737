"""``salt.utils.oset`` for users' modules: a set that keeps the order in which its items were added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet
from typing import Any


class OrderedSet(MutableSet[Any]):
    """A set that keeps the order of its items. Each item has an index, counted from 0."""

    def __init__(self, iterable: Iterable[Any] | None = None) -> None:
        self.items: list[Any] = []
        self.map: dict[Any, int] = {}
        self.update(iterable or ())

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, item: object) -> bool:
        return item in self.map

    def __iter__(self) -> Iterator[Any]:
        yield from self.items

    def __reversed__(self) -> Iterator[Any]:
        yield from reversed(self.items)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return OrderedSet(self.items[index])
        if isinstance(index, Iterable):
            return [self.items[each] for each in index]
        return self.items[index]

    def add(self, value: Any) -> int:  # type: ignore[override]
        """Add an item, unless the set has it. Return the item's index."""
        if value not in self.map:
            self.map[value] = len(self.items)
            self.items.append(value)
        return self.map[value]

    append = add

    def update(self, sequence: Iterable[Any]) -> int | None:
        """Add the items of ``sequence``. Return the index of the last one; None if there are none. Raise ValueError for
        a value that cannot be iterated.
        """
        last = None
        try:
            for item in sequence:
                last = self.add(item)
        except TypeError as error:
            raise ValueError(f"Argument needs to be an iterable, got {type(sequence)}") from error
        return last

    def index(self, key: Any) -> Any:
        """Return the index of an item, or for a list of items the list of their indexes. Raise KeyError for an item
        that is not in the set.
        """
        if isinstance(key, list | set | frozenset):
            return [self.index(each) for each in key]
        return self.map[key]

    def pop(self) -> Any:
        """Remove and return the last item. Raise KeyError if the set is empty."""
        if not self.items:
            raise KeyError("Set is empty")
        item = self.items.pop()
        del self.map[item]
        return item

    def discard(self, value: Any) -> None:
        """Remove an item if it is there."""
        if value in self.map:
            self.items.remove(value)
            self.map = {item: number for number, item in enumerate(self.items)}

    def clear(self) -> None:
        """Remove all items."""
        self.items.clear()
        self.map.clear()

    def copy(self) -> OrderedSet:
        """Return a copy of the set."""
        return OrderedSet(self.items)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, OrderedSet | list | tuple):
            return self.items == list(other)
        return set(self.items) == set(other) if isinstance(other, Iterable) else False

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.items!r})" if self.items else f"{type(self).__name__}()"
