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


def test_a_thread_starts_when_there_is_work_for_it(eventually: Callable[[Callable[[], Any]], Any]) -> None:
    go, begun = threading.Event(), []

    def worker() -> tuple[Callable[[str], None], Callable[[], None]]:
        name = threading.current_thread().name

        def work(piece: str) -> None:
            begun.append((name, piece))
            assert go.wait(30)

        return work, lambda: None

    pool = Pool(2, 10, worker)
    for piece in "abc":
        pool.submit([piece])
    # The third waits for one of the two threads.
    eventually(lambda: len(begun) == 2)
    assert sorted(name for name, _ in begun) == ["reaction-0", "reaction-1"]
    assert pool.waiting() == 1
    go.set()
    assert pool.close(30) == 0
    assert sorted(piece for _, piece in begun) == ["a", "b", "c"]


def test_a_thread_is_used_again(eventually: Callable[[Callable[[], Any]], Any]) -> None:
    done: list[str] = []

    def work(piece: str) -> None:
        done.append(threading.current_thread().name)

    pool: Pool[str] = Pool(5, 10, lambda: (work, lambda: None))
    for number in range(3):
        pool.submit([str(number)])
        eventually(lambda number=number: len(done) == number + 1 and not pool.busy)
    assert set(done) == {"reaction-0"}
    assert pool.close(30) == 0
