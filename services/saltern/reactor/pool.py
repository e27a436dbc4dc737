"""A thread pool with a bounded queue that sends reactions, so that a slow master does not block the reading of events."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

Work = TypeVar("Work")

#: (function that runs one work item, function that cleans up at the end of the thread); each thread makes its own pair.
Worker: TypeAlias = tuple[Callable[[Work], None], Callable[[], None]]

#: Seconds between two checks of an idle thread whether the pool has ended.
_BLOCK_SECONDS = 0.2


class Pool(Generic[Work]):
    """Runs lists of work items, such as the reactions to an event, on several threads.

    One thread runs the items of a list in their order.
    """

    def __init__(self, threads: int, most_waiting: int, worker: Callable[[], Worker[Work]]) -> None:
        """Start ``threads`` threads. ``most_waiting``: number of lists of work items that may wait.

        ``worker`` is called in each thread and returns two functions: one runs a work item, one cleans up at the end.
        """
        self._queue: queue.Queue[Sequence[Work]] = queue.Queue(max(1, most_waiting))
        self._ended = threading.Event()
        self._worker = worker
        self._threads = [
            threading.Thread(target=self._work, name=f"reaction-{number}", daemon=True)
            for number in range(max(1, threads))
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Sequence[Work]) -> bool:
        """Queue a list of work items; return False if the queue is full."""
        try:
            self._queue.put_nowait(work)
        except queue.Full:
            return False
        return True

    def waiting(self) -> int:
        """Return the number of lists of work items that no thread has started."""
        return self._queue.qsize()

    def close(self, seconds: float) -> int:
        """Wait up to ``seconds`` for queued work and end the threads. Return the number of lists that were not started."""
        deadline = time.monotonic() + seconds
        while self._queue.qsize() and time.monotonic() < deadline:
            time.sleep(0.01)
        self._ended.set()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()) + _BLOCK_SECONDS)
        return self._queue.qsize()

    def _work(self) -> None:
        perform, close = self._worker()
        try:
            while not self._ended.is_set():
                try:
                    pieces = self._queue.get(timeout=_BLOCK_SECONDS)
                except queue.Empty:
                    continue
                for piece in pieces:
                    perform(piece)
        finally:
            close()
