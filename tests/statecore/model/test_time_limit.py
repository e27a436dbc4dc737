"""Code that is not ours gets its time, and no more."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import pytest

from statecore.model.time_limit import TimeLimitExceeded, time_limit


def _spin() -> None:
    while True:
        pass


def _catch() -> None:
    while True:
        try:
            threading.Event().wait(5)
        except Exception:  # noqa: BLE001 - it is what careless code does
            pytest.fail("it was caught")


@pytest.mark.parametrize("work", [_spin, _catch])
def test_what_takes_too_long_is_ended(work: Callable[[], None]) -> None:
    with pytest.raises(TimeLimitExceeded), time_limit(0.02):
        work()


def test_what_is_done_in_time_is_left_alone() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(30):
        value = 1
    assert value == 1
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_errors_pass_and_end_it() -> None:
    with pytest.raises(KeyError), time_limit(30):
        raise KeyError
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_another_thread_has_no_limit() -> None:
    ran: list[int] = []

    def work() -> None:
        with time_limit(0.001):
            ran.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert ran == [1]
