"""Who works on what: the reqserver's decisions, without a socket.

Requests of minions (4506) and of operators (4507) wait in one queue, first in first out, and are handed to idle workers only.
A worker that falls silent, says goodbye or disconnects loses its request to the next idle worker; commands are idempotent
(a return is stored once, a publish carries a request id), so handing one out twice is safe.

    worker      unknown --ready--> idle --hand--> busy --reply--> idle
                                                   busy --silence, bye, ready again--> the request goes back to the queue's head
                                                   busy --later--> idle; the request waits for an answer from whomever it comes

``Dispatcher`` is fed events with the time and returns instructions; ``main`` moves the bytes.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

#: A request that ended so many workers is not handed to another one.
MAX_ATTEMPTS = 3

#: More waiting requests than this mean that no worker keeps up; clients time out and ask again with less pressure.
MAX_QUEUED = 20_000

#: An operator is told after so many seconds that there is no worker at all; a restarting one is back sooner.
WORKERLESS = 5.0

#: A busy worker that says "ready" this long after it was handed a request never got it (seconds).
HANDOVER_GRACE = 1.0


#: Requests that are answered later; with more the oldest is given up.
MAX_LATER = 1000

#: Seconds for a late answer. Whoever asked has given up long before; this bounds what is remembered.
LATER_SECONDS = 3600.0


class Side(Enum):
    """Which port a request came in on."""

    MINION = b"minion"
    CONTROL = b"control"


@dataclass(slots=True)
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
    attempts: int = 0


@dataclass(slots=True)
class Worker:
    """A worker as the dispatcher sees it. ``request`` is set while it is busy."""

    heard: float
    request: Request | None = None
    handed: float = 0.0


@dataclass(frozen=True, slots=True)
class Hand:
    """Send the request to this worker."""

    worker: bytes
    request: Request


@dataclass(frozen=True, slots=True)
class Answer:
    """Send these bytes back to the sender of the request."""

    request: Request
    payload: bytes


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Tell the sender (or, for a minion, let it ask again) that nobody worked on its request."""

    request: Request
    why: str


Instruction: TypeAlias = Hand | Answer | GiveUp


@dataclass
class Dispatcher:
    """The queue, the workers, and what to do next. All times are seconds of one monotonic clock."""

    #: Seconds without a sign of life after which a worker is given up.
    silence: float = 4.0
    #: Seconds after which a waiting request is answered with an error.
    deadline: float = 60.0
    queue: deque[Request] = field(default_factory=deque)
    workers: dict[bytes, Worker] = field(default_factory=dict)
    #: Idle workers in the order they became idle; the last, whose caches are warm, works first.
    idle: dict[bytes, None] = field(default_factory=dict)
    #: Requests that a process of some worker's answers when it is done: ticket -> when the worker said so, oldest first.
    parked: dict[int, tuple[float, Request]] = field(default_factory=dict)
    requeued: int = 0
    _tickets: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def busy(self) -> int:
        """How many workers hold a request."""
        return len(self.workers) - len(self.idle)

    def request(
        self, side: Side, route: tuple[bytes, ...], client: str, payload: bytes, now: float
    ) -> list[Instruction]:
        """A request came in."""
        request = Request(next(self._tickets), side, route, client, payload, now)
        if len(self.queue) >= MAX_QUEUED:
            return [GiveUp(request, f"{len(self.queue)} requests wait already")]
        self.queue.append(request)
        return self._assign(now)

    def ready(self, name: bytes, now: float) -> list[Instruction]:
        """A worker has nothing to do."""
        worker = self.workers.setdefault(name, Worker(now))
        worker.heard = now
        gone: list[Instruction] = []
        if worker.request is not None:
            if now - worker.handed < HANDOVER_GRACE:
                # Its "ready" and our request crossed on the wire.
                return []
            gone = self._take_back(worker)
        self.idle[name] = None
        return gone + self._assign(now)

    def reply(self, name: bytes, ticket: int, payload: bytes, now: float) -> list[Instruction]:
        """A worker finished a request. A late answer to a request given to another worker is dropped."""
        if ticket in self.parked:
            return [Answer(self.parked.pop(ticket)[1], payload)]
        worker = self.workers.get(name)
        if worker is None:
            # Given up in the meantime; it counts again when it says that it is ready.
            return []
        worker.heard = now
        request = worker.request
        if request is None or request.ticket != ticket:
            return []
        worker.request = None
        self.idle[name] = None
        return [Answer(request, payload), *self._assign(now)]

    def later(self, name: bytes, ticket: int, now: float) -> list[Instruction]:
        """A worker left a request to a process of its own, which answers when it is done."""
        worker = self.workers.get(name)
        if worker is None or worker.request is None or worker.request.ticket != ticket:
            return []
        worker.heard = now
        request, worker.request = worker.request, None
        self.idle[name] = None
        self.parked[ticket] = (now, request)
        return [*self._overdue_later(now), *self._assign(now)]

    def pulse(self, name: bytes, now: float) -> list[Instruction]:
        """A busy worker lives."""
        worker = self.workers.get(name)
        if worker is not None:
            worker.heard = now
        return []

    def bye(self, name: bytes, now: float) -> list[Instruction]:
        """A worker ends; it holds nothing any more or never will answer."""
        return self._lose([name], now)

    def tick(self, now: float) -> list[Instruction]:
        """Time passed: silent workers are given up, overdue requests answered."""
        silent = [name for name, worker in self.workers.items() if now - worker.heard > self.silence]
        instructions = [*self._lose(silent, now), *self._overdue_later(now)]
        while self.queue and now - self.queue[0].arrived > self.deadline:
            instructions.append(GiveUp(self.queue.popleft(), self._why_waiting()))
        if not self.workers:
            # Minions ask again by themselves and can wait; somebody sits in front of a command.
            told = [one for one in self.queue if one.side is Side.CONTROL and now - one.arrived > WORKERLESS]
            for request in told:
                self.queue.remove(request)
                instructions.append(GiveUp(request, self._why_waiting()))
        return instructions

    def _why_waiting(self) -> str:
        if not self.workers:
            return "no worker is connected"
        return f"all {len(self.workers)} workers were busy for {self.deadline:.0f} s"

    def _overdue_later(self, now: float) -> list[Instruction]:
        gone: list[Instruction] = []
        while self.parked:
            ticket, (since, request) = next(iter(self.parked.items()))
            if len(self.parked) <= MAX_LATER and now - since <= LATER_SECONDS:
                break
            del self.parked[ticket]
            gone.append(GiveUp(request, "the process that was to answer it did not"))
        return gone

    def _lose(self, names: Iterable[bytes], now: float) -> list[Instruction]:
        instructions: list[Instruction] = []
        for name in names:
            worker = self.workers.pop(name, None)
            self.idle.pop(name, None)
            if worker is not None:
                instructions += self._take_back(worker)
        return instructions + self._assign(now)

    def _take_back(self, worker: Worker) -> list[Instruction]:
        request, worker.request = worker.request, None
        if request is None:
            return []
        if request.attempts >= MAX_ATTEMPTS:
            return [GiveUp(request, f"{request.attempts} workers died over it")]
        self.requeued += 1
        self.queue.appendleft(request)
        return []

    def _assign(self, now: float) -> list[Instruction]:
        instructions: list[Instruction] = []
        while self.queue and self.idle:
            name, _ = self.idle.popitem()
            worker, request = self.workers[name], self.queue.popleft()
            request.attempts += 1
            worker.request, worker.handed = request, now
            instructions.append(Hand(name, request))
        return instructions
