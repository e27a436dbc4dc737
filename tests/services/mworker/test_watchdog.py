"""When a worker is stuck, and when it is worn; a lock of Python's own that nobody gives back."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

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
