"""Decides for which of several reqservers a worker is idle: its home. No sockets, no clock.

A worker stays at its home until that is lost, or until another reqserver calls it because requests wait there. A call is followed
when the worker has nothing to do, or has done STAY_REQUESTS at its home, or has been there for STAY seconds: where requests wait
everywhere, workers take turns.
Source: docs/decisions/0024-several-reqservers.md
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

#: Requests after which, and seconds after which, a worker leaves a home where requests wait if they wait elsewhere, too. A move
#: costs the time of a message there and back, which is long on a busy machine.
STAY_REQUESTS = 50
STAY = 0.25

#: Seconds without work after which a worker counts as idle: the next request of its home is usually there sooner.
IDLE = 0.01

#: Seconds that a home which was never connected may take to connect, if another reqserver is connected.
PATIENCE = 0.5


@dataclass
class Home:
    """The home of a worker. Times are seconds of one monotonic clock."""

    choose: Callable[[Sequence[str]], str] = random.choice
    #: Host of the home; empty before the first.
    current: str = ""
    #: Hosts of all reqservers that are connected.
    up: set[str] = field(default_factory=set)
    #: Hosts that call, in the order of their calls.
    _calls: dict[str, None] = field(default_factory=dict)
    _arrived: float = 0.0
    #: Requests done since then.
    _done: int = 0
    #: When the last request was done; None while there is one.
    _idle_since: float | None = 0.0
    #: Whether the home has been connected since the worker came there.
    _was_up: bool = False

    def arrive(self, host: str, now: float) -> None:
        """Record that ``host`` is the home from now on."""
        self.current, self._arrived, self._idle_since, self._done = host, now, now, 0
        self._was_up = host in self.up
        self._calls.pop(host, None)

    def connected(self, host: str, *, up: bool) -> None:
        """Record whether a reqserver is connected. The calls of one that is not are forgotten."""
        if up:
            self.up.add(host)
            self._was_up = self._was_up or host == self.current
        else:
            self.up.discard(host)
            self._calls.pop(host, None)

    def called(self, host: str, *, wanted: bool) -> None:
        """Record that a reqserver calls, or does not call any more."""
        if wanted and host != self.current:
            self._calls[host] = None
        else:
            self._calls.pop(host, None)

    def begin(self) -> None:
        """Record that the worker has a request."""
        self._idle_since = None

    def done(self, now: float) -> str:
        """Record that the worker's request is done. Return the host to go to now, or an empty text: stay."""
        self._idle_since = now
        self._done += 1
        return self._caller() if self._done >= STAY_REQUESTS or now - self._arrived >= STAY else ""

    def next(self, now: float) -> str:
        """Return the host to go to, or an empty text: stay. For a worker that has no request."""
        if not self._calls and self.current in self.up:
            return ""
        if self.current not in self.up and self.up and (self._was_up or now - self._arrived > PATIENCE):
            return self._caller() or self.choose(sorted(self.up))
        return self._caller() if now >= self._ready_at() else ""

    def look_at(self, now: float) -> float:
        """Return the time at which ``next`` may say something else without news; infinity: never."""
        if not self._calls and self.current in self.up:
            return math.inf
        if self._caller():
            return self._ready_at()
        if self.current not in self.up and self.up:
            return now if self._was_up else self._arrived + PATIENCE
        return math.inf

    def _ready_at(self) -> float:
        """Return the time from which on a call is followed."""
        idle = math.inf if self._idle_since is None else self._idle_since + IDLE
        return min(idle, self._arrived + STAY)

    def _caller(self) -> str:
        return next((host for host in self._calls if host in self.up), "")
