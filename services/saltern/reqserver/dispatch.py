"""Dispatcher: decides which worker gets which request. It opens no socket.

Requests of minions (port 4506) and operators (port 4507) wait in queues (``queue``) and are assigned to idle workers
(``workers``). If a worker falls silent, disconnects, ends or reports that it hangs, its request goes to the next idle
worker. That is safe, because commands may be repeated: a return is stored once, and a publish carries a request id.

    worker      unknown --ready--> idle --assign--> busy --reply--> idle
                                                    busy --lost, silent, hung, bye, ready--> gone or idle; its request is next
                                                    busy --defer--> idle; a child process of the worker sends the reply later
                                                    busy --wrong_pool--> idle; the request waits for a worker of its own pool
                                                    any  --away--> away: idle for another reqserver, until it is called
                                                    away --call, ready--> idle

If there are several reqservers, each worker is connected to all of them and idle for one. Source:
docs/decisions/0024-several-reqservers.md. A reqserver whose requests wait calls workers that are away, as many as requests wait.

With several pools, only the worker that decrypts a request learns its command. Any idle worker may decrypt it; the
worker handles the request if it belongs to the worker's pool, and gives it back otherwise (docs/decisions/0010). The
Dispatcher gets events with the current time and returns a list of instructions, which ``main`` carries out: Assign,
Answer, Call, GiveUp, Refuse.
"""

from __future__ import annotations

import itertools
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from saltern.kit.config.worker_pools import ONE_POOL, Pools
from saltern.kit.process.rate_limit import Rate, RateLimiter
from saltern.reqserver.clear_header import NO_HEADER, ClearHeader
from saltern.reqserver.queue import FairQueue, Request, Side, WaitingRequests
from saltern.reqserver.workers import Worker, Workers

#: A request during which so many workers died is not assigned again: it may be the cause.
MAX_ATTEMPTS = 2

#: The same for a request that anybody can send (not encrypted), and for one of a minion above RISKY_BYTES. The minion repeats it.
MAX_RISKY_ATTEMPTS = 1

#: Size from which on a minion's request alone could need too much memory, bytes.
RISKY_BYTES = 1024 * 1024

#: Seconds without any worker after which operators get an error, and without a worker of its pool after which other pools serve a
#: request. A restarting worker is back sooner.
WORKERLESS = 5.0

#: Seconds after an assignment from which on "ready" of a busy worker means that the request never arrived.
HANDOVER_GRACE = 1.0

#: Most deferred requests; above that the oldest is given up.
MAX_DEFERRED = 1000

#: Seconds until a deferred request is given up. Its sender has given up long before; this bounds memory.
DEFERRED_SECONDS = 3600.0

#: Part of the limits of waiting requests that one sender may use, so that one minion cannot fill the queue.
SENDERS_SHARE = 0.1

#: Seconds after which a refused sender may repeat its request. A full queue is processed within seconds.
RETRY_AFTER = 5.0

#: Seconds of its rate that a minion may use at once, in requests and in bytes.
RATE_BURST = 10.0

#: Seconds that a request of a minion above its rate waits at most; further requests are refused.
RATE_PATIENCE = 30.0

#: Most waiting requests of a sender that are searched for a repeated one.
_MOST_COMPARED = 16

#: Seconds that a request waits before workers that are away are called for it: one that is here is often done sooner. Where none
#: is here, they are called at once.
CALL_AFTER = 0.005

#: Seconds between two searches for workers to call: a reqserver whose queue is never empty would search at each message.
_CALL_PAUSE = 0.002

#: Most senders whose waiting requests are counted to find how many workers to call.
_MOST_COUNTED = 64

#: Most connections whose last pool is remembered, so that the next request goes to the right pool first.
_HINTS = 10_000


class Assign(NamedTuple):
    """Instruction of the Dispatcher: send the request to this worker.

    ``opening_pool``: name of the worker's pool if the header of the request does not name its command, so that another
    pool may have to handle it; else empty text.
    """

    worker: bytes
    request: Request
    opening_pool: str = ""


class Answer(NamedTuple):
    """Instruction of the Dispatcher: send these bytes, a worker's reply, to the sender of the request."""

    request: Request
    payload: bytes
    #: The minion that sent the request, if its worker was asked for it and the request proves it.
    minion: str = ""


class GiveUp(NamedTuple):
    """Instruction of the Dispatcher: tell an operator that the request was not handled. A minion gets no answer and repeats
    the request.
    """

    request: Request
    why: str


class Refuse(NamedTuple):
    """Instruction of the Dispatcher: tell the sender to repeat the request after ``retry_after`` seconds, if the sender
    understands the busy reply.
    """

    request: Request
    why: str
    retry_after: float


class Call(NamedTuple):
    """Instruction of the Dispatcher: tell a worker that is away that requests wait here, or that none does any more."""

    worker: bytes
    wanted: bool


Instruction: TypeAlias = Assign | Answer | Call | GiveUp | Refuse


@dataclass
class Dispatcher:
    """The waiting requests of minions and operators, the workers, and the decision which worker gets which request.

    Times are seconds of one monotonic clock.
    """

    #: Seconds without a message after which a worker is given up.
    silence: float = 4.0
    #: Seconds after which a waiting request is given up; ``deadlines`` maps commands to other values.
    deadline: float = 60.0
    deadlines: Mapping[str, float] = field(default_factory=dict)
    pools: Pools = ONE_POOL
    max_count: int = 20_000
    max_bytes: int = 256 * 1024 * 1024
    #: Most requests of one minion that a pool handles at the same time; 0: one less than the pool's workers.
    at_once: int = 0
    #: Requests and bytes a second of one minion; 0: unlimited.
    requests_per_second: float = 0
    bytes_per_second: float = 0
    waiting: WaitingRequests = field(default_factory=WaitingRequests)
    workers: Workers = field(init=False)
    #: Map of ticket to (time of deferral, request) of requests that a worker's child process answers, oldest first.
    deferred: dict[int, tuple[float, Request]] = field(default_factory=dict)
    #: Counters since the last metrics update: requests assigned again, given back by another pool, sent to a worker that had gone
    #: to another reqserver, and refused by reason.
    requeued: int = 0
    handed_back: int = 0
    unread: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    #: Number before the first ticket. A process that answers later may outlive this reqserver, and its ticket must then not be that
    #: of another request.
    tickets_after: int = 0
    #: Time before which no worker is called.
    _next_call: float = 0.0
    _rates: RateLimiter = field(init=False)
    _tickets: itertools.count[int] = field(init=False)
    _hints: OrderedDict[bytes, str] = field(default_factory=OrderedDict)
    #: Map of pool to the index of the queue that it serves next.
    _next_served: dict[str, int] = field(init=False)
    #: Map of pool to the queues that its workers serve.
    _served_queues: Mapping[str, Sequence[tuple[str | None, Side, FairQueue]]] = field(init=False)

    def __post_init__(self) -> None:
        self._tickets = itertools.count(self.tickets_after + 1)
        self.workers = Workers(self.pools, self.at_once)
        self._rates = RateLimiter(Rate(self.requests_per_second, RATE_BURST), Rate(self.bytes_per_second, RATE_BURST))
        self._next_served = dict.fromkeys(self.pools.names, 0)
        # A pool serves its own queues, requests of unknown command, and queues of pools without workers.
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
        """Return the number of workers that have a request."""
        return self.workers.in_work

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
        """Take a request that arrived. Return an Assign if a worker is idle, a Refuse if the queue is full; else queue
        the request.

        ``header`` is the unencrypted part of the request; ``address`` is the IP address of the sender. A repeated
        request is dropped.
        """
        # All requests of a minion are one sender; each command of an operator has its own connection.
        sender = (address, header.sender) if header.sender and side is Side.MINION else route[0]
        overdue = now + self.deadlines.get(header.cmd, self.deadline)
        pool = self.pools.of(header.cmd) if header.cmd or not self.pools.several else None
        number = next(self._tickets)
        request = Request(number, side, route, client, payload, now, sender, header.cmd, header.patient, pool, overdue)
        wait = self._rates.wait(sender, now) if side is Side.MINION else 0.0
        if not wait and (worker := self._idle_worker_for(request)):
            self._charge(request, now)
            return [self._assign_to(worker, request, now)]
        if self._is_repeated(request):
            return []
        if why := "rate" if wait > RATE_PATIENCE else self._full(request):
            self.refused[why] += 1
            return [Refuse(request, _REFUSALS[why], max(wait - RATE_PATIENCE, RETRY_AFTER))]
        request.not_before = now + wait
        request.overdue += wait
        self._charge(request, now)
        self.waiting.add(request)
        return []

    def _charge(self, request: Request, now: float) -> None:
        if request.side is Side.MINION:
            # The minion's connections may be at all reqservers; each of them allows its part of the rates.
            parts = self.workers.reqservers
            self._rates.charge(request.sender, now, 1.0 * parts, len(request.payload) * parts)

    def ready(
        self,
        name: bytes,
        now: float,
        pool: str = "",
        *,
        offer: bytes = b"",
        reqservers: int = 1,
        short: bool = False,
    ) -> list[Instruction]:
        """Record that a worker is idle, and return the instructions that follow, such as an Assign of its next request.

        ``pool``: the pool that the worker's configuration names, or empty text. ``offer``: the number of this time at which
        it is idle here; ``reqservers``: the number of reqservers that it knows; ``short``: whether it knows the short form.
        """
        worker = self.workers.touch(name, now) or self.workers.join(name, pool, now)
        worker.short = short
        self.workers.reqservers = reqservers
        gone: list[Instruction] = []
        if offer != worker.offer:
            # The worker did not read a request that was sent before.
            self._take_unread(worker)
            worker.offer = offer
        if worker.request is not None:
            if now - worker.assigned_at < HANDOVER_GRACE:
                # The worker sent "ready" before the request arrived.
                return []
            gone = self._take_back(worker)
        return gone + self._set_idle(name, worker, now)

    def away(self, name: bytes, now: float, pool: str, reqservers: int) -> list[Instruction]:
        """Record that a worker is idle for another reqserver, and return the instructions that follow: a request that was sent
        to it, and that it has not read, goes to another one.
        """
        worker = self.workers.touch(name, now) or self.workers.join(name, pool, now)
        self.workers.reqservers = reqservers
        self._take_unread(worker)
        self.workers.set_away(name, worker)
        return self._assign(self.workers.order, now) if self.waiting.count else []

    def call(self, now: float) -> list[Instruction]:
        """Return one Call for each waiting request: it asks a worker that is idle for another reqserver to come here.

        ``now``: monotonic seconds. Returns [] at once where nothing waits or no worker is away.
        """
        if not self.waiting.count or now < self._next_call or not self.workers.some_away:
            return []
        self._next_call = now + _CALL_PAUSE
        return [
            Call(name, True)
            for pool in self.pools.names
            if (most := self.workers.away(pool))
            for name in self.workers.call(pool, self._needed(pool, most, now), now)
        ]

    def calls_soon(self) -> bool:
        """Return whether a worker may have to be called within milliseconds."""
        return (
            bool(self.waiting.count)
            and self.workers.some_away
            and any(self.workers.uncalled(pool) for pool in self.pools.names)
        )

    def _needed(self, pool: str, most: int, now: float) -> int:
        """Return for how many waiting requests a worker of this pool that is away should come; at most ``most``."""
        since = now - CALL_AFTER if self.workers.here(pool) else now
        count = 0
        for of, _, queue in self._served_queues[pool]:
            if not queue or (of not in (pool, None) and not self._stands_in(of, queue, now)):
                continue
            for request in itertools.islice(queue.firsts(), _MOST_COUNTED):
                if request.arrived <= since and self._may_start(pool, request, now):
                    count += 1
                    if count >= most:
                        return count
        return count

    def _end_calls(self, now: float) -> list[Instruction]:
        if not self.workers.some_away:
            return []
        return [
            Call(name, False)
            for pool in self.pools.names
            if not self._needed(pool, 1, now)
            for name in self.workers.end_calls(pool)
        ]

    def reply(
        self, name: bytes, ticket: int, payload: bytes, now: float, *, minion: str = "", last: bool = False
    ) -> list[Instruction]:
        """Take a worker's reply to a request. Return an Answer with the reply, and an Assign of the worker's next
        request, if one waits.

        The reply is dropped if the request was given to another worker meanwhile. ``minion``: id of the minion that
        verifiably sent the request, if the worker was asked for it. ``last``: the worker goes to another reqserver.
        """
        if ticket in self.deferred:
            return [Answer(self.deferred.pop(ticket)[1], payload, minion)]
        worker = self.workers.holder(name, ticket, now)
        if worker is None:
            idle = self.workers.get(name) if last else None
            if idle is not None and idle.request is None:
                self.workers.set_away(name, idle)
            return []
        request = self.workers.take(worker)
        if self.pools.several:
            self._hint(request, worker.pool)
        if last:
            self.workers.set_away(name, worker)
            return [Answer(request, payload, minion)]
        # The next request is sent first, because the worker is idle; the reply takes longer on the network anyway.
        return [*self._set_idle(name, worker, now), Answer(request, payload, minion)]

    def defer(self, name: bytes, ticket: int, now: float) -> list[Instruction]:
        """Record that a child process of the worker will send the reply to a request. The worker is idle again.

        Return the instructions that follow, such as an Assign of its next request.
        """
        worker = self.workers.holder(name, ticket, now)
        if worker is None:
            return []
        self.deferred[ticket] = (now, self.workers.take(worker))
        return [*self._drop_overdue_deferred(now), *self._set_idle(name, worker, now)]

    def wrong_pool(self, name: bytes, ticket: int, pool: str, now: float) -> list[Instruction]:
        """Take back a request that a worker decrypted and that belongs to ``pool``; assign or queue it for that pool.

        Return the instructions that follow: Assigns of this request and of the worker's next one, if possible.
        """
        worker = self.workers.holder(name, ticket, now)
        if worker is None:
            return []
        request = self.workers.take(worker)
        request.attempts -= 1
        # A worker with another configuration may name an unknown pool.
        request.pool = pool if pool in self.pools.workers else self.pools.rest
        self._hint(request, request.pool)
        self.handed_back += 1
        fitting = self._idle_worker_for(request)
        handed = [self._assign_to(fitting, request, now)] if fitting else []
        if not fitting:
            # The request goes to the end of its queue: other pools may open requests faster than its own pool handles them.
            self.waiting.add(request)
        return [*handed, *self._set_idle(name, worker, now)]

    def pulse(self, name: bytes, now: float) -> list[Instruction]:
        """Record that a busy worker lives. The returned list of instructions is empty."""
        self.workers.touch(name, now)
        return []

    def bye(self, name: bytes, now: float) -> list[Instruction]:
        """Remove a worker that ends. It has not read a request that was sent to it last, so that request goes to another worker.

        Return the instructions that follow (Assign, GiveUp).
        """
        worker = self.workers.get(name)
        if worker is not None and worker.request is not None:
            worker.request.attempts -= 1
        return self._lose([name], now)

    def hung(self, name: bytes, now: float) -> list[Instruction]:
        """Remove a worker that ends because its request took longer than its command may take
        (``kit.links.deadlines``); the request goes to another worker.

        Return the instructions that follow (Assign, GiveUp).
        """
        return self._lose([name], now)

    def disconnected(self, names: Iterable[bytes], now: float) -> list[Instruction]:
        """Remove workers whose connections have ended; their requests go to other workers.

        Return the instructions that follow (Assign, GiveUp).
        """
        return self._lose(names, now)

    def tick(self, now: float) -> list[Instruction]:
        """Give up silent workers and overdue requests, and return the instructions that follow (Assign, GiveUp).

        Call it regularly with the current time, in seconds of the monotonic clock.
        """
        instructions = [*self._lose(self.workers.silent(now - self.silence), now), *self._drop_overdue_deferred(now)]
        for request in self.waiting.overdue(now):
            instructions.append(self._expire(request))
        if self.waiting.count and not self.workers:
            # Minions repeat their requests; an operator waits in front of a command.
            impatient = [one for one in self.waiting if one.side is Side.CONTROL and now - one.arrived > WORKERLESS]
            for request in impatient:
                self.waiting.drop(request)
                instructions.append(self._expire(request))
        if self.waiting.count:
            # A sender that was over its rate may go on, and other pools serve a pool without workers after WORKERLESS seconds.
            instructions += self._assign(self.workers.order, now)
        return instructions + self._end_calls(now)

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

    def _take_unread(self, worker: Worker) -> None:
        """Take back a request that was sent to a worker and that the worker did not read."""
        if worker.request is not None:
            worker.request.attempts -= 1
            self.unread += 1
            self.waiting.add(self.workers.take(worker), first=True)

    def _take_back(self, worker: Worker) -> list[Instruction]:
        if worker.request is None:
            return []
        request = self.workers.take(worker)
        if request.attempts >= _most_attempts(request):
            self.refused["deadly"] += 1
            return [GiveUp(request, f"{request.attempts} workers died over it")]
        self.requeued += 1
        self.waiting.add(request, first=True)
        return []

    # ---------------------------------------------------------------------------------------------------------------- bounds

    def _full(self, request: Request) -> str:
        """Return why a request may not wait in the queue: "sender", "count" or "bytes", a key of _REFUSALS; "" if it may."""
        own = self.waiting.queue(request.pool, request.side).of(request.sender)
        size = len(request.payload)
        if request.side is Side.MINION:
            if len(own) >= max(1.0, self.max_count * SENDERS_SHARE):
                return "sender"
            if own and sum(len(one.payload) for one in own) + size > self.max_bytes * SENDERS_SHARE:
                return "sender"
        if self.waiting.count >= self.max_count:
            return "count"
        # A single request may have any size that the port accepts.
        return "bytes" if self.waiting.count and self.waiting.bytes + size > self.max_bytes else ""

    def _is_repeated(self, request: Request) -> bool:
        """Return whether the request repeats a waiting one: the same message, or another sign-in of the same minion."""
        own = self.waiting.queue(request.pool, request.side).of(request.sender)
        if len(own) > _MOST_COMPARED:
            return False
        for one in own:
            if one.cmd == request.cmd == "_auth":
                # The minion no longer waits for the answer to its earlier sign-in; the new one takes its place in the queue.
                request.not_before = one.not_before
                self.waiting.replace(one, request)
                return True
            if one.route == request.route and one.payload == request.payload:
                return True
        return False

    # ------------------------------------------------------------------------------------------------------------ assignment

    def _idle_worker_for(self, request: Request) -> bytes | None:
        """Return the name of an idle worker for a new request, or None."""
        for pool in self._preferred(request):
            worker = self.workers.idle(pool)
            if worker is not None and self.workers.may_start(pool, request.side, request.sender):
                return worker
        return None

    def _preferred(self, request: Request) -> tuple[str, ...]:
        """Return the names of the pools whose workers may take the request, the best one first."""
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
        """Assign waiting requests to the idle workers of these pools; return an Assign for each."""
        instructions: list[Instruction] = []
        for pool in pools:
            while (worker := self.workers.idle(pool)) and (request := self._next(pool, now)) is not None:
                instructions.append(self._assign_to(worker, request, now))
        return instructions

    def _next(self, pool: str, now: float) -> Request | None:
        """Return the next request for a worker of this pool. The queues that the pool serves take turns, so that each is served."""
        kinds = self._served_queues[pool]
        start = self._next_served[pool]
        for step in range(len(kinds)):
            index = (start + step) % len(kinds)
            of, _, queue = kinds[index]
            if not queue or (of not in (pool, None) and not self._stands_in(of, queue, now)):
                continue
            request = self.waiting.take(queue, lambda first: self._may_start(pool, first, now))
            if request is not None:
                self._next_served[pool] = (index + 1) % len(kinds)
                return request
        return None

    def _may_start(self, pool: str, request: Request, now: float) -> bool:
        """Return whether a worker of this pool may get the first waiting request of a sender now."""
        return request.not_before <= now and self.workers.may_start(pool, request.side, request.sender)

    def _stands_in(self, pool: str, queue: FairQueue, now: float) -> bool:
        """Return whether workers of other pools serve this queue: its pool has had no worker for WORKERLESS seconds."""
        return not self.workers.size(pool) and now - next(iter(queue)).arrived > WORKERLESS

    def _assign_to(self, name: bytes, request: Request, now: float) -> Assign:
        worker = self.workers.give(name, request, now)
        request.attempts += 1
        return Assign(name, request, worker.pool if request.pool is None else "")


def _most_attempts(request: Request) -> int:
    """Return the number of workers that may die over a request before the request is given up."""
    risky = request.side is Side.MINION and (request.cmd or len(request.payload) > RISKY_BYTES)
    return MAX_RISKY_ATTEMPTS if risky else MAX_ATTEMPTS


#: Map of the reason for a refusal to its text.
_REFUSALS: Mapping[str, str] = {
    "sender": "too many requests of this minion wait already",
    "rate": "a minion sends more than minion_requests_per_second or minion_bytes_per_second",
    "count": "too many requests wait already",
    "bytes": "requests of too many bytes wait already",
}
