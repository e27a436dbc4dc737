"""The answer of a master that is full."""

from __future__ import annotations

import math

import pytest

from saltwire.busy import Busy, busy_answer, check_busy
from saltwire.pack import packb


@pytest.mark.parametrize(
    ("said", "waits"), [(5, 5.0), (0.5, 0.5), (0, 0.0), (60, 60.0), (1e9, 60.0), (-1, 60.0), (math.nan, 60.0)]
)
def test_it_makes_a_minion_wait_for_a_minute_at_most(said: float, waits: float) -> None:
    with pytest.raises(Busy) as caught:
        check_busy(busy_answer(said))
    assert caught.value.retry_after == waits
    assert str(caught.value) == f"the master is busy; repeat the request after {waits:g} s"


@pytest.mark.parametrize(
    "answer",
    [
        packb("bad load"),
        packb({}),
        packb({"retry_after": "5"}),
        packb({"retry_after": None}),
        packb([5]),
        b"",
        b"\xc1",
        # As what is encrypted looks.
        bytes(range(0xC4, 0x100)),
        packb({"retry_after": 5, "x": "y" * 100}),
    ],
)
def test_other_answers_are_somebody_elses(answer: bytes) -> None:
    check_busy(answer)
