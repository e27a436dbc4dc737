"""The workers, the pools they are in, and which request each holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

from saltern.kit.config.worker_pools import Pools
from saltern.reqserver.queue import Request, Side


@dataclass(slots=True)
class Worker:
    """A worker as the dispatcher sees it. ``request`` is set while it is busy."""

    last_heard: float
    pool: str
    request: Request | None = None
    assigned_at: float = 0.0


class Workers:
    """All workers that were heard of lately. All times are seconds of one monotonic clock."""

    def __init__(self, pools: Pools, at_once: int) -> None:
        """``at_once``: requests of one minion in work at once in a pool; 0: all its workers but one."""
        self._pools = pools
        self._at_once = at_once
        # Who serves everything else looks into requests first.
        self.order = tuple(sorted(pools.names, key=lambda pool: pool != pools.rest))
        self._by_name: dict[bytes, Worker] = {}
        #: Idle workers of each pool in the order they became idle; the last, whose caches are warm, works first.
        self._idle: dict[str, dict[bytes, None]] = {pool: {} for pool in pools.names}
        self._sizes: Counter[str] = Counter()
        #: (pool, sender) -> requests in work.
        self._in_work: Counter[tuple[str, Hashable]] = Counter()

    def __len__(self) -> int:
        return len(self._by_name)

    def get(self, name: bytes) -> Worker | None:
        """The worker of this name; None for one that is not known or was given up."""
        return self._by_name.get(name)

    def size(self, pool: str) -> int:
        """How many workers a pool has."""
        return self._sizes[pool]

    def busy(self, pool: str) -> int:
        """How many of them hold a request."""
        return self._sizes[pool] - len(self._idle[pool])

    def touch(self, name: bytes, now: float) -> Worker | None:
        """A known worker, which lives; None for one that is not known or was given up."""
        worker = self._by_name.get(name)
        if worker is not None:
            worker.last_heard = now
        return worker

    def join(self, name: bytes, pool: str, now: float) -> Worker:
        """A new worker; where it does not say a pool that there is, it goes where workers lack most."""
        worker = self._by_name[name] = Worker(now, pool if pool in self._idle else self._neediest())
        self._sizes[worker.pool] += 1
        return worker

    def lose(self, name: bytes) -> Worker | None:
        """A worker is gone; it may hold a request still."""
        worker = self._by_name.pop(name, None)
        if worker is not None:
            self._idle[worker.pool].pop(name, None)
            self._sizes[worker.pool] -= 1
        return worker

    def holder(self, name: bytes, ticket: int, now: float) -> Worker | None:
        """The worker that says something about a request, if it holds this one."""
        worker = self.touch(name, now)
        return worker if worker and worker.request is not None and worker.request.ticket == ticket else None

    def silent(self, since: float) -> list[bytes]:
        """Those that were not heard of since."""
        return [name for name, worker in self._by_name.items() if worker.last_heard < since]

    def set_idle(self, name: bytes, worker: Worker) -> None:
        """A worker is idle."""
        self._idle[worker.pool][name] = None

    def idle(self, pool: str) -> bytes | None:
        """The idle worker of a pool that works next."""
        _by_name = self._idle[pool]
        return next(reversed(_by_name)) if _by_name else None

    def give(self, name: bytes, request: Request, now: float) -> Worker:
        """An idle worker begins to work on a request."""
        worker = self._by_name[name]
        del self._idle[worker.pool][name]
        worker.request, worker.assigned_at = request, now
        self._in_work[worker.pool, request.sender] += 1
        return worker

    def take(self, worker: Worker) -> Request:
        """A busy worker has its request no more."""
        request, worker.request = worker.request, None
        assert request is not None, "an idle worker has nothing to give"
        key = (worker.pool, request.sender)
        self._in_work[key] -= 1
        if not self._in_work[key]:
            del self._in_work[key]
        return request

    def may_start(self, pool: str, side: Side, sender: Hashable) -> bool:
        """Whether one more request of this sender may be in work in a pool. An operator's may."""
        if side is Side.CONTROL:
            return True
        in_work = self._in_work.get((pool, sender), 0)
        return not in_work or in_work < (self._at_once or self._sizes[pool] - 1)

    def _neediest(self) -> str:
        """The pool with the fewest workers for its part of them."""
        return min(self.order, key=lambda pool: self._sizes[pool] / self._pools.workers[pool])
