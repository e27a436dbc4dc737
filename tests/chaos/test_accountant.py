"""Checks that the accountant finds each broken promise in made-up evidence, and nothing in evidence without a fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from tests.chaos.accountant import (
    AFTERMATH,
    EXPLAINED,
    PROMPT,
    RETURNED,
    Asked,
    Evidence,
    Execution,
    Made,
    Result,
    Word,
    account,
)
from tests.chaos.plan import Kind

OURS, STOCK = "m1", "s1"
MINIONS = frozenset({OURS, "m2", STOCK})

#: When the job was asked for, and was answered, and worked a second.
ASKED = Asked("job1", frozenset({OURS}), 1.0, 100.0, "jid1", 100.2)
RUN = Execution("n1", 100.5, 101.5)
OTHER_RUN = Execution("n2", 103.0, 104.0)
STARTED = Execution("n1", 100.5)
GOOD = Result({"nonce": "n1"}, True, 101.7)
LATE = Result({"nonce": "n1"}, True, 101.2 + PROMPT + 0.1)
TOLD = Result("it was killed", False, 105.0)


UNTOLD = replace(ASKED, jid=None, answered=0.0)
FOR_STOCK = replace(ASKED, minions=frozenset({STOCK}))
WAITING = replace(FOR_STOCK, when_back=True)


def made(victim: str, kind: Kind = Kind.KILL, began: float = 101.0, ended: float = 102.0) -> Made:
    return Made(victim, kind, began, ended)


BEFORE = made(STOCK, began=98, ended=99)
MUCH_LATER = Execution("n2", 101.7 + AFTERMATH + 1, 130.0)


@dataclass(frozen=True)
class Case:
    """Made-up evidence of one job on one minion, and the one finding that it must cause (None: no finding)."""

    name: str
    word: Word | None
    asked: Asked = ASKED
    runs: Sequence[Execution] = (RUN,)
    result: Result | None = GOOD
    faults: Sequence[Made] = field(default_factory=tuple)
    #: By minion; None: the job was not looked up.
    lives: Mapping[str, str] | None = None


CASES = (
    Case("all is well", None),
    Case("all is well while things break", None, faults=(made("redis"), made(OURS))),
    # Lost.
    Case("never begun", Word.LOST, runs=(), result=None),
    Case("never begun, whatever broke", Word.LOST, runs=(), result=None, faults=(made(OURS), made("publisher"))),
    Case("run, and its result is not there", Word.LOST, result=None, faults=(made("redis"),)),
    Case("killed in the middle, and no word of it", Word.LOST, runs=(STARTED,), result=None, faults=(made(OURS),)),
    # Twice.
    Case("run twice", Word.TWICE, runs=(RUN, OTHER_RUN)),
    Case("run twice, whatever broke", Word.TWICE, runs=(RUN, OTHER_RUN), faults=(made(OURS),)),
    Case("run twice by halves", Word.TWICE, runs=(STARTED, OTHER_RUN), result=Result({"nonce": "n2"}, True, 104.5)),
    Case("no answer, and run twice", Word.TWICE, asked=UNTOLD, runs=(RUN, OTHER_RUN), result=None),
    # No answer: it does not count.
    Case("no answer, and never run", None, asked=UNTOLD, runs=(), result=None),
    Case("no answer, and run", None, asked=UNTOLD, result=None),
    # Results that are none.
    Case("a result of no execution", Word.FOREIGN, runs=()),
    Case("a result of another execution", Word.FOREIGN, result=Result({"nonce": "n9"}, True, 101.7)),
    Case("an empty result", Word.FOREIGN, result=Result(None, True, 101.7)),
    # Failures.
    Case("killed in the middle, and told", Word.INTERRUPTED, runs=(STARTED,), result=TOLD, faults=(made(OURS),)),
    Case("killed before it began, and told", Word.INTERRUPTED, runs=(), result=TOLD, faults=(made(OURS),)),
    Case("killed by halves, and told", Word.INTERRUPTED, result=TOLD, faults=(made(OURS, Kind.CRASH),)),
    Case("failed with nothing broken", Word.FAILED, runs=(STARTED,), result=TOLD),
    Case("failed when another was killed", Word.FAILED, runs=(STARTED,), result=TOLD, faults=(made("m2"),)),
    Case("failed when it only stood still", Word.FAILED, result=TOLD, faults=(made(OURS, Kind.STOP),)),
    Case("failed when Redis was killed", Word.FAILED, result=TOLD, faults=(made("redis"),)),
    # Late.
    Case("late with nothing broken", Word.LATE, result=LATE),
    Case("late when another minion was away", Word.LATE, result=LATE, faults=(made("m2"), made("m2~master"))),
    Case("late when the reactor was away", Word.LATE, result=LATE, faults=(made("reactor"),)),
    Case("late when no events went out", Word.LATE, result=LATE, faults=(made("mworker2~eventpublisher", Kind.HOLD),)),
    Case("late long after a fault", Word.LATE, result=LATE, faults=(made("redis", began=1, ended=99.9 - AFTERMATH),)),
    Case("late before a fault", Word.LATE, result=LATE, faults=(made("redis", began=150, ended=160),)),
    Case("late when a role was away", Word.LATE_EXPLAINED, result=LATE, faults=(made("reqserver"),)),
    Case("late when it was away itself", Word.LATE_EXPLAINED, result=LATE, faults=(made(OURS, Kind.STOP),)),
    Case("late when its link was cut", Word.LATE_EXPLAINED, result=LATE, faults=(made(f"{OURS}~master", Kind.CUT),)),
    Case("late soon after a fault", Word.LATE_EXPLAINED, result=LATE, faults=(made("redis", began=80, ended=90),)),
    # What the master says of it.
    Case("returned, and its life says so", None, lives={OURS: RETURNED}),
    Case("returned, and its life does not say so", Word.LIFE, lives={OURS: "started"}),
    Case("published for nobody", Word.TARGET, lives={}),
    Case("published for another minion, too", Word.TARGET, lives={OURS: RETURNED, "m2": "expected"}),
    # Stock minions.
    Case("a stock minion, all well", None, asked=FOR_STOCK),
    Case("stock: not heard, with nothing broken", Word.LOST, asked=FOR_STOCK, runs=(), result=None),
    Case(
        "stock: not heard when its publisher was away",
        Word.STOCK_MISSED,
        asked=FOR_STOCK,
        runs=(),
        result=None,
        faults=(made("publisher", began=99, ended=101),),
    ),
    Case(
        "stock: not heard, and another minion was away",
        Word.LOST,
        asked=FOR_STOCK,
        runs=(),
        result=None,
        faults=(made("m2", began=99, ended=101),),
    ),
    Case(
        "stock: killed in the middle",
        Word.STOCK_MISSED,
        asked=FOR_STOCK,
        runs=(STARTED,),
        result=None,
        faults=(made(STOCK),),
    ),
    Case(
        "stock: a job that waits for it must be run",
        Word.LOST,
        asked=WAITING,
        runs=(),
        result=None,
        faults=(made(STOCK, began=99, ended=101),),
    ),
    Case(
        "stock: a job that waits for it may run again, as it forgets at its end",
        Word.STOCK_AGAIN,
        asked=WAITING,
        runs=(RUN, OTHER_RUN),
        faults=(made(STOCK),),
    ),
    Case("stock: not while it lives", Word.TWICE, asked=WAITING, runs=(RUN, OTHER_RUN), faults=(made("publisher"),)),
    Case("stock: not if it was killed before", Word.TWICE, asked=WAITING, runs=(RUN, OTHER_RUN), faults=(BEFORE,)),
    Case("stock: not what it has returned", Word.TWICE, asked=WAITING, runs=(RUN, MUCH_LATER), faults=(made(STOCK),)),
    Case(
        "stock: not the second time",
        Word.TWICE,
        asked=WAITING,
        runs=(RUN, OTHER_RUN, replace(OTHER_RUN, nonce="n3", began=105)),
        faults=(made(STOCK),),
    ),
    Case("stock: other jobs may not", Word.TWICE, asked=FOR_STOCK, runs=(RUN, OTHER_RUN), faults=(made(STOCK),)),
    Case(
        "stock: but when a publisher was away, too",
        Word.STOCK_AGAIN,
        asked=FOR_STOCK,
        runs=(RUN, OTHER_RUN),
        faults=(made(STOCK), made("publisher2", began=95, ended=99)),
    ),
)


def evidence(case: Case, **more: Mapping[tuple[str, str], Sequence[Execution]]) -> Evidence:
    (minion,) = case.asked.minions
    results = {} if case.result is None else {("jid1", minion): case.result}
    runs = {(case.asked.token, minion): case.runs} if case.runs else {}
    return Evidence(
        (case.asked,),
        {**runs, **more.get("strays", {})},
        results,
        case.faults,
        MINIONS,
        frozenset({STOCK}),
        {} if case.lives is None else {"jid1": case.lives},
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_there_is_one_word_for_it(case: Case) -> None:
    found = account(evidence(case))
    assert [one.word for one in found.findings] == ([case.word] if case.word else []), found.findings
    assert bool(found.broken) == (case.word is not None and case.word not in EXPLAINED)
    assert found.acknowledged == (case.asked.jid is not None)


def test_every_word_is_said_of_something() -> None:
    assert {case.word for case in CASES if case.word} | {Word.STRAY} == set(Word)


@pytest.mark.parametrize("stray", [("job1", "m2"), ("job9", OURS)], ids=["another minion", "a job of nobody"])
def test_what_nobody_asked_for_is_found(stray: tuple[str, str]) -> None:
    found = account(evidence(CASES[0], strays={stray: (OTHER_RUN,)}))
    assert [(one.word, one.token, one.minion) for one in found.broken] == [(Word.STRAY, *stray)]


def test_a_result_that_is_gone_is_found_by_the_life_too() -> None:
    found = account(evidence(Case("", None, result=None, lives={OURS: RETURNED})))
    assert [one.word for one in found.findings] == [Word.LOST, Word.LIFE]


def test_the_last_line_counts_pairs_of_job_and_minion() -> None:
    everybody = replace(ASKED, minions=frozenset({OURS, "m2"}))
    runs = {("job1", OURS): (RUN, OTHER_RUN), ("job1", "m2"): ()}
    found = account(Evidence((everybody,), runs, {("jid1", OURS): GOOD}, (), MINIONS))
    assert found.last_line() == "acknowledged 1, lost 1, run twice 1"
    assert (found.owed, found.executed) == (2, 2)
    assert "FOUND lost: job1 on m2, JID jid1: never begun, and no result" in str(found)
