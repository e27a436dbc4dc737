"""Requests that wait for a worker: a line for each pool and side, in which senders take turns.

A sender with many requests gets one worked on, then it is the next one's turn: who sends a thousand at once waits for them, and
nobody else does. Where each sender has one request, turns are the order of arrival.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from enum import Enum

#: Seconds between two looks for what is overdue, which are looks at everything that waits.
_LOOK = 0.2


class Side(Enum):
    """Which port a request came in on."""

    MINION = b"minion"
    CONTROL = b"control"


@dataclass(slots=True, eq=False)
class Request:
    """One request and the way back to its sender."""

    ticket: int
    side: Side
    #: Frames that go before the answer: the sender's ZeroMQ routing id, the delimiter, on 4507 the request's id.
    route: tuple[bytes, ...]
    #: Name of the client's key on 4507; empty on 4506.
    client: str
    payload: bytes
    arrived: float
    #: Who takes turns with others.
    sender: Hashable
    #: Empty where it is sealed.
    cmd: str
    #: Whether the sender understands that it is to ask again later.
    patient: bool
    #: The pool that works on it, None until a worker has looked into it.
    pool: str | None
    #: Until when it may wait.
    overdue: float
    attempts: int = 0
    #: The line it waits in.
    line: FairQueue | None = field(default=None, repr=False)


class FairQueue:
    """Waiting requests of one pool and one side."""

    def __init__(self) -> None:
        self._turns: OrderedDict[Hashable, deque[Request]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._turns)

    def __iter__(self) -> Iterator[Request]:
        return (request for requests in self._turns.values() for request in requests)

    def of(self, sender: Hashable) -> deque[Request] | tuple[()]:
        """What waits of one sender."""
        return self._turns.get(sender, ())

    def add(self, request: Request) -> None:
        """Behind the sender's others; a sender who had none waits for all other senders once."""
        requests = self._turns.get(request.sender)
        if requests is None:
            self._turns[request.sender] = deque((request,))
        else:
            requests.append(request)

    def add_first(self, request: Request) -> None:
        """It has had its turn: the next one that is taken."""
        self._turns.setdefault(request.sender, deque()).appendleft(request)
        self._turns.move_to_end(request.sender, last=False)

    def take(self, may: Callable[[Hashable], bool]) -> Request | None:
        """The next request of the first sender that may have one worked on."""
        for sender, requests in self._turns.items():
            if may(sender):
                request = requests.popleft()
                if requests:
                    self._turns.move_to_end(sender)
                else:
                    del self._turns[sender]
                return request
        return None

    def remove(self, request: Request) -> None:
        """It is not waited for any more."""
        requests = self._turns[request.sender]
        requests.remove(request)
        if not requests:
            del self._turns[request.sender]

    def replace(self, old: Request, new: Request) -> None:
        """The new one in the old one's place; both are of one sender."""
        requests = self._turns[old.sender]
        requests[requests.index(old)] = new


class WaitingRequests:
    """All lines. A pool of None holds what no worker has looked into."""

    def __init__(self) -> None:
        self._of_minions: dict[str | None, FairQueue] = {}
        self._of_operators: dict[str | None, FairQueue] = {}
        #: Nothing is overdue before.
        self._earliest = math.inf
        self._looked = -math.inf
        self._counts: dict[str | None, int] = {}
        self.count = 0
        self.bytes = 0

    def __iter__(self) -> Iterator[Request]:
        return (
            request for lines in (self._of_minions, self._of_operators) for line in lines.values() for request in line
        )

    def depth(self, pool: str | None) -> int:
        """How many wait for this pool."""
        return self._counts.get(pool, 0)

    def line(self, pool: str | None, side: Side) -> FairQueue:
        """Where requests of this kind wait."""
        lines = self._of_operators if side is Side.CONTROL else self._of_minions
        found = lines.get(pool)
        if found is None:
            found = lines[pool] = FairQueue()
        return found

    def add(self, request: Request, *, first: bool = False) -> None:
        """Begins to wait; ``first``: it did before, and is the next that is taken."""
        line = self.line(request.pool, request.side)
        (line.add_first if first else line.add)(request)
        self._enter(request, line)

    def replace(self, old: Request, new: Request) -> None:
        """The new one waits in the old one's place."""
        line = old.line
        assert line is not None, "it does not wait"
        line.replace(old, new)
        self._leave(old)
        self._enter(new, line)

    def take(self, line: FairQueue, may: Callable[[Hashable], bool]) -> Request | None:
        """The next of a line, for a worker."""
        request = line.take(may)
        if request is not None:
            self._leave(request)
        return request

    def drop(self, request: Request) -> None:
        """It waits no more."""
        assert request.line is not None, "it does not wait"
        request.line.remove(request)
        self._leave(request)

    def overdue(self, now: float) -> list[Request]:
        """Those that have waited too long, dropped."""
        if now <= self._earliest or now - self._looked < _LOOK:
            return []
        self._looked = now
        gone = [request for request in self if request.overdue < now]
        for request in gone:
            self.drop(request)
        self._earliest = min((request.overdue for request in self), default=math.inf)
        return gone

    def _enter(self, request: Request, line: FairQueue) -> None:
        request.line = line
        self.count += 1
        self.bytes += len(request.payload)
        self._counts[request.pool] = self._counts.get(request.pool, 0) + 1
        self._earliest = min(self._earliest, request.overdue)

    def _leave(self, request: Request) -> None:
        request.line = None
        self.count -= 1
        self.bytes -= len(request.payload)
        self._counts[request.pool] -= 1
