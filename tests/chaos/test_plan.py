"""Checks the planner of chaos runs: a seed always gives the same plan, and each kind of fault and victim occurs."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, replace

import pytest

from tests.chaos.plan import FAILOVER_REST, Cast, Kind, make_plan

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


#: Redis with a replica, to which roles connect without a link that could be cut.
REPLICATED = replace(CAST, links=("mworker~reqserver",), replicated=("redis",))

#: Seconds that a failover takes.
FAILOVER = 3.0


@dataclass(frozen=True)
class RedisFaults:
    """A cast, and the faults of Redis in its plans."""

    name: str
    cast: Cast
    #: Kinds of the faults of Redis and of links to Redis.
    kinds: frozenset[Kind]
    #: Number of faults of Redis in 300 seconds that last long enough for a failover.
    failovers: range
    #: Seconds without a fault of Redis after each of them.
    rest: float


REDIS_FAULTS = (
    RedisFaults(
        "one server",
        CAST,
        frozenset({Kind.KILL, Kind.STOP, Kind.HOLD, Kind.LOSE, Kind.CUT, Kind.SLOW}),
        range(1, 30),
        1.0,
    ),
    RedisFaults("a replica", REPLICATED, frozenset({Kind.KILL, Kind.STOP}), range(5, 20), FAILOVER_REST),
)


@pytest.mark.parametrize("case", REDIS_FAULTS, ids=lambda case: case.name)
@pytest.mark.parametrize("seed", range(20))
def test_redis_has_the_faults_of_its_kind(case: RedisFaults, seed: int) -> None:
    faults = sorted(make_plan(seed, 300, case.cast).faults)
    assert {fault.kind for fault in faults if fault.victim.endswith("redis")} == case.kinds
    own = [fault for fault in faults if fault.victim == "redis"]
    assert len([fault for fault in own if fault.lasts >= FAILOVER]) in case.failovers
    assert all(later.at - one.end >= case.rest for one, later in itertools.pairwise(own))
