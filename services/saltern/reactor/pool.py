"""A thread pool with a bounded queue that sends reactions, so that a slow master does not block the reading of events."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

Work = TypeVar("Work")

#: (function that runs one work item, function that cleans up at the end of the thread); each thread makes its own pair.
Worker: TypeAlias = tuple[Callable[[Work], None], Callable[[], None]]

#: Seconds that ``close`` gives the threads to run their clean-up, beside the caller's.
_GRACE = 0.2


class Pool(Generic[Work]):
    """Runs lists of work items, such as the reactions to an event, on several threads.

    One thread runs the items of a list in their order.
    """

    def __init__(self, threads: int, most_waiting: int, worker: Callable[[], Worker[Work]]) -> None:
        """Prepare a pool of at most ``threads`` threads; a thread starts when there is work for it, because each keeps a
        connection. ``most_waiting``: number of lists of work items that may wait.

        ``worker`` is called in each thread and returns two functions: one runs a work item, one cleans up at the end.
        """
        self._most_waiting = max(1, most_waiting)
        self._lists: deque[Sequence[Work]] = deque()
        self._ended = False
        # Guards the two; notified when either changes. An idle thread sleeps until then.
        self._changed = threading.Condition()
        self._worker = worker
        self._most_threads = max(1, threads)
        self._threads: list[threading.Thread] = []
        #: Number of threads that work on a list.
        self._busy = 0

    def submit(self, work: Sequence[Work]) -> bool:
        """Queue a list of work items; return False if the queue is full."""
        with self._changed:
            if len(self._lists) >= self._most_waiting:
                return False
            self._lists.append(work)
            if self._busy + len(self._lists) > len(self._threads) < self._most_threads:
                name = f"reaction-{len(self._threads)}"
                self._threads.append(threading.Thread(target=self._work, name=name, daemon=True))
                self._threads[-1].start()
            self._changed.notify()
        return True

    def waiting(self) -> int:
        """Return the number of lists of work items that no thread has started."""
        return len(self._lists)

    @property
    def busy(self) -> int:
        """Number of threads that work on a list."""
        return self._busy

    def close(self, seconds: float) -> int:
        """Wait up to ``seconds`` for queued work and end the threads. Return the number of lists that were not started."""
        deadline = time.monotonic() + seconds
        with self._changed:
            self._changed.wait_for(lambda: not self._lists, seconds)
            self._ended = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()) + _GRACE)
        return len(self._lists)

    def _work(self) -> None:
        perform, close = self._worker()
        try:
            while (pieces := self._next()) is not None:
                try:
                    for piece in pieces:
                        perform(piece)
                finally:
                    with self._changed:
                        self._busy -= 1
        finally:
            close()

    def _next(self) -> Sequence[Work] | None:
        """Wait until the queue has a list of work items, remove it and return it; None if the pool was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._lists or self._ended)
            if self._ended:
                return None
            pieces = self._lists.popleft()
            self._busy += 1
            if not self._lists:
                # ``close`` waits for an empty queue.
                self._changed.notify_all()
            return pieces
