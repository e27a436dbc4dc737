"""The queue of requests from the minion's main process to the master: spooled returns and events, one at a time.

Each request is repeated until the master acknowledges it. This class does no I/O on sockets: ``next_request`` returns the
load to send now, and ``answered``, ``failed``, ``refused`` or ``unanswered`` record the result. The main loop owns socket and
clock.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from saltern.minion.jobs.spool import Spool

#: Each failure in a row doubles the pause, at most this many times.
_MAX_DOUBLINGS = 4

#: From the second failure on, each one also doubles the time to wait for an answer, at most this many times. Otherwise
#: the
#: answers of a slow master would never be received, and its work would be in vain.
_MAX_PATIENCE_DOUBLINGS = 2

#: Bytes above which a return may exceed the master's limit. The master then closes the connection without an answer.
_LARGE = 64 * 1024

#: Slowest assumed connection in bytes per second: a large return has more time for its answer.
_SLOWEST = 1024 * 1024

#: A large return is given up after it stayed unanswered this many times while the master answered small requests.
_SILENCES = 3

#: A request that any master answers and that has no effect.
_PROBE: Mapping[str, object] = {"cmd": "_file_envs"}


@dataclass
class Outbox:
    """The queue of spooled returns and events for the master, of which one request at a time is in flight.

    ``shortest`` and ``longest``: seconds between which the time to wait for an answer is drawn. Times ``now``
    are monotonic seconds.
    """

    spool: Spool
    shortest: float
    longest: float
    #: Requests with events. They are sent once and are lost at a restart.
    events: deque[dict[str, object]] = field(default_factory=deque)
    in_flight: Path | Mapping[str, object] | None = None
    _due: float = 0.0
    _deadline: float = 0.0
    _failures: int = 0
    _waiting: bool = True
    #: Returns that failed when they were sent last. Other returns are sent first.
    _refused: set[Path] = field(default_factory=set)
    _returns_first: bool = False
    #: Large return without an answer. The next request checks whether the master answers at all.
    _doubted: Path | None = None
    _silences: dict[Path, int] = field(default_factory=dict)

    def spooled(self) -> None:
        """Record that the spool may hold new returns, so that ``next_request`` looks there again."""
        self._waiting = True

    def next_request(self, now: float) -> dict[str, object] | None:
        """Return the load to send to the master now.

        Return None if nothing waits, if a pause is not over, or if another request is in flight.
        """
        if self.in_flight is not None or now < self._due:
            return None
        if self._doubted is not None:
            self.in_flight = _PROBE
            self._deadline = now + self._patience()
            return dict(_PROBE)
        sources = (
            (self._next_return, self._next_event) if self._returns_first else (self._next_event, self._next_return)
        )
        for source in sources:
            load = source()
            if load is not None:
                self._deadline = now + self._patience() + self._size() / _SLOWEST
                return load
        return None

    def _patience(self) -> float:
        doublings: int = min(max(self._failures - 1, 0), _MAX_PATIENCE_DOUBLINGS)
        return random.uniform(self.shortest, self.longest) * float(2**doublings)

    def _size(self) -> int:
        try:
            return self.in_flight.stat().st_size if isinstance(self.in_flight, Path) else 0
        except FileNotFoundError:
            return 0

    def _next_event(self) -> dict[str, object] | None:
        if not self.events:
            return None
        self.in_flight = self.events[0]
        return self.events[0]

    def _next_return(self) -> dict[str, object] | None:
        if not self._waiting:
            return None
        for path in sorted(self.spool.waiting(), key=self._refused.__contains__):
            load = self.spool.read(path)
            if load is not None:
                self.in_flight = path
                return load
        self._waiting = False
        return None

    def answered(self) -> None:
        """Record that the master acknowledged the request in flight: its file in the spool or its queued event is removed."""
        if isinstance(self.in_flight, Path):
            self.spool.acknowledged(self.in_flight)
            self._refused.discard(self.in_flight)
            self._silences.pop(self.in_flight, None)
        elif self.in_flight is _PROBE:
            self._count_silence()
        elif self.in_flight is not None:
            self.events.popleft()
        self.in_flight = None
        self._failures = 0
        self._due = 0.0

    def _count_silence(self) -> None:
        """Count one more unanswered sending of a large return, after the master answered a small request.

        After three, the return is too large for the master: a failed return replaces it.
        """
        path, self._doubted = self._doubted, None
        if path is None:
            return
        self._silences[path] = self._silences.get(path, 0) + 1
        if self._silences[path] >= _SILENCES:
            del self._silences[path]
            self.spool.give_up(path, "more than the master reads at once")
            self._waiting = True

    def unanswered(self, now: float) -> None:
        """Record that the master did not answer the request in flight in time. The request is sent again after a pause
        that grows with each failure.

        If it was a large return, ``next_request`` first returns a small request, to check whether the master answers
        at all.
        """
        was_probe = self.in_flight is _PROBE
        large = isinstance(self.in_flight, Path) and self._size() > _LARGE
        self._doubted = self.in_flight if large and isinstance(self.in_flight, Path) else None
        if was_probe:
            # The master does not answer small requests either: it is away, and the returns are not too large.
            self._silences.clear()
        self.failed(now)

    def failed(self, now: float) -> None:
        """Record that the request in flight failed. It is sent again after a pause, which grows with each failure,
        and after other waiting requests.
        """
        self._returns_first = self.in_flight is not _PROBE and not isinstance(self.in_flight, Path)
        if isinstance(self.in_flight, Path):
            # When every waiting return has failed, a new round begins.
            everything = self._refused >= set(self.spool.waiting())
            self._refused = {self.in_flight} if everything else {*self._refused, self.in_flight}
        self.in_flight = None
        pause = random.uniform(self.shortest, self.longest) * 2 ** min(self._failures, _MAX_DOUBLINGS) / 4
        self._failures += 1
        self._due = now + pause

    def refused(self, now: float, retry_after: float) -> None:
        """Record that the master is busy: send nothing for ``retry_after`` seconds or more."""
        self.in_flight = None
        self._due = now + retry_after * random.uniform(1.0, 2.0)

    def overdue(self, now: float) -> bool:
        """Return whether a request is in flight and the time to wait for its answer is over; the caller then calls
        ``unanswered``.
        """
        return self.in_flight is not None and now > self._deadline
