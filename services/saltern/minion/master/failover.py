"""When a minion that has one master at a time leaves it: it is gone, does not answer, or the first of all is back.

A master whose processes stand still (stopped, without memory, on a machine that was paused) keeps its connections: so it is asked,
too, and left when it owes an answer for long. Its heartbeats alone would not tell of workers that stand still.
Source: salt/minion.py (__master_disconnected, __master_failback) and salt/modules/status.py (master, ping_master).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import zmq

from saltwire.envelope import clear_request
from saltwire.zmq.connection import Connection
from saltwire.zmq.req import RequestSocket

#: Seconds that a master may owe the answer to a question: one that is merely busy has answered by then, and a worker that hangs
#: in it was given up.
ANSWER_WITHIN = 20.0

#: Seconds after which a question is sent again: a master that was restarted meanwhile has forgotten it.
_RESEND_AFTER = 5.0

#: Seconds that count at most between two looks: while this process stands still itself, no master owes it anything.
_MOST_PER_LOOK = 1.0

_PING = {"cmd": "ping"}

#: Seconds that the first master must be kept for, once the minion went back to it, to count as one that is back.
_TRIAL = 600.0

#: How often the pause before the next question is doubled at most.
_MOST_DOUBLINGS = 5


class MasterLost(Exception):
    """The minion is to go on at another master. str() says why."""

    def __init__(self, why: str, *, back: bool = False) -> None:
        """``back``: the first of the list has come back."""
        super().__init__(why)
        self.back = back


class Failback:
    """How soon the first master is asked whether it is back: each time that it is lost right after that, twice as late.

    It may answer questions, and publish nothing: the minion would go to and fro. Times are monotonic seconds.
    """

    def __init__(self, interval: float) -> None:
        """``interval``: seconds; 0: it is never asked."""
        self._configured = interval
        self._vain = 0
        self._went = -math.inf

    @property
    def interval(self) -> float:
        """Seconds from when the minion has come to another master."""
        return self._configured * 2.0 ** min(self._vain, _MOST_DOUBLINGS)

    def went(self, now: float) -> None:
        """The minion goes back to the first."""
        self._went = now

    def lost(self, now: float) -> None:
        """The first is lost, or does not let the minion in."""
        self._vain = self._vain + 1 if now - self._went < _TRIAL else 0


class _Probe:
    """Whether a master answers, by a connection of its own that ends with it."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], endpoint: str, now: float) -> None:
        #: Seconds for which the answer is owed.
        self.owed = 0.0
        self._looked = now
        self._socket = RequestSocket(context, endpoint)
        self._send()

    def answered(self, now: float) -> bool:
        """Any answer is one: a master that is too busy says so."""
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
    """Belongs to one master; looks whenever ``look`` is called. Times are seconds."""

    master: str
    #: Where it takes requests.
    endpoint: str
    alive_interval: float
    #: Endpoint of the first master where the minion is to go back to it, else empty.
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
        """The minion is signed in; the subscription, which ``connection`` looks after, is about to connect."""
        self._context = context
        self._connection = connection
        self._next_look = now + self.alive_interval
        self._next_ping = now + self.failback_interval

    def check(self, now: float) -> None:
        """``now``: monotonic seconds. Raises MasterLost."""
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
        """Ends what it opened."""
        for question in (self._own, self._to_first):
            if question is not None:
                question.close()
