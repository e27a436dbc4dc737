"""Runs roles that break promises on purpose (``broken``), and checks that lost and repeated jobs are found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chaos import broken
from tests.chaos.accountant import Word
from tests.chaos.field import Field
from tests.chaos.plan import Ask, Fault, Kind, Plan, Way
from tests.chaos.run import chaos, muster
from tests.roles.lab import STARTUP, until

pytestmark = [pytest.mark.roles, pytest.mark.chaos]

HONEST, DOUBLE = "m1", "m2"

#: Seconds until all is at rest: it is over as soon as nothing moves.
SETTLE = 90.0

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


#: Jobs of one minion, which cannot tell that it has them; then it is killed.
KILLED = Plan(
    0,
    3.0,
    (Fault(0.1, 2.4, f"{HONEST}~reqserver", Kind.LOSE), Fault(2.0, 0.5, HONEST, Kind.KILL)),
    tuple(
        Ask(number * 0.3, f"wiped{number}", HONEST, "glob", frozenset({HONEST}), 3.0, 0, Way.CONTROL)
        for number in range(1, 7)
    ),
)


class Patient(Field):
    """A Field that kills a minion only after it has begun a counted job, however slow the machine is."""

    def break_(self, victim: str, kind: Kind) -> None:
        """Begin a fault; before a kill wait until the minion's journal shows a begun job."""
        if kind is Kind.KILL:
            until(lambda: self.journal(victim).exists(), STARTUP, "a job has begun")
        super().break_(victim, kind)


@pytest.fixture
def wiped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    """A Field with one minion, which loses its journal when it is killed."""
    root = tmp_path_factory.mktemp("wiped") / "lab"
    made = Patient(root, minions=(HONEST,), workers=1, forgetful=frozenset({HONEST}))
    yield made
    made.close()


@pytest.fixture
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    """A Field with a worker that does not store every third result, and with one of two minions that runs jobs twice."""
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
    found, ended = chaos(arena, PLAN, SETTLE, said.append)
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


def test_a_minion_that_forgets_its_jobs_is_found(wiped: Field) -> None:
    said: list[str] = []
    muster(wiped, said.append)
    found, ended = chaos(wiped, KILLED, SETTLE, said.append)
    assert ended == []
    words = {one.word for one in found.broken}
    assert Word.TWICE in words, (said, found.findings)
    # Of what it had told of nobody knows any more; jobs of before are strays, as nobody counts those.
    assert words <= {Word.TWICE, Word.LOST, Word.FOREIGN, Word.STRAY}, (said, found.findings)
