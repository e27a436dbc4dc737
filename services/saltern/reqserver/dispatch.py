"""Who works on what: the reqserver's decisions, without a socket.

Requests of minions (4506) and of operators (4507) wait (``waiting``) and are handed to idle workers (``crew``) only. A worker that
falls silent, says goodbye, says that it hangs or disconnects loses its request to the next idle worker; commands are idempotent
(a return is stored once, a publish carries a request id), so handing one out twice is safe.

    worker      unknown --ready--> idle --hand--> busy --reply--> idle
                                                   busy --silence, hung, bye, ready again--> the request is the next that is taken
                                                   busy --later--> idle; the request waits for an answer from whomever it comes
                                                   busy --elsewhere--> idle; the request waits for a worker of its pool

With several pools the command of a sealed request is known to who opens it: any idle worker looks into it, works on it if it is of
its pool, and gives it back otherwise (docs/decisions/0010). ``Dispatcher`` is fed events with the time and returns instructions;
``main`` moves the bytes.
"""

from __future__ import annotations

import itertools
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from saltern.kit.config.worker_pools import ONE_POOL, Pools
from saltern.reqserver.clear_header import NO_HEADER, ClearHeader
from saltern.reqserver.queue import FairQueue, Request, Side, WaitingRequests
from saltern.reqserver.workers import Worker, Workers

#: A request that ended so many workers is not handed to another one.
MAX_ATTEMPTS = 3

#: An operator is told after so many seconds that there is no worker at all; a restarting one is back sooner. For a pool that has
#: none others stand in then.
WORKERLESS = 5.0

#: A busy worker that says "ready" this long after it was handed a request never got it (seconds).
HANDOVER_GRACE = 1.0

#: Requests that are answered later; with more the oldest is given up.
MAX_DEFERRED = 1000

#: Seconds for a late answer. Whoever asked has given up long before; this bounds what is remembered.
DEFERRED_SECONDS = 3600.0

#: What one sender may take of the bounds of what waits: a flood of one minion leaves the rest to the others.
SENDERS_SHARE = 0.1

#: Seconds after which who was refused may ask again. What waits is worked off in seconds, and everybody's pause differs.
RETRY_AFTER = 5.0

#: A request that is sent again is found among so many of its sender's; who has more is not worth the search.
_MOST_COMPARED = 16

#: Connections whose last pool is remembered, to have the next request opened where it belongs.
_HINTS = 10_000


@dataclass(frozen=True, slots=True)
class Assign:
    """Send the request to this worker. ``look``: the worker's pool, where the request may be of another one."""

    worker: bytes
    request: Request
    opening_pool: str = ""


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


@dataclass(frozen=True, slots=True)
class Refuse:
    """Tell the sender at once that it is to ask again later, if it understands that."""

    request: Request
    why: str
    retry_after: float


Instruction: TypeAlias = Assign | Answer | GiveUp | Refuse


@dataclass
class Dispatcher:
    """The queue, the workers, and what to do next. All times are seconds of one monotonic clock."""

    #: Seconds without a sign of life after which a worker is given up.
    silence: float = 4.0
    #: Seconds after which a waiting request is answered with an error; of some commands others.
    deadline: float = 60.0
    deadlines: Mapping[str, float] = field(default_factory=dict)
    pools: Pools = ONE_POOL
    max_count: int = 20_000
    max_bytes: int = 256 * 1024 * 1024
    #: Requests of one minion in work at once in a pool; 0: all its workers but one.
    at_once: int = 0
    waiting: WaitingRequests = field(default_factory=WaitingRequests)
    workers: Workers = field(init=False)
    #: Requests that a process of some worker's answers when it is done: ticket -> when the worker said so, oldest first.
    deferred: dict[int, tuple[float, Request]] = field(default_factory=dict)
    #: How often since it was last taken: a request went to another worker, was opened in another pool, was refused and why.
    requeued: int = 0
    handed_back: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    _tickets: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _hints: OrderedDict[bytes, str] = field(default_factory=OrderedDict)
    #: Whose turn it is among the lines that a pool's workers serve.
    _next_served: dict[str, int] = field(init=False)
    #: Pool -> the lines that its workers serve.
    _served_queues: Mapping[str, Sequence[tuple[str | None, Side, FairQueue]]] = field(init=False)

    def __post_init__(self) -> None:
        self.workers = Workers(self.pools, self.at_once)
        self._next_served = dict.fromkeys(self.pools.names, 0)
        # Its own requests, those that nobody has looked into, those of pools without a worker.
        unopened = [None] if self.pools.several else []
        self._served_queues = {
            pool: [
                (of, side, self.waiting.queue(of, side))
                for of in (pool, *unopened, *(other for other in self.workers.order if other != pool))
                for side in (Side.CONTROL, Side.MINION)
            ]
            for pool in self.pools.names
        }

    @property
    def busy(self) -> int:
        """How many workers hold a request."""
        return sum(map(self.workers.busy, self.pools.names))

    # ---------------------------------------------------------------------------------------------------------------- events

    def request(
        self,
        side: Side,
        route: tuple[bytes, ...],
        client: str,
        payload: bytes,
        now: float,
        *,
        header: ClearHeader = NO_HEADER,
        address: str = "",
    ) -> list[Instruction]:
        """A request came in; ``sight`` and ``address`` are what it shows and where it comes from."""
        # An operator's commands are connections of their own; a minion's are one sender.
        sender = (address, header.sender) if header.sender and side is Side.MINION else route[0]
        overdue = now + self.deadlines.get(header.cmd, self.deadline)
        pool = self.pools.of(header.cmd) if header.cmd or not self.pools.several else None
        number = next(self._tickets)
        request = Request(number, side, route, client, payload, now, sender, header.cmd, header.patient, pool, overdue)
        if worker := self._idle_worker_for(request):
            return [self._assign_to(worker, request, now)]
        if self._is_repeated(request):
            return []
        if why := self._full(request):
            self.refused[why] += 1
            return [Refuse(request, _REFUSALS[why], RETRY_AFTER)]
        self.waiting.add(request)
        return []

    def ready(self, name: bytes, now: float, pool: str = "") -> list[Instruction]:
        """A worker has nothing to do. ``pool``: where it was told to work, empty where it does not mind."""
        worker = self.workers.touch(name, now) or self.workers.join(name, pool, now)
        gone: list[Instruction] = []
        if worker.request is not None:
            if now - worker.assigned_at < HANDOVER_GRACE:
                # Its "ready" and our request crossed on the wire.
                return []
            gone = self._take_back(worker)
        return gone + self._set_idle(name, worker, now)

    def reply(self, name: bytes, ticket: int, payload: bytes, now: float) -> list[Instruction]:
        """A worker finished a request. A late answer to a request given to another worker is dropped."""
        if ticket in self.deferred:
            return [Answer(self.deferred.pop(ticket)[1], payload)]
        worker = self.workers.holder(name, ticket, now)
        if worker is None:
            return []
        request = self.workers.take(worker)
        if self.pools.several:
            self._hint(request, worker.pool)
        # The worker waits for its next request; who gets an answer has the whole network to wait for.
        return [*self._set_idle(name, worker, now), Answer(request, payload)]

    def defer(self, name: bytes, ticket: int, now: float) -> list[Instruction]:
        """A worker left a request to a process of its own, which answers when it is done."""
        worker = self.workers.holder(name, ticket, now)
        if worker is None:
            return []
        self.deferred[ticket] = (now, self.workers.take(worker))
        return [*self._drop_overdue_deferred(now), *self._set_idle(name, worker, now)]

    def wrong_pool(self, name: bytes, ticket: int, pool: str, now: float) -> list[Instruction]:
        """A worker looked into a request: it is of another pool."""
        worker = self.workers.holder(name, ticket, now)
        if worker is None:
            return []
        request = self.workers.take(worker)
        request.attempts -= 1
        # A worker with another configuration may name a pool that is none here.
        request.pool = pool if pool in self.pools.workers else self.pools.rest
        self._hint(request, request.pool)
        self.handed_back += 1
        fitting = self._idle_worker_for(request)
        handed = [self._assign_to(fitting, request, now)] if fitting else []
        if not fitting:
            # Not before those that wait already: other pools look into more than this one works off.
            self.waiting.add(request)
        return [*handed, *self._set_idle(name, worker, now)]

    def pulse(self, name: bytes, now: float) -> list[Instruction]:
        """A busy worker lives."""
        self.workers.touch(name, now)
        return []

    def bye(self, name: bytes, now: float) -> list[Instruction]:
        """A worker ends and holds nothing: what was handed to it meanwhile it has not read."""
        worker = self.workers.get(name)
        if worker is not None and worker.request is not None:
            worker.request.attempts -= 1
        return self._lose([name], now)

    def hung(self, name: bytes, now: float) -> list[Instruction]:
        """A worker is over its deadline and ends."""
        return self._lose([name], now)

    def tick(self, now: float) -> list[Instruction]:
        """Time passed: silent workers are given up, overdue requests answered."""
        instructions = [*self._lose(self.workers.silent(now - self.silence), now), *self._drop_overdue_deferred(now)]
        for request in self.waiting.overdue(now):
            instructions.append(self._expire(request))
        if self.waiting.count and not self.workers:
            # Minions ask again by themselves and can wait; somebody sits in front of a command.
            impatient = [one for one in self.waiting if one.side is Side.CONTROL and now - one.arrived > WORKERLESS]
            for request in impatient:
                self.waiting.drop(request)
                instructions.append(self._expire(request))
        if self.waiting.count and self.pools.several:
            # A pool without a worker: others stand in after a while.
            instructions += self._assign(self.workers.order, now)
        return instructions

    # ------------------------------------------------------------------------------------------------------------------ ends

    def _expire(self, request: Request) -> GiveUp:
        self.refused["overdue"] += 1
        if not self.workers:
            return GiveUp(request, "no worker is connected")
        pool = request.pool
        if pool is None or not self.pools.several:
            return GiveUp(
                request, f"all {len(self.workers)} workers were busy for {self._waited_seconds(request):.0f} s"
            )
        count = self.workers.size(pool)
        return GiveUp(
            request, f"all {count} workers of pool {pool} were busy for {self._waited_seconds(request):.0f} s"
        )

    @staticmethod
    def _waited_seconds(request: Request) -> float:
        return request.overdue - request.arrived

    def _drop_overdue_deferred(self, now: float) -> list[Instruction]:
        gone: list[Instruction] = []
        while self.deferred:
            ticket, (since, request) = next(iter(self.deferred.items()))
            if len(self.deferred) <= MAX_DEFERRED and now - since <= DEFERRED_SECONDS:
                break
            del self.deferred[ticket]
            gone.append(GiveUp(request, "the process that was to answer it did not"))
        return gone

    def _lose(self, names: Iterable[bytes], now: float) -> list[Instruction]:
        instructions: list[Instruction] = []
        for name in names:
            worker = self.workers.lose(name)
            if worker is not None:
                instructions += self._take_back(worker)
        return instructions + self._assign(self.workers.order, now) if self.waiting.count else instructions

    def _take_back(self, worker: Worker) -> list[Instruction]:
        if worker.request is None:
            return []
        request = self.workers.take(worker)
        if request.attempts >= MAX_ATTEMPTS:
            self.refused["deadly"] += 1
            return [GiveUp(request, f"{request.attempts} workers died over it")]
        self.requeued += 1
        self.waiting.add(request, first=True)
        return []

    # ---------------------------------------------------------------------------------------------------------------- bounds

    def _full(self, request: Request) -> str:
        """Why a request may not wait, as a word of _REFUSALS; empty where it may."""
        own = self.waiting.queue(request.pool, request.side).of(request.sender)
        size = len(request.payload)
        if request.side is Side.MINION:
            if len(own) >= max(1.0, self.max_count * SENDERS_SHARE):
                return "sender"
            if own and sum(len(one.payload) for one in own) + size > self.max_bytes * SENDERS_SHARE:
                return "sender"
        if self.waiting.count >= self.max_count:
            return "count"
        # A single one may be as large as the port reads.
        return "bytes" if self.waiting.count and self.waiting.bytes + size > self.max_bytes else ""

    def _is_repeated(self, request: Request) -> bool:
        """Whether it waits already: a sign-in of the same minion, which counts no more, or the very same message."""
        own = self.waiting.queue(request.pool, request.side).of(request.sender)
        if len(own) > _MOST_COMPARED:
            return False
        for one in own:
            if one.cmd == request.cmd == "_auth":
                # Who signs in anew has given up on the answer to the one before; its place is worth keeping.
                self.waiting.replace(one, request)
                return True
            if one.route == request.route and one.payload == request.payload:
                return True
        return False

    # ------------------------------------------------------------------------------------------------------------ assignment

    def _idle_worker_for(self, request: Request) -> bytes | None:
        """An idle worker for a request that just came, if its sender may have one."""
        for pool in self._preferred(request):
            worker = self.workers.idle(pool)
            if worker is not None and self.workers.may_start(pool, request.side, request.sender):
                return worker
        return None

    def _preferred(self, request: Request) -> tuple[str, ...]:
        """The pools whose workers may take it, as long as no other request waits for them."""
        if request.pool is not None:
            return (request.pool,)
        hint = self._hints.get(request.route[0])
        return (hint, *self.workers.order) if hint else self.workers.order

    def _hint(self, request: Request, pool: str) -> None:
        if request.cmd:
            return
        self._hints[request.route[0]] = pool
        self._hints.move_to_end(request.route[0])
        if len(self._hints) > _HINTS:
            self._hints.popitem(last=False)

    def _set_idle(self, name: bytes, worker: Worker, now: float) -> list[Instruction]:
        self.workers.set_idle(name, worker)
        return self._assign((worker.pool,), now) if self.waiting.count else []

    def _assign(self, pools: Iterable[str], now: float) -> list[Instruction]:
        """Hands what waits to idle workers of these pools."""
        instructions: list[Instruction] = []
        for pool in pools:
            while (worker := self.workers.idle(pool)) and (request := self._next(pool, now)) is not None:
                instructions.append(self._assign_to(worker, request, now))
        return instructions

    def _next(self, pool: str, now: float) -> Request | None:
        """What a worker of this pool does next: the lines that it serves take turns, so that none starves another."""
        kinds = self._served_queues[pool]
        start = self._next_served[pool]
        for step in range(len(kinds)):
            index = (start + step) % len(kinds)
            of, side, queue = kinds[index]
            if not queue or (of not in (pool, None) and not self._stands_in(of, queue, now)):
                continue
            request = self.waiting.take(queue, partial(self.workers.may_start, pool, side))
            if request is not None:
                self._next_served[pool] = (index + 1) % len(kinds)
                return request
        return None

    def _stands_in(self, pool: str, queue: FairQueue, now: float) -> bool:
        """Whether workers of others take this line: its pool has none, and has had none for a while."""
        return not self.workers.size(pool) and now - next(iter(queue)).arrived > WORKERLESS

    def _assign_to(self, name: bytes, request: Request, now: float) -> Assign:
        worker = self.workers.give(name, request, now)
        request.attempts += 1
        return Assign(name, request, worker.pool if request.pool is None else "")


#: Why a request is refused at once -> as one says it.
_REFUSALS: Mapping[str, str] = {
    "sender": "too many requests of this minion wait already",
    "count": "too many requests wait already",
    "bytes": "requests of too many bytes wait already",
}
