"""A cache of a worker with an entry for each minion, bounded by bytes: the entries that were used least recently go first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import TypeVar

Value = TypeVar("Value")


class BoundedCache(MutableMapping[str, Value]):
    """A map of minion id to value, of about ``most_bytes`` at most. One thread uses it."""

    def __init__(self, most_bytes: int, size_of: Callable[[Value], int]) -> None:
        """Create an empty cache. ``most_bytes``: about the largest size of all entries. ``size_of``: returns about how
        many bytes of memory a value takes, with its key and its place in the map.
        """
        self._most = most_bytes
        self._size_of = size_of
        #: The entry that was used least recently comes first.
        self._entries: dict[str, tuple[Value, int]] = {}
        #: Bytes of all entries.
        self.bytes = 0

    def __getitem__(self, minion_id: str) -> Value:
        entry = self._entries.pop(minion_id)
        # The entry moves to the end.
        self._entries[minion_id] = entry
        return entry[0]

    def __setitem__(self, minion_id: str, value: Value) -> None:
        self._forget(minion_id)
        size = self._size_of(value)
        self._entries[minion_id] = (value, size)
        self.bytes += size
        # The newest entry stays, however large it is: it is in use.
        while self.bytes > self._most and len(self._entries) > 1:
            self._forget(next(iter(self._entries)))

    def __delitem__(self, minion_id: str) -> None:
        if minion_id not in self._entries:
            raise KeyError(minion_id)
        self._forget(minion_id)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    def _forget(self, minion_id: str) -> None:
        _, size = self._entries.pop(minion_id, (None, 0))
        self.bytes -= size
