"""What the main process sends to the master by itself: spooled returns and start events, one at a time, until acknowledged.

A pure machine: ``next_request`` gives what to send now, ``answered``, ``failed`` and ``tick`` tell it what happened. Nothing
waits here; the loop in ``main`` owns the socket and the clock.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services.minion.spool import Spool

#: Every failed try in a row doubles the pause, up to this many times.
_MAX_DOUBLINGS = 4


@dataclass
class Outbox:
    """The queue of the main process. Times are seconds of one monotonic clock."""

    spool: Spool
    shortest: float
    longest: float
    #: Events that are sent once and not kept over a restart.
    events: deque[dict[str, Any]] = field(default_factory=deque)
    in_flight: Path | Mapping[str, Any] | None = None
    _due: float = 0.0
    _deadline: float = 0.0
    _failures: int = 0
    _waiting: bool = True

    def spooled(self) -> None:
        """Something may have come into the spool."""
        self._waiting = True

    def next_request(self, now: float) -> dict[str, Any] | None:
        """The load to send now, None when there is nothing, or not yet, or another one is on its way."""
        if self.in_flight is not None or now < self._due:
            return None
        if self.events:
            self.in_flight = self.events[0]
            return self._sent(self.events[0], now)
        if not self._waiting:
            return None
        for path in self.spool.waiting():
            load = self.spool.read(path)
            if load is not None:
                self.in_flight = path
                return self._sent(load, now)
        self._waiting = False
        return None

    def answered(self) -> None:
        """The master has it."""
        if isinstance(self.in_flight, Path):
            self.spool.acknowledged(self.in_flight)
        elif self.in_flight is not None:
            self.events.popleft()
        self.in_flight = None
        self._failures = 0
        self._due = 0.0

    def failed(self, now: float) -> None:
        """It was refused, or no answer came: again after a pause that grows."""
        self.in_flight = None
        pause = random.uniform(self.shortest, self.longest) * 2 ** min(self._failures, _MAX_DOUBLINGS) / 4
        self._failures += 1
        self._due = now + pause

    def overdue(self, now: float) -> bool:
        """Whether the answer to what is in flight is no longer waited for."""
        return self.in_flight is not None and now > self._deadline

    def _sent(self, load: dict[str, Any], now: float) -> dict[str, Any]:
        self._deadline = now + random.uniform(self.shortest, self.longest)
        return load
