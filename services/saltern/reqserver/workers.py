"""The workers that are connected to the reqserver: their pools, which request each worker has, and which are idle for another
reqserver (``away``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from saltern.kit.config.worker_pools import Pools
from saltern.reqserver.queue import Request, Side

#: Seconds after which another worker is called, because the one that was called before has not come: it is busy.
CALL_PATIENCE = 0.015


@dataclass(slots=True)
class Worker:
    """A connected mworker process. ``request`` is set while it is busy. Times are seconds of a monotonic clock."""

    last_heard: float
    pool: str
    request: Request | None = None
    assigned_at: float = 0.0
    #: Number of the time at which the worker was idle for this reqserver; empty where there is one reqserver.
    offer: bytes = b""
    #: Whether it knows the short form of WORK (kit.links.worker_link).
    short: bool = False
    #: When the worker, which is away, was called; minus infinity if it was not.
    called: float = -math.inf


class Workers:
    """All connected mworker processes. Times are seconds of one monotonic clock."""

    def __init__(self, pools: Pools, at_once: int) -> None:
        """Start without workers.

        ``at_once``: most requests of one minion that a pool handles at the same time; 0: one less than the pool's workers.
        """
        self._pools = pools
        self._at_once = at_once
        #: Pools in the order in which they decrypt requests of unknown command: the pool of the rest first.
        self.order = tuple(sorted(pools.names, key=lambda pool: pool != pools.rest))
        self._by_name: dict[bytes, Worker] = {}
        #: Map of pool to its idle workers, in the order in which they became idle. The last one works first: its caches are warm.
        self._idle: dict[str, dict[bytes, None]] = {pool: {} for pool in pools.names}
        #: Map of pool to the workers that are idle for another reqserver; the one that was last known to be idle comes last.
        self._away: dict[str, dict[bytes, Worker]] = {pool: {} for pool in pools.names}
        #: Number of reqservers, as workers report it.
        self.reqservers = 1
        self._sizes: Counter[str] = Counter()
        #: Number of requests in work, and by (pool, sender).
        self.in_work = 0
        self._in_work: dict[tuple[str, Hashable], int] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def names(self) -> list[bytes]:
        """Return the names of all workers."""
        return list(self._by_name)

    def get(self, name: bytes) -> Worker | None:
        """Return the worker of this name; None if it is unknown."""
        return self._by_name.get(name)

    def size(self, pool: str) -> int:
        """Return the number of workers in a pool."""
        return self._sizes[pool]

    def busy(self, pool: str) -> int:
        """Return the number of workers in a pool that have a request."""
        return self._sizes[pool] - len(self._idle[pool]) - len(self._away[pool])

    def here(self, pool: str) -> int:
        """Return the number of workers in a pool that are not away."""
        return self._sizes[pool] - len(self._away[pool])

    def touch(self, name: bytes, now: float) -> Worker | None:
        """Record that a worker sent a message, and return the worker; None if it is unknown."""
        worker = self._by_name.get(name)
        if worker is not None:
            worker.last_heard = now
        return worker

    def join(self, name: bytes, pool: str, now: float) -> Worker:
        """Add a worker. If it names no known pool, it joins the pool that lacks workers most."""
        worker = self._by_name[name] = Worker(now, pool if pool in self._idle else self._neediest())
        self._sizes[worker.pool] += 1
        return worker

    def lose(self, name: bytes) -> Worker | None:
        """Remove a worker and return it, possibly with its request; None if it is unknown."""
        worker = self._by_name.pop(name, None)
        if worker is not None:
            self._idle[worker.pool].pop(name, None)
            self._away[worker.pool].pop(name, None)
            self._sizes[worker.pool] -= 1
        return worker

    def holder(self, name: bytes, ticket: int, now: float) -> Worker | None:
        """Record that the worker ``name`` sent a message; return the Worker if it has the request with this ticket,
        else None.
        """
        worker = self.touch(name, now)
        return worker if worker and worker.request is not None and worker.request.ticket == ticket else None

    def silent(self, since: float) -> list[bytes]:
        """Return the names of workers that sent no message since the time ``since``."""
        return [name for name, worker in self._by_name.items() if worker.last_heard < since]

    def set_idle(self, name: bytes, worker: Worker) -> None:
        """Mark a worker as idle, so that it may get a request."""
        if self._away[worker.pool].pop(name, None) is not None:
            worker.called = -math.inf
        self._idle[worker.pool][name] = None

    def set_away(self, name: bytes, worker: Worker) -> None:
        """Mark a worker as idle for another reqserver. A call that it did not follow counts as lost."""
        self._idle[worker.pool].pop(name, None)
        self._away[worker.pool].pop(name, None)
        self._away[worker.pool][name] = worker
        worker.called = -math.inf

    @property
    def some_away(self) -> bool:
        """Return whether a worker is away."""
        return self.reqservers > 1 and any(self._away.values())

    def away(self, pool: str) -> int:
        """Return the number of workers in a pool that are away."""
        return len(self._away[pool])

    def call(self, pool: str, needed: int, now: float) -> Iterator[bytes]:
        """Yield the names of workers to call now, so that ``needed`` ones were called within CALL_PATIENCE; mark them as called."""
        away = self._away[pool]
        missing = needed - sum(now - worker.called < CALL_PATIENCE for worker in away.values())
        for name, worker in reversed(away.items()):
            if missing <= 0:
                return
            if worker.called == -math.inf:
                worker.called = now
                missing -= 1
                yield name

    def uncalled(self, pool: str) -> bool:
        """Return whether the pool has a worker that is idle for another reqserver and that this one has not called yet."""
        return any(worker.called == -math.inf for worker in self._away[pool].values())

    def end_calls(self, pool: str) -> Iterator[bytes]:
        """Yield the names of the workers in a pool that were called and have not come; they count as not called from now on."""
        for name, worker in self._away[pool].items():
            if worker.called != -math.inf:
                worker.called = -math.inf
                yield name

    def idle(self, pool: str) -> bytes | None:
        """Return the name of the pool's idle worker that became idle last; None if all are busy."""
        _by_name = self._idle[pool]
        return next(reversed(_by_name)) if _by_name else None

    def give(self, name: bytes, request: Request, now: float) -> Worker:
        """Give a request to the idle worker of this name, which is busy from then on; return the Worker."""
        worker = self._by_name[name]
        del self._idle[worker.pool][name]
        worker.request, worker.assigned_at = request, now
        self.in_work += 1
        key = (worker.pool, request.sender)
        self._in_work[key] = self._in_work.get(key, 0) + 1
        return worker

    def take(self, worker: Worker) -> Request:
        """Take the request away from a busy worker and return the request. The worker is not marked as idle yet."""
        request, worker.request = worker.request, None
        assert request is not None, "the worker is idle"
        self.in_work -= 1
        key = (worker.pool, request.sender)
        if left := self._in_work.pop(key) - 1:
            self._in_work[key] = left
        return request

    def may_start(self, pool: str, side: Side, sender: Hashable) -> bool:
        """Return whether the pool may handle one more request of this sender. For operators always True."""
        if side is Side.CONTROL:
            return True
        in_work = self._in_work.get((pool, sender), 0)
        # Each reqserver keeps to its part: the minion's connections may be at all of them.
        return not in_work or in_work < (self._at_once or self._sizes[pool] - 1) // self.reqservers

    def _neediest(self) -> str:
        """Return the name of the pool that has the fewest workers in proportion to its configured number."""
        return min(self.order, key=lambda pool: self._sizes[pool] / self._pools.workers[pool])
