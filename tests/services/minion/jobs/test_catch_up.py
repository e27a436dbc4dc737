"""When a minion asks for what it missed: once for all reasons, at a moment of its own, from where it stopped."""

from __future__ import annotations

from typing import Any

import pytest

from saltern.minion.jobs.catch_up import CatchUp

JID = "20260101000000000001"
JOB = {"tgt": "*", "jid": JID, "fun": "test.ping", "arg": []}


@pytest.fixture
def missed() -> CatchUp:
    return CatchUp(3.0, draw=lambda low, high: high)


def test_nobody_asks_without_a_reason(missed: CatchUp) -> None:
    assert not missed.is_due(1e9)


def test_many_reasons_are_one_question(missed: CatchUp) -> None:
    for now in (10.0, 10.5, 12.0):
        missed.may_have_missed(now)
    assert [missed.is_due(now) for now in (13.2, 13.4, 13.5, 99.0)] == [False, True, False, False]


def test_a_reason_after_the_question_is_another_one_after_its_answer(missed: CatchUp) -> None:
    missed.may_have_missed(0.0)
    assert missed.is_due(4.0)
    missed.may_have_missed(5.0)
    assert not missed.is_due(9.0), "one at a time"
    assert missed.take_answer({"jobs": [], "next": 0}, 9.0) == []
    assert missed.is_due(9.0)


def test_a_fleet_spreads_its_questions() -> None:
    fleet = [CatchUp(10.0) for _ in range(1000)]
    for one in fleet:
        one.may_have_missed(0.0)
    asked = [sum(one.is_due(float(second)) for one in fleet) for second in range(1, 12)]
    assert sum(asked) == 1000
    assert max(asked) < 200


@pytest.mark.parametrize(
    ("answer", "jobs"),
    [
        ({"jobs": [JOB], "next": 0}, [JOB]),
        ({"jobs": [JOB, {"jid": JID}, "x", {**JOB, "jid": "../x"}, {**JOB, "fun": None}, None]}, [JOB]),
        ({"jobs": {"a": 1}}, []),
        ({}, []),
        ("", []),
        (None, []),
        (False, []),
    ],
)
def test_whatever_the_master_answers(missed: CatchUp, answer: Any, jobs: list[Any]) -> None:
    missed.may_have_missed(0.0)
    assert missed.is_due(9.0)
    assert missed.take_answer(answer, 9.0) == jobs
    assert not missed.is_due(99.0)


def asked(missed: CatchUp, answer: dict[str, Any]) -> int:
    """From when it asks, and is answered so."""
    missed.may_have_missed(0.0)
    assert missed.is_due(9.0)
    question = missed.request()
    missed.take_answer(answer, 9.0)
    assert set(question) == {"cmd", "after"}
    return int(question["after"])


def test_the_rest_of_a_long_answer_is_asked_for_at_once(missed: CatchUp) -> None:
    hour = 3_600_000
    assert asked(missed, {"jobs": [JOB], "next": 500, "now": hour}) == 0
    assert missed.is_due(9.0), "without a pause"
    assert missed.request()["after"] == 500
    missed.take_answer({"jobs": [JOB], "next": 900, "now": 2 * hour}, 9.0)
    assert missed.known_until == 0, "until all is here"
    assert missed.is_due(9.0)
    missed.take_answer({"jobs": [JOB], "next": 0, "now": 3 * hour}, 9.0)
    assert not missed.is_due(99.0)
    assert missed.known_until == hour - 60_000, "when the first part was given"


def test_an_answer_that_leads_nowhere_is_the_last_one(missed: CatchUp) -> None:
    assert asked(missed, {"next": 500}) == 0
    assert missed.is_due(9.0)
    missed.take_answer({"next": 500}, 9.0)
    assert not missed.is_due(99.0)


def test_what_an_answer_had_is_not_asked_for_again(missed: CatchUp) -> None:
    assert asked(missed, {"jobs": [], "next": 0, "now": 1_000_000}) == 0
    assert asked(missed, {"jobs": [], "now": "x"}) == 940_000
    assert asked(missed, {"jobs": [], "now": 65_000}) == 940_000, "a clock that was set back"
    assert asked(missed, {"jobs": []}) == 5_000
    assert CatchUp(0, known_until=7).request()["after"] == 7, "after a restart"


def test_it_asks_now_and_then_without_a_reason() -> None:
    missed = CatchUp(3.0, every=100.0, draw=lambda low, high: high)
    assert not missed.is_due(1e9), "it has not been connected yet"
    missed.may_have_missed(0.0)
    asked = []
    for second in range(1, 500):
        if missed.is_due(float(second)):
            asked.append(second)
            missed.take_answer({"jobs": []}, float(second))
    assert asked == [4, 104, 204, 304, 404]
