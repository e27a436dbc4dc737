"""When a minion asks for what it missed: once for all reasons, at a moment of its own, from where it stopped."""

from __future__ import annotations

from typing import Any

import pytest

from services.minion.missed import Missed, after

JID = "20260101000000000001"
JOB = {"tgt": "*", "jid": JID, "fun": "test.ping", "arg": []}


@pytest.fixture
def missed() -> Missed:
    return Missed(3.0, draw=lambda low, high: high)


def test_nobody_asks_without_a_reason(missed: Missed) -> None:
    assert not missed.wants(1e9)


def test_many_reasons_are_one_question(missed: Missed) -> None:
    for now in (10.0, 10.5, 12.0):
        missed.deaf(now)
    assert [missed.wants(now) for now in (13.2, 13.4, 13.5, 99.0)] == [False, True, False, False]


def test_a_reason_after_the_question_is_another_one_after_its_answer(missed: Missed) -> None:
    missed.deaf(0.0)
    assert missed.wants(4.0)
    missed.deaf(5.0)
    assert not missed.wants(9.0), "one at a time"
    assert missed.answered({"jobs": [], "next": 0}, 9.0) == []
    assert missed.wants(9.0)


def test_a_fleet_spreads_its_questions() -> None:
    fleet = [Missed(10.0) for _ in range(1000)]
    for one in fleet:
        one.deaf(0.0)
    asked = [sum(one.wants(float(second)) for one in fleet) for second in range(1, 12)]
    assert sum(asked) == 1000
    assert max(asked) < 200


@pytest.mark.parametrize(
    ("latest", "milliseconds"),
    [("", 0), ("nothing", 0), ("19700101000030000000", 0), (JID, 1_767_225_600_000 - 60_000)],
)
def test_it_asks_from_a_little_before_the_last_job(latest: str, milliseconds: int) -> None:
    assert after(latest) == milliseconds
    assert Missed(0).question(latest) == {"cmd": "_missed", "after": milliseconds}


@pytest.mark.parametrize(
    ("answer", "jobs"),
    [
        ({"jobs": [JOB], "next": 0}, [JOB]),
        ({"jobs": [JOB, {"jid": JID}, "x", {**JOB, "jid": "../x"}, None]}, [JOB]),
        ({"jobs": {"a": 1}}, []),
        ({}, []),
        ("", []),
        (None, []),
        (False, []),
    ],
)
def test_whatever_the_master_answers(missed: Missed, answer: Any, jobs: list[Any]) -> None:
    missed.deaf(0.0)
    assert missed.wants(9.0)
    assert missed.answered(answer, 9.0) == jobs
    assert not missed.wants(99.0)


def test_the_rest_of_a_long_answer_is_asked_for_at_once(missed: Missed) -> None:
    missed.deaf(0.0)
    assert missed.wants(9.0)
    assert missed.question("")["after"] == 0
    missed.answered({"jobs": [JOB], "next": 500}, 9.0)
    assert missed.wants(9.0)
    assert missed.question(JID)["after"] == 500
    missed.answered({"jobs": [JOB], "next": 500}, 9.0)
    assert not missed.wants(99.0), "an answer that leads nowhere is the last one"
    missed.deaf(100.0)
    assert missed.wants(199.0)
    assert missed.question("")["after"] == 0
