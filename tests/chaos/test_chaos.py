"""Checks promises 1 to 3 of Saltern while all kinds of faults occur. ``make chaos`` does the same for longer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chaos.field import Field
from tests.chaos.plan import Kind, make_plan
from tests.chaos.run import chaos, muster
from tests.conftest import Oracle
from tests.interop.stock import need_namespace
from tests.roles.lab import ROLES

pytestmark = [pytest.mark.roles, pytest.mark.chaos, pytest.mark.oracle]

#: Breaks every role, Redis, the stock minion and ours in every way that there is, in this time.
SEED = 1436

#: Seconds of faults, and then at most until all is at rest.
SECONDS, SETTLE = 60.0, 120.0

MINIONS = tuple(f"m{number:02d}" for number in range(1, 13))


@pytest.fixture
def arena(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    """A Field of three workers, two publishers, reqservers and event publishers, one of each other role, twelve Saltern minions and
    one stock minion.
    """
    need_namespace()
    made = Field(tmp_path_factory.mktemp("chaos") / "lab", minions=MINIONS, stock=("s1",), oracle=oracle.venv)
    yield made
    made.close()


def test_no_job_is_lost_and_none_runs_twice(arena: Field) -> None:
    said: list[str] = []
    plan = make_plan(SEED, SECONDS, arena.cast)
    victims = {fault.victim.rstrip("0123456789") for fault in plan.faults}
    assert victims >= {"redis", *ROLES, "m", "s"}, "another seed is needed: `make chaos` prints what one does"
    assert {fault.kind for fault in plan.faults} == set(Kind)
    muster(arena, said.append)
    found, ended = chaos(arena, plan, SETTLE, said.append)
    told = "\n".join([*said, str(found), *map(str, found.findings), found.last_line()])
    print(told)  # noqa: T201 - for the report of a failed test, and for pytest -s
    assert found.broken == [], told
    assert ended == [], told
    assert arena.tracebacks() == [], told
    # Most of what was asked for was answered, or the run shows little.
    assert found.acknowledged >= len(plan.asks) / 2, told
    assert found.executed >= found.owed / 2, told
