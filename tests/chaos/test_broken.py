"""Promises that are broken on purpose in a real system: what is lost there, and what runs twice, is found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chaos import broken
from tests.chaos.accountant import Word
from tests.chaos.field import Field
from tests.chaos.plan import Ask, Plan, Way
from tests.chaos.run import chaos, muster

pytestmark = [pytest.mark.roles, pytest.mark.chaos]

HONEST, DOUBLE = "m1", "m2"

#: Jobs for both minions, in the first seconds; nothing breaks by chance.
JOBS = 6
PLAN = Plan(
    0,
    JOBS / 4,
    (),
    tuple(
        Ask(number / 4, f"job{number}", "*", "glob", frozenset({HONEST, DOUBLE}), 0.0, 0, Way.CONTROL)
        for number in range(JOBS)
    ),
)


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    """A worker that forgets, and a minion that runs twice."""
    made = Field(
        tmp_path_factory.mktemp("broken") / "lab",
        minions=(HONEST, DOUBLE),
        workers=1,
        broken={"mworker": broken.words("forgets"), DOUBLE: broken.words("doubles")},
    )
    yield made
    made.close()


def test_what_is_lost_and_what_runs_twice_is_found(arena: Field) -> None:
    said: list[str] = []
    # Every third result of what is counted is forgotten here, too.
    muster(arena, said.append)
    found, ended = chaos(arena, PLAN, 4.0, said.append)
    assert ended == []
    assert found.acknowledged == JOBS, said
    twice = [one for one in found.findings if one.word is Word.TWICE]
    assert sorted(one.token for one in twice) == [f"job{number}" for number in range(JOBS)]
    assert {one.minion for one in twice} == {DOUBLE}
    lost = [one for one in found.findings if one.word is Word.LOST]
    assert len(lost) == 2 * JOBS // broken.FORGOTTEN, found.findings
    assert all("run to its end, and no result" in one.why for one in lost), lost
    # Of what was not stored the master says no more than that it is waited for.
    assert len(found.findings) == len(twice) + len(lost), found.findings
    assert found.last_line() == f"acknowledged {JOBS}, lost {len(lost)}, run twice {JOBS}"
