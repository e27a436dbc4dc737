"""The wait for returns: events, answers and the clock in, instructions out."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltern.kit.jobs.wait import AskProbe, AskReturns, FindJob, Finish, Instruction, JobWait, Show, Silent

JID = "20260101000000000000"
PROBE = "20260101000005000000"


def waiting(*minions: str, missing: tuple[str, ...] = ()) -> JobWait:
    return JobWait(JID, minions, missing, timeout=5, gather_timeout=10, now=100)


def ret(minion: str, jid: str = JID, value: Any = True) -> tuple[str, dict[str, Any]]:
    return f"salt/job/{jid}/ret/{minion}", {"return": value, "id": minion, "jid": jid, "retcode": 0}


def test_returns_are_shown_as_they_come_and_the_last_one_ends_it() -> None:
    wait = waiting("a", "b")
    assert wait.event(*ret("b"), 101) == [Show("b", ret("b")[1])]
    assert wait.event(*ret("a"), 102) == [Show("a", ret("a")[1]), Finish()]


def test_ids_with_slashes_in_other_tags_are_not_returns() -> None:
    wait = waiting("a")
    for tag in (
        f"salt/job/{JID}/new",
        f"salt/job/{JID}/prog/a/1",
        "salt/job/1/ret/a",
        "salt/auth",
        f"salt/run/{JID}/ret",
    ):
        assert wait.event(tag, {"return": 1}, 101) == []
    assert wait.event(ret("a")[0], {"no": "return"}, 101) == []
    assert wait.pending == {"a"}


def test_a_second_return_of_one_minion_is_not_shown() -> None:
    wait = waiting("a", "b")
    assert wait.event(*ret("a"), 101)
    assert wait.event(*ret("a", value="again"), 101) == []


def test_a_minion_that_nobody_expected_is_shown_too() -> None:
    assert waiting("a").event(*ret("x"), 101) == [Show("x", ret("x")[1])]


def test_missing_minions_are_silent_at_the_end() -> None:
    wait = waiting("a", missing=("ghost", "a"))
    assert wait.event(*ret("a"), 101) == [Show("a", ret("a")[1]), Silent("ghost"), Finish()]


def test_nothing_happens_before_the_deadline() -> None:
    wait = waiting("a")
    assert wait.tick(104.9) == []
    assert wait.deadline == 105


def test_a_dropped_return_is_found_in_the_job_cache() -> None:
    wait = waiting("a")
    assert wait.tick(105) == [AskReturns()]
    assert wait.returns({"a": {"return": 1}}, 105) == [Show("a", {"return": 1}), Finish()]


def test_a_return_too_large_for_the_bus_is_taken_from_the_job_cache() -> None:
    wait = waiting("a", "b")
    assert wait.event(*ret("a", value="VALUE_TRIMMED"), 101) == [AskReturns(("a",))]
    assert wait.returns({"a": {"return": "large"}}, 101) == [Show("a", {"return": "large"})]
    assert wait.pending == {"b"}


def test_a_look_before_the_deadline_shows_and_asks_nobody() -> None:
    wait = waiting("a", "b")
    assert wait.returns({"a": {"return": 1}}, 102) == [Show("a", {"return": 1})]
    assert wait.returns({"a": {"return": 1}}, 103) == []
    assert wait.deadline == 105


def test_silent_minions_are_asked_and_given_up() -> None:
    wait = waiting("a", "b", "c")
    wait.event(*ret("b"), 101)
    assert wait.tick(105) == [AskReturns()]
    assert wait.returns({"b": {"return": True}}, 105) == [FindJob(("a", "c"))]
    wait.probed(PROBE)
    assert wait.deadline == 115
    assert wait.event(*ret("a", PROBE, {}), 106) == []
    assert wait.tick(115) == [AskReturns()]
    assert wait.returns({}, 115) == [AskProbe(PROBE)]
    assert wait.probe_returns({}, 115) == [Silent("a"), Silent("c"), Finish()]
    assert wait.event(*ret("a"), 116) == []


def test_who_still_works_gets_more_time_and_is_asked_again() -> None:
    wait = waiting("a")
    wait.tick(105)
    wait.returns({}, 105)
    wait.probed(PROBE)
    assert wait.event(*ret("a", PROBE, {"jid": JID, "pid": 7}), 106) == []
    assert wait.tick(115) == [AskReturns()]
    assert wait.returns({}, 115) == [FindJob(("a",))]
    wait.probed("2")
    assert wait.event(*ret("a", "2", {"pid": 7}), 116) == []
    assert wait.event(*ret("a"), 120) == [Show("a", ret("a")[1]), Finish()]


@pytest.mark.parametrize(
    "answer", [{"return": {}}, {"return": "Traceback..."}, {"return": {"pid": 1}, "retcode": 1}, {"return": []}]
)
def test_answers_that_mean_that_the_job_does_not_run(answer: dict[str, Any]) -> None:
    wait = waiting("a")
    wait.tick(105)
    wait.returns({}, 105)
    wait.probed(PROBE)
    wait.event(f"salt/job/{PROBE}/ret/a", answer, 106)
    wait.tick(115)
    assert wait.returns({}, 115) == [AskProbe(PROBE)]
    assert wait.probe_returns({"a": answer}, 115) == [Silent("a"), Finish()]


def test_an_answer_that_the_bus_dropped_gives_more_time() -> None:
    wait = waiting("a", "b")
    wait.tick(105)
    wait.returns({}, 105)
    wait.probed(PROBE)
    assert wait.returns({"b": {"return": 1}}, 115) == [Show("b", {"return": 1}), AskProbe(PROBE)]
    # Of who has returned it says nothing any more.
    assert wait.probe_returns({"a": {"return": {"pid": 7}}, "b": {"return": {"pid": 7}}}, 115) == [FindJob(("a",))]
    assert wait.deadline == 125
    wait.probed("2")
    assert wait.returns({}, 125) == [AskProbe("2")]
    assert wait.probe_returns({}, 125) == [Silent("a"), Finish()]


def test_patience_longer_than_the_gather_time_is_kept() -> None:
    wait = JobWait(JID, ["a"], timeout=30, gather_timeout=10, now=0)
    assert wait.tick(30) == [AskReturns()]
    assert wait.returns({}, 30) == [FindJob(("a",))]
    wait.probed(PROBE)
    wait.event(*ret("a", PROBE, {"pid": 7}), 39)
    assert wait.tick(40) == [AskReturns()]
    assert wait.returns({}, 40) == [FindJob(("a",))]
    wait.probed("2")
    wait.tick(50)
    assert wait.returns({}, 50) == [AskProbe("2")]
    assert wait.probe_returns({}, 50) == []
    assert wait.deadline == 69
    assert wait.tick(69) == [AskReturns()]
    assert wait.returns({}, 69) == [AskProbe("2")]
    assert wait.probe_returns({}, 69) == [Silent("a"), Finish()]


def test_nobody_could_be_asked() -> None:
    wait = waiting("a")
    wait.tick(105)
    wait.returns({}, 105)
    wait.probed(None)
    assert wait.event("salt/job//ret/a", {"return": {"pid": 1}}, 106) == []
    wait.tick(115)
    assert wait.returns({}, 115) == [Silent("a"), Finish()]


_MINIONS = ["a", "b", "c", "d"]
_happening = st.one_of(
    st.tuples(st.just("return"), st.sampled_from([*_MINIONS, "x"])),
    st.tuples(st.just("running"), st.sampled_from(_MINIONS)),
    st.tuples(st.just("running, not heard"), st.sampled_from(_MINIONS)),
    st.tuples(st.just("gone"), st.sampled_from(_MINIONS)),
    st.tuples(st.just("dropped"), st.sampled_from(_MINIONS)),
    st.tuples(st.just("time"), st.sampled_from(_MINIONS)),
)


@given(st.lists(_happening, max_size=60), st.sets(st.sampled_from(_MINIONS), min_size=1))
def test_every_minion_is_reported_once_and_the_wait_ends(happenings: list[tuple[str, str]], minions: set[str]) -> None:
    wait = JobWait(JID, minions, ["ghost"], timeout=5, gather_timeout=10, now=0)
    now, probes, done = 0.0, 0, False
    cache: dict[str, dict[str, Any]] = {}
    answers: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    reported: list[str] = []

    def carry_out(instructions: list[Instruction]) -> None:
        nonlocal probes, done
        for one in instructions:
            assert not done, "an instruction after Finish"
            if isinstance(one, Show | Silent):
                reported.append(one.minion)
                assert isinstance(one, Show) or one.minion not in cache, "silent, but in the job cache"
            elif isinstance(one, FindJob):
                assert set(one.minions) == wait.pending
                probes += 1
                wait.probed(f"probe{probes}")
            elif isinstance(one, AskReturns):
                carry_out(wait.returns(cache, now))
            elif isinstance(one, AskProbe):
                carry_out(wait.probe_returns(answers[one.jid], now))
            else:
                done = True

    # Endless silence comes after whatever happened, so the wait has to end.
    for what, minion in [*happenings, *[("time", "")] * 12]:
        if done:
            break
        if what == "return":
            cache[minion] = ret(minion)[1]
            carry_out(wait.event(*ret(minion), now))
        elif what == "dropped" and minion in minions:
            cache[minion] = ret(minion)[1]
        elif what == "running, not heard":
            answers[f"probe{probes}"][minion] = ret(minion, f"probe{probes}", {"pid": 1})[1]
        elif what in ("running", "gone"):
            carry_out(wait.event(*ret(minion, f"probe{probes}", {"pid": 1} if what == "running" else {}), now))
        elif what == "time":
            now = max(now, wait.deadline)
            carry_out(wait.tick(now))
    assert done
    assert len(reported) == len(set(reported))
    assert set(reported) >= minions | {"ghost"}
