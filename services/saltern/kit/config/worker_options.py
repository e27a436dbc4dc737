"""Options of the way that a request takes: pools of workers, deadlines, bounds of what waits, recycling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from saltern.kit.config.option_fields import Values, option


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class WorkerOptions(Values):
    """A part of MasterOptions."""

    worker_threads: int = option(
        5, "taken as Salt's, without effect here: a worker is a process, start more of mworker"
    )
    worker_pools: dict[str, Any] = option(
        {}, "pool -> worker_count and commands; workers are spread over the pools as these say; empty: one pool"
    )
    worker_pools_enabled: bool = option(True, "worker_pools counts; else all workers are one pool")
    worker_pool: str = option(
        "", "pool of this worker (`saltern mworker --pool` says the same); empty: the one that lacks workers most"
    )
    request_deadline: int = option(
        60, "seconds that a request may wait for a worker, and be worked on where request_deadlines has no other"
    )
    request_deadlines: dict[str, int] = option(
        {}, "command -> seconds that it may be worked on, in place of those in docs/requests.md"
    )
    worker_silence: int = option(4, "seconds without a pulse after which a worker is given up and its request goes on")
    max_waiting_requests: int = option(20000, "requests that may wait for a worker; more are refused at once")
    max_waiting_bytes: int = option(256 * 1024 * 1024, "bytes of the requests that may wait for a worker")
    minion_requests_at_once: int = option(
        0, "requests of one minion that the workers of a pool hold at once; 0: all workers but one"
    )
    worker_max_requests: int = option(0, "a worker begins anew after so many requests, between two of them; 0: never")
    worker_max_rss: int = option(0, "a worker begins anew once it has so many bytes of memory; 0: never")
