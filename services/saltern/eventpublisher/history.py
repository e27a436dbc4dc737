"""The last events that an event publisher received, for listeners that lost another one. No sockets, no clock.

Source: docs/decisions/0025-several-event-publishers.md
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from saltern.kit.links.event_order import LastNumbers, Question, origin, read_origin

#: Bounds of the history. A listener notices within seconds that its event publisher is gone.
SECONDS = 30.0
EVENTS = 40_000
BYTES = 16 * 1024 * 1024


class _Entry(NamedTuple):
    at: float
    frame: bytes
    sender: bytes
    number: int


class History:
    """The events of the last SECONDS, within the bounds. Only events that have an origin are in it."""

    def __init__(self, seconds: float = SECONDS, events: int = EVENTS, size: int = BYTES) -> None:
        self._seconds, self._events, self._size = seconds, events, size
        self._entries: deque[_Entry] = deque()
        self._bytes = 0
        self._last = LastNumbers()

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, frame: bytes, origin_frame: bytes, now: float) -> bool:
        """Add an event that arrived. Return False if it came before: its sender sent it again over a new connection."""
        known = read_origin(origin_frame)
        if known is None:
            return True
        if not self._last.is_new(*known):
            return False
        self._entries.append(_Entry(now, frame, *known))
        self._bytes += len(frame)
        entries = self._entries
        while len(entries) > self._events or self._bytes > self._size or entries[0].at < now - self._seconds:
            self._bytes -= len(entries.popleft().frame)
            if not entries:
                break
        return True

    def replay(self, question: Question, now: float) -> Iterator[list[bytes]]:
        """Yield the messages that answer a listener: the events that it lacks, oldest first, then the end."""
        for entry in self._entries:
            if question.wants(entry.frame, entry.sender, entry.number, now - entry.at):
                yield [question.replies, entry.frame, origin(entry.sender, entry.number)]
        yield [question.replies]
