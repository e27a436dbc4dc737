"""Checks the planner of chaos runs: a seed always gives the same plan, and each kind of fault and victim occurs."""

from __future__ import annotations

import itertools
from collections import defaultdict

import pytest

from tests.chaos.plan import Cast, Kind, make_plan

MINIONS = ("m1", "m2", "m3", "s1")
CAST = Cast(
    processes=("redis", "publisher", "reqserver", "mworker"),
    minions=MINIONS,
    stock=frozenset({"s1"}),
    links=("mworker~redis", "mworker~reqserver"),
    minion_links=tuple(f"{minion}~master" for minion in MINIONS),
    shelves={"a": ("m1", "m3"), "b": ("m2", "s1")},
)


def test_a_seed_is_a_plan() -> None:
    assert make_plan(7, 60, CAST) == make_plan(7, 60, CAST)
    assert str(make_plan(7, 60, CAST)) == str(make_plan(7, 60, CAST))
    assert make_plan(7, 60, CAST) != make_plan(8, 60, CAST)


@pytest.mark.parametrize("seed", range(20))
def test_everything_breaks_and_ends_in_time(seed: int) -> None:
    plan = make_plan(seed, 300, CAST)
    assert {fault.victim for fault in plan.faults} >= {*CAST.processes, *MINIONS, *CAST.links}
    assert {fault.kind for fault in plan.faults} == set(Kind)
    assert all(fault.at > 0 and fault.lasts > 0 and fault.end <= 300 for fault in plan.faults)
    assert 130 <= len(plan.faults) <= 240


@pytest.mark.parametrize("seed", range(20))
def test_a_victim_has_one_fault_at_a_time_and_others_have_theirs_meanwhile(seed: int) -> None:
    plan = make_plan(seed, 300, CAST)
    by_victim = defaultdict(list)
    for fault in sorted(plan.faults):
        by_victim[fault.victim].append(fault)
    for faults in by_victim.values():
        assert all(one.end < next_one.at for one, next_one in itertools.pairwise(faults))
    assert any(one.at < other.at < one.end for one in plan.faults for other in plan.faults)


def test_what_cannot_happen_to_a_victim_does_not() -> None:
    for fault in make_plan(1, 2000, CAST).faults:
        is_link = "~" in fault.victim
        assert is_link == (fault.kind in (Kind.HOLD, Kind.LOSE, Kind.CUT, Kind.SLOW)), fault
        if fault.kind is Kind.CRASH:
            assert fault.victim in {"m1", "m2", "m3"}


def test_jobs_name_whom_they_are_for() -> None:
    plan = make_plan(3, 600, CAST)
    assert len({ask.token for ask in plan.asks}) == len(plan.asks) > 200
    kinds = {ask.tgt_type for ask in plan.asks}
    assert kinds == {"glob", "list", "pcre", "grain"}
    for ask in plan.asks:
        assert ask.minions <= set(MINIONS)
        if ask.tgt == "*":
            assert ask.minions == set(MINIONS)
        elif ask.tgt_type == "grain":
            assert ask.minions == set(CAST.shelves[str(ask.tgt).partition(":")[2]])
        elif ask.tgt_type == "list":
            assert ask.minions == set(ask.tgt)
    told = sum(len(ask.minions) for ask in plan.asks)
    assert 600 * 4 * 0.5 < told < 600 * 4 * 1.5, "the rate of executions"


def test_the_first_moments_are_quiet() -> None:
    assert min(fault.at for fault in make_plan(1, 60, CAST, quiet=5.0).faults) >= 5.0
