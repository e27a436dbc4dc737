"""Statistics of jobs: percentiles to one part in a hundred, rows that add up."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from saltern.mworker.job_queries.statistics import Durations, Statistics, most_used


@given(st.lists(st.floats(1, 1e8), min_size=1, max_size=300), st.sampled_from([50, 95, 100]))
def test_percentiles_are_right_to_one_part_in_a_hundred(taken: list[float], percent: int) -> None:
    durations = Durations()
    for ms in taken:
        durations.add(ms)
    exact = sorted(taken)[math.ceil(len(taken) * percent / 100) - 1]
    found = durations.percentile(percent)
    assert found is not None
    # Half a step, and half a millisecond for the rounding.
    assert abs(found - exact) <= 0.0101 * exact + 0.5


def test_nothing_has_no_percentile() -> None:
    assert Durations().percentile(50) is None


def test_rows_add_up() -> None:
    found = Statistics()
    found.job(["a.b"], {"web1": 10.0, "web2": None}, {"web2"}, {"db1"})
    found.job(["a.b", "c.d"], {"web1": 30.0}, set(), set())
    none = {"jobs": 1, "returns": 0, "failures": 0, "missing": 1, "p50_ms": None, "p95_ms": None}
    assert most_used(found.minions, 9) == {
        "web1": {"jobs": 2, "returns": 2, "failures": 0, "missing": 0, "p50_ms": 10, "p95_ms": 30},
        "db1": none,
        "web2": {**none, "returns": 1, "failures": 1, "missing": 0},
    }
    assert most_used(found.functions, 1) == {
        "a.b": {"jobs": 2, "returns": 3, "failures": 1, "missing": 1, "p50_ms": 10, "p95_ms": 30}
    }


def test_memory_is_bounded() -> None:
    durations = Durations()
    for ms in range(1, 200_000, 3):
        durations.add(ms)
    assert len(durations._steps) < 700
