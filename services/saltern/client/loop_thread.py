"""Runs coroutines for synchronous code, on an asyncio loop in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

_T = TypeVar("_T")

#: Seconds to wait for the end of the thread.
_END = 5.0


class LoopThread:
    """An asyncio loop in a daemon thread, started at the first use. Any thread may use it."""

    def __init__(self) -> None:
        # A finalizer may run in a thread that holds it.
        self._starting = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    @property
    def is_of_another_process(self) -> bool:
        """Return True in a process that was forked after the loop's thread had started: a fork copies no threads."""
        return self._loop is not None and self._pid != os.getpid()

    @property
    def is_running(self) -> bool:
        """Return whether this process has started the loop."""
        return self._loop is not None and self._pid == os.getpid()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine to its end and return its value. If the waiting thread is interrupted (Ctrl-C), the coroutine
        is cancelled.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, source: AsyncIterator[_T]) -> Iterator[_T]:
        """Yield the items of an asynchronous iterator; leaving the loop early ends it."""
        done = object()

        async def step() -> _T | object:
            return await anext(source, done)

        try:
            while (item := self.run(step())) is not done:
                yield item  # type: ignore[misc]  # only `done` is no item
        finally:
            close = getattr(source, "aclose", None)
            if close is not None and self._loop is not None and not self.is_of_another_process:
                # A step that was interrupted is cancelled, and closes the iterator itself.
                with contextlib.suppress(RuntimeError):
                    self.run(close())

    def end_soon(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a last coroutine and end the loop and its thread, without waiting. For finalizers: the garbage collector
        may call them in any thread, also in the loop's own, which must not wait for itself.
        """
        with self._starting:
            loop, self._loop, self._thread = self._loop, None, None
        if loop is None or self._pid != os.getpid():
            return

        async def end() -> None:
            try:
                await work()
            finally:
                loop.stop()

        kept: list[asyncio.Task[None]] = []
        loop.call_soon_threadsafe(lambda: kept.append(loop.create_task(end())))

    def stop(self) -> None:
        """End the loop and its thread. A later ``run`` starts a new one."""
        with self._starting:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None or self._pid != os.getpid():
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_END)
        if not thread.is_alive():
            loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None or self._pid != os.getpid():
                self._pid, self._loop = os.getpid(), asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="saltern-client", daemon=True)
                self._thread.start()
            return self._loop
