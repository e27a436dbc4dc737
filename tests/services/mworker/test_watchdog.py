"""When a worker is stuck, when it sends pulses, and when it is worn; a lock of Python's own that nobody gives back."""

from __future__ import annotations

import itertools
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from saltern.mworker import main as mworker
from saltern.mworker.watchdog import Watchdog, Wear, resident_bytes


def test_a_request_is_overdue_after_its_commands_deadline() -> None:
    one = Watchdog({"_pillar": 180, "_auth": 10}, 60.0)
    assert one.overdue(1e9) == ""
    one.begin()
    began = one.since
    assert began is not None
    assert one.overdue(began + 59.9) == ""
    assert one.overdue(began + 61.0).startswith("a request takes 61 s")
    one.cmd = "_pillar"
    assert one.overdue(began + 61.0) == ""
    assert one.overdue(began + 181.0) == "_pillar takes 181 s, more than its deadline (request_deadlines)"
    one.end()
    assert one.overdue(began + 1000.0) == ""
    one.begin()
    assert one.since is not None
    assert one.overdue(one.since + 59) == "", "the command before is forgotten"
    assert (one.count, one.longest()) == (2, 180)


def test_where_the_loop_is() -> None:
    one = Watchdog({}, 60.0)
    told: list[str] = []
    thread = threading.Thread(target=lambda: told.append(one.where()))
    thread.start()
    thread.join()
    assert "test_where_the_loop_is" in told[0]


def test_a_wait_for_a_request_ends_with_the_request_and_with_the_worker() -> None:
    one = Watchdog({}, 60.0)
    assert not one.wait_for_request(0.0)
    one.begin()
    assert one.wait_for_request(60.0), "a request is in hand"
    one.end()
    assert not one.wait_for_request(0.0), "the request is done"
    ended: list[bool] = []
    thread = threading.Thread(target=lambda: ended.append(one.wait_for_request(60.0)))
    thread.start()
    one.begin()
    thread.join(30)
    assert ended == [True]
    one.end()
    one.close()
    assert one.wait_for_request(60.0)
    assert one.wait_for_end(60.0)


class Pulses:
    """In place of the connections of a pulse thread: the times of pulses, and a queue with an item for each look at the keys."""

    def __init__(self) -> None:
        self.sent: queue.Queue[float] = queue.Queue()
        self.looks: queue.Queue[None] = queue.Queue()

    def follow(self) -> None:
        self.looks.put(None)

    def pulse(self) -> None:
        self.sent.put(time.monotonic())

    def close(self) -> None:
        pass


@pytest.fixture
def pulsing(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A running pulse thread that sends a pulse each 0.2 s: pulses, watchdog, the time of the last introduction."""
    monkeypatch.setattr(mworker, "PULSE_SECONDS", 0.2)
    monkeypatch.setattr(mworker, "_REST_SECONDS", 0.01)
    made = SimpleNamespace(pulses=Pulses(), watchdog=Watchdog({}, 60.0), introduced_at=0.0)
    role: Any = SimpleNamespace()
    thread = threading.Thread(
        target=lambda: mworker._beat(made.pulses, role, made.watchdog, lambda: made.introduced_at)
    )
    thread.start()
    yield made
    made.watchdog.close()
    thread.join(30)
    assert not thread.is_alive()


def test_an_idle_worker_sends_no_pulse_and_looks_for_keys(pulsing: SimpleNamespace) -> None:
    for _ in range(50):
        pulsing.pulses.looks.get(timeout=30)
    assert pulsing.pulses.sent.empty()


def test_a_busy_worker_sends_pulses_until_it_is_idle(pulsing: SimpleNamespace) -> None:
    pulsing.watchdog.begin()
    first, second = (pulsing.pulses.sent.get(timeout=30) for _ in range(2))
    assert second - first >= 0.2
    pulsing.watchdog.end()


def test_short_requests_send_a_pulse_each_second_not_each(pulsing: SimpleNamespace) -> None:
    began = time.monotonic()
    sent: list[float] = []
    while len(sent) < 3:
        pulsing.watchdog.begin()
        pulsing.watchdog.end()
        if not pulsing.pulses.sent.empty():
            sent.append(pulsing.pulses.sent.get())
        assert time.monotonic() - began < 30
    assert all(later - earlier >= 0.2 for earlier, later in itertools.pairwise(sent))


def test_a_pulse_comes_a_second_after_the_last_introduction(pulsing: SimpleNamespace) -> None:
    pulsing.introduced_at = introduced = time.monotonic() + 0.3
    pulsing.watchdog.begin()
    assert pulsing.pulses.sent.get(timeout=30) >= introduced + 0.2
    pulsing.watchdog.end()


@pytest.mark.parametrize(
    ("wear", "requests", "said"),
    [
        (Wear(0, 0), 10**9, ""),
        (Wear(10, 0), 9, ""),
        (Wear(10, 0), 10, "10 requests (worker_max_requests)"),
        (Wear(0, 1 << 50), 10, ""),
        (Wear(0, 1), 10, "bytes of memory (worker_max_rss)"),
    ],
)
def test_a_worn_worker_begins_anew(wear: Wear, requests: int, said: str) -> None:
    why = wear.out(requests, time.monotonic())
    assert why.endswith(said)
    assert bool(why) == bool(said)


def test_memory_is_what_is_in_use() -> None:
    before = resident_bytes()
    ballast = bytearray(b"x" * (32 << 20))
    assert resident_bytes() - before > 16 << 20
    del ballast


_LOCKED = """
import re, sys
from saltern.mworker import watchdog
watchdog._LOCKED_SECONDS = 0.5
watchdog.arm()
re.match("(a+)+$", "a" * 64 + "b")
"""


def test_a_worker_that_keeps_pythons_lock_ends_too() -> None:
    """No thread of Python runs while a regular expression explodes."""
    done = subprocess.run([sys.executable, "-c", _LOCKED], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "Timeout (0:00:00.500000)!" in done.stderr
    assert "re/__init__.py" in done.stderr
