"""When a minion that has one master at a time leaves it: it is gone, or the first of all is back.

Source: salt/minion.py (__master_disconnected, __master_failback) and salt/modules/status.py (master, ping_master).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import zmq

from saltwire.envelope import clear_request
from saltwire.zmq.connection import Connection
from saltwire.zmq.req import RequestSocket


class MasterLost(Exception):
    """The minion is to go on at another master. str() says why."""

    def __init__(self, why: str, *, back: bool = False) -> None:
        """``back``: the first of the list has come back."""
        super().__init__(why)
        self.back = back


@dataclass
class Lookout:
    """Belongs to one master; looks whenever ``look`` is called. Times are seconds."""

    master: str
    alive_interval: float
    #: Endpoint of the first master where the minion is to go back to it, else empty.
    first: str = ""
    failback_interval: float = 0.0
    ping_timeout: float = 5.0
    _connection: Connection | None = None
    _context: zmq.Context[zmq.Socket[bytes]] | None = None
    _next_look: float = 0.0
    _next_ping: float = 0.0
    _ping: RequestSocket | None = None
    _ping_ends: float = field(default=0.0)

    def begin(self, context: zmq.Context[zmq.Socket[bytes]], connection: Connection) -> None:
        """The minion is signed in; the subscription, which ``connection`` looks after, is about to connect."""
        self._context = context
        self._connection = connection
        self._next_look = time.monotonic() + self.alive_interval
        self._next_ping = time.monotonic() + self.failback_interval

    def look(self) -> None:
        """Raises MasterLost."""
        now = time.monotonic()
        if self._connection is not None and self.alive_interval and now >= self._next_look:
            self._next_look = now + self.alive_interval
            if not self._connection.up():
                raise MasterLost(f"the connection to the master {self.master} is lost")
        if self.first and self.failback_interval:
            self._look_for_first(now)

    def _look_for_first(self, now: float) -> None:
        if self._ping is not None:
            if self._ping.receive(0) is not None:
                raise MasterLost(f"the first master is back, at {self.first}", back=True)
            if now >= self._ping_ends:
                self._ping.close()
                self._ping = None
        elif now >= self._next_ping and self._context is not None:
            self._next_ping = now + self.failback_interval
            self._ping_ends = now + self.ping_timeout
            self._ping = RequestSocket(self._context, self.first)
            self._ping.send(clear_request({"cmd": "ping"}))

    def close(self) -> None:
        """Ends what it opened."""
        if self._ping is not None:
            self._ping.close()
