"""Threads behind a queue with an end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from saltern.reactor.pool import Pool


def test_pieces_of_one_event_are_done_in_their_order_and_what_finds_no_place_is_said(
    eventually: Callable[[Callable[[], Any]], Any],
) -> None:
    go, done, closed = threading.Event(), [], threading.Event()

    def worker() -> tuple[Callable[[str], None], Callable[[], None]]:
        def work(piece: str) -> None:
            assert go.wait(10)
            done.append(piece)

        return work, closed.set

    pool = Pool(1, 2, worker)
    assert pool.submit(["a", "b"])
    eventually(lambda: pool.waiting() == 0)
    assert [pool.submit([name]) for name in "cde"] == [True, True, False]
    go.set()
    assert pool.close(10) == 0
    assert done == ["a", "b", "c", "d"]
    assert closed.is_set()


def test_what_is_not_begun_is_counted_at_the_end(eventually: Callable[[Callable[[], Any]], Any]) -> None:
    go = threading.Event()
    pool: Pool[str] = Pool(1, 5, lambda: (lambda piece: go.wait(10) and None, lambda: None))
    pool.submit(["a"])
    eventually(lambda: pool.waiting() == 0)
    pool.submit(["b"])
    assert pool.close(0) == 1
    go.set()
