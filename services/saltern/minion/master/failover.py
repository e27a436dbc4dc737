"""Failover: decides when a minion that has one master at a time leaves this master for another.

It leaves a master whose connection is lost, a master that owes an answer for 20 seconds, and any master when the first master
of the list is back (``master_failback``). The master is asked because a stopped process keeps its connections open, and
heartbeats say nothing about workers that hang.
Salt: salt/minion.py, __master_disconnected and __master_failback; salt/modules/status.py, master and ping_master
Source: docs/execution.md#failover
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import zmq

from saltwire.envelope import clear_request
from saltwire.zmq import Connection, RequestSocket

#: Seconds that a master may owe an answer. A busy master has answered by then, and a worker that hangs was replaced.
ANSWER_WITHIN = 20.0

#: Seconds before a ping is repeated: a restarted master has forgotten it.
_RESEND_AFTER = 5.0

#: Seconds counted at most between two checks: time in which this process was stopped is not charged to the master.
_MOST_PER_LOOK = 1.0

_PING = {"cmd": "ping"}

#: Seconds that the first master must be kept after a failback to count as really back.
_TRIAL = 600.0

#: The interval of the probes is doubled at most this many times.
_MOST_DOUBLINGS = 5


class MasterLost(Exception):
    """Raised when the minion must change to another master. The message is the reason."""

    def __init__(self, why: str, *, back: bool = False) -> None:
        """Store the reason. ``back``: True if the reason is that the first master of the list is back."""
        super().__init__(why)
        self.back = back


class Failback:
    """The interval at which a minion probes the first master of its list, to go back to it.

    The interval doubles each time this master is lost soon after a failback. A master may answer requests and publish
    nothing; without the growing interval the minion would change masters all the time. Times are monotonic seconds.
    """

    def __init__(self, interval: float) -> None:
        """Create the interval. ``seconds``: configured time between two probes of the first master; 0: it is never
        probed.
        """
        self._configured = interval
        self._vain = 0
        self._went = -math.inf

    @property
    def interval(self) -> float:
        """Return the seconds between two probes of the first master."""
        return self._configured * 2.0 ** min(self._vain, _MOST_DOUBLINGS)

    def went(self, now: float) -> None:
        """Record that the minion went back to the first master."""
        self._went = now

    def lost(self, now: float) -> None:
        """Record that the first master was lost, or refused the sign-in. If this is soon after a failback, the
        interval between probes doubles; otherwise it is the configured one again.
        """
        self._vain = self._vain + 1 if now - self._went < _TRIAL else 0


class _Probe:
    """A ping to one master over a connection of its own. It measures for how many seconds the answer is overdue
    (``owed``).
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], endpoint: str, now: float) -> None:
        #: Seconds for which the answer is overdue.
        self.owed = 0.0
        self._looked = now
        self._socket = RequestSocket(context, endpoint)
        self._send()

    def answered(self, now: float) -> bool:
        """Return whether the master answered the ping; "busy" counts as an answer. The ping is repeated while no answer comes."""
        self.owed += min(now - self._looked, _MOST_PER_LOOK)
        self._looked = now
        if self._socket.receive(0) is not None:
            return True
        if self.owed >= self._resend:
            self._send()
        return False

    def close(self) -> None:
        self._socket.close()

    def _send(self) -> None:
        self._resend = self.owed + _RESEND_AFTER
        self._socket.send(clear_request(_PING))


@dataclass
class Failover:
    """Checks whether a minion must leave its current master for another one. Times are monotonic seconds."""

    master: str
    #: Endpoint for requests to this master.
    endpoint: str
    alive_interval: float
    #: Endpoint of the first master if ``master_failback`` applies, else empty.
    first: str = ""
    failback_interval: float = 0.0
    ping_timeout: float = 5.0
    _connection: Connection | None = None
    _context: zmq.Context[zmq.Socket[bytes]] | None = None
    _next_look: float = 0.0
    _next_ping: float = 0.0
    _own: _Probe | None = None
    _to_first: _Probe | None = None

    def begin(self, context: zmq.Context[zmq.Socket[bytes]], connection: Connection, now: float) -> None:
        """Start to check the master, after the sign-in. ``connection`` monitors the socket for publications (port
        4505), which connects after this call.
        """
        self._context = context
        self._connection = connection
        self._next_look = now + self.alive_interval
        self._next_ping = now + self.failback_interval

    def check(self, now: float) -> None:
        """Check the current master and the first master of the list. Raise MasterLost if the minion must leave the current one.

        ``now``: monotonic seconds.
        """
        if self._connection is None or self._context is None:
            return
        if self.alive_interval:
            self._look_for_own(now, self._connection, self._context)
        if self.first and self.failback_interval:
            self._look_for_first(now, self._context)

    def _look_for_own(self, now: float, connection: Connection, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        if self._own is not None:
            if self._own.answered(now):
                self._own.close()
                self._own = None
            elif self._own.owed >= ANSWER_WITHIN:
                raise MasterLost(f"the master {self.master} has not answered for {self._own.owed:.0f} s")
        if now < self._next_look:
            return
        self._next_look = now + self.alive_interval
        if not connection.up():
            raise MasterLost(f"the connection to the master {self.master} is lost")
        if self._own is None:
            self._own = _Probe(context, self.endpoint, now)

    def _look_for_first(self, now: float, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        if self._to_first is not None:
            if self._to_first.answered(now):
                raise MasterLost(f"the first master is back, at {self.first}", back=True)
            if self._to_first.owed >= self.ping_timeout:
                self._to_first.close()
                self._to_first = None
        elif now >= self._next_ping:
            self._next_ping = now + self.failback_interval
            self._to_first = _Probe(context, self.first, now)

    def close(self) -> None:
        """Close the connections over which masters are pinged."""
        for question in (self._own, self._to_first):
            if question is not None:
                question.close()
