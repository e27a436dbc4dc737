"""Queues of waiting requests: one for each worker pool and each TCP port (4506 for minions, 4507 for operators).
Within a queue senders alternate.

After one request of a sender, the next sender is served. A sender with a thousand requests therefore delays only
itself. If each sender has one request, the order is that of arrival.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from saltern.kit.links.worker_link import AGAIN

#: Seconds between two searches for overdue requests; each search visits all waiting requests.
_CHECK_SECONDS = 0.2


class Side(Enum):
    """The TCP port that a request came in on: 4506 (MINION) or 4507 (CONTROL)."""

    MINION = b"minion"
    CONTROL = b"control"


@dataclass(slots=True, eq=False)
class Request:
    """One request in the reqserver: its bytes, sender, command, pool and times, and the frames that lead back to its sender."""

    ticket: int
    side: Side
    #: Frames that go before the answer: the sender's ZeroMQ routing id, the delimiter, on 4507 the request's id.
    route: tuple[bytes, ...]
    #: Name of the client's key on 4507; empty on 4506.
    client: str
    payload: bytes
    arrived: float
    #: Senders alternate by this value.
    sender: Hashable
    #: Command; empty if the request is encrypted.
    cmd: str
    #: Whether the sender understands the busy reply.
    patient: bool
    #: Pool that handles the request; None while the command is not known.
    pool: str | None
    #: Time after which the request is given up, seconds of the monotonic clock.
    overdue: float
    #: Time before which no worker gets the request, because its sender is over its rate; same clock.
    not_before: float = 0.0
    attempts: int = 0
    #: The queue that contains the request; None if it does not wait.
    queue: FairQueue | None = field(default=None, repr=False)

    @property
    def side_for_worker(self) -> bytes:
        """Bytes that tell the worker through which TCP port the request came: MINION, CONTROL, or AGAIN for a minion's
        request that another worker got before and did not finish.
        """
        # ``attempts`` counts the worker that gets the request now, too.
        return AGAIN if self.side is Side.MINION and self.attempts > 1 else self.side.value


class FairQueue:
    """The requests that wait for one worker pool and came through one TCP port (4506 of minions, or 4507 of
    operators). Their senders alternate, so that none delays the others.
    """

    def __init__(self) -> None:
        self._by_sender: OrderedDict[Hashable, deque[Request]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._by_sender)

    def __iter__(self) -> Iterator[Request]:
        return (request for requests in self._by_sender.values() for request in requests)

    def firsts(self) -> Iterator[Request]:
        """Yield the oldest waiting request of each sender, in the order in which the senders are served."""
        return (requests[0] for requests in self._by_sender.values())

    def of(self, sender: Hashable) -> deque[Request] | tuple[()]:
        """Return the waiting requests of one sender, oldest first."""
        return self._by_sender.get(sender, ())

    def add(self, request: Request) -> None:
        """Append a request to the queue. A sender without waiting requests is placed behind all other senders."""
        requests = self._by_sender.get(request.sender)
        if requests is None:
            self._by_sender[request.sender] = deque((request,))
        else:
            requests.append(request)

    def add_first(self, request: Request) -> None:
        """Insert a request that was assigned to a worker before, so that it is taken next."""
        self._by_sender.setdefault(request.sender, deque()).appendleft(request)
        self._by_sender.move_to_end(request.sender, last=False)

    def take(self, may_start: Callable[[Request], bool]) -> Request | None:
        """Remove and return the first request of the first sender for which ``may_start`` is true; None if there is none."""
        for sender, requests in self._by_sender.items():
            if may_start(requests[0]):
                request = requests.popleft()
                if requests:
                    self._by_sender.move_to_end(sender)
                else:
                    del self._by_sender[sender]
                return request
        return None

    def remove(self, request: Request) -> None:
        """Remove this waiting request from the queue; its sender keeps its other requests."""
        requests = self._by_sender[request.sender]
        requests.remove(request)
        if not requests:
            del self._by_sender[request.sender]

    def replace(self, old: Request, new: Request) -> None:
        """Put the request ``new`` in the queue at the position of ``old``; both have the same sender."""
        requests = self._by_sender[old.sender]
        requests[requests.index(old)] = new


class WaitingRequests:
    """All queues of waiting requests. The pool None is for requests whose command is not known yet."""

    def __init__(self) -> None:
        self._of_minions: dict[str | None, FairQueue] = {}
        self._of_operators: dict[str | None, FairQueue] = {}
        #: No request is overdue before this time.
        self._earliest = math.inf
        self._checked_at = -math.inf
        self._counts: dict[str | None, int] = {}
        self.count = 0
        self.bytes = 0

    def __iter__(self) -> Iterator[Request]:
        return (
            request
            for queues in (self._of_minions, self._of_operators)
            for queue in queues.values()
            for request in queue
        )

    def depth(self, pool: str | None) -> int:
        """Return the number of requests that wait for this pool."""
        return self._counts.get(pool, 0)

    def queue(self, pool: str | None, side: Side) -> FairQueue:
        """Return the FairQueue of the requests for this worker pool that came through this TCP port; it is created at
        the first call.
        """
        queues = self._of_operators if side is Side.CONTROL else self._of_minions
        found = queues.get(pool)
        if found is None:
            found = queues[pool] = FairQueue()
        return found

    def add(self, request: Request, *, first: bool = False) -> None:
        """Add a request to its queue. ``first``: it was assigned to a worker before, and is taken next."""
        queue = self.queue(request.pool, request.side)
        (queue.add_first if first else queue.add)(request)
        self._count_in(request, queue)

    def replace(self, old: Request, new: Request) -> None:
        """Put the request ``new`` in its queue at the position of ``old``."""
        queue = old.queue
        assert queue is not None, "the request does not wait"
        queue.replace(old, new)
        self._count_out(old)
        self._count_in(new, queue)

    def take(self, queue: FairQueue, may_start: Callable[[Request], bool]) -> Request | None:
        """Remove and return the first request of the first sender in ``queue`` for which ``may_start`` is true; None
        if there is none.
        """
        request = queue.take(may_start)
        if request is not None:
            self._count_out(request)
        return request

    def drop(self, request: Request) -> None:
        """Remove this waiting request from its queue, and count it as no longer waiting."""
        assert request.queue is not None, "the request does not wait"
        request.queue.remove(request)
        self._count_out(request)

    def overdue(self, now: float) -> list[Request]:
        """Remove and return the requests that have waited too long. ``now``: seconds of the monotonic clock."""
        if now <= self._earliest or now - self._checked_at < _CHECK_SECONDS:
            return []
        self._checked_at = now
        gone = [request for request in self if request.overdue < now]
        for request in gone:
            self.drop(request)
        self._earliest = min((request.overdue for request in self), default=math.inf)
        return gone

    def _count_in(self, request: Request, queue: FairQueue) -> None:
        request.queue = queue
        self.count += 1
        self.bytes += len(request.payload)
        self._counts[request.pool] = self._counts.get(request.pool, 0) + 1
        self._earliest = min(self._earliest, request.overdue)

    def _count_out(self, request: Request) -> None:
        request.queue = None
        self.count -= 1
        self.bytes -= len(request.payload)
        self._counts[request.pool] -= 1
