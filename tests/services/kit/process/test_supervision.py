"""When a child is started, ended and killed."""

from __future__ import annotations

import math

import pytest

from saltern.kit.process.supervision import EX_RENEW, Rollout, Watched


@pytest.mark.parametrize(
    ("code", "ran", "pause", "state", "failures"),
    [
        (1, 100.0, 0.5, "waiting", 1),
        (0, 100.0, 0.5, "waiting", 1),
        (-9, 100.0, 0.5, "waiting", 1),
        (70, 0.1, 0.5, "waiting", 1),
        (EX_RENEW, 0.1, 0.0, "waiting", 0),
        (77, 100.0, math.inf, "failed", 1),
        (78, 0.1, math.inf, "failed", 1),
    ],
)
def test_what_follows_an_end(code: int, ran: float, pause: float, state: str, failures: int) -> None:
    child = Watched("a")
    assert child.is_due(10.0)
    child.began(42, 10.0)
    assert (child.state, child.is_due(10.0), child.next_time()) == ("running", False, math.inf)
    assert child.ended(code, 10.0 + ran) == pytest.approx(pause)
    assert (child.state, child.failures, child.pid) == (state, failures, 0)
    assert child.is_due(10.0 + ran + 0.6) == (state == "waiting")


def test_pauses_grow_while_a_child_ends_early_and_begin_anew_after_it_ran_well() -> None:
    child, now, pauses = Watched("a"), 0.0, []
    for ran in (1, 1, 1, 1, 1, 1, 1, 1, 60, 1):
        child.began(7, now)
        now += ran
        pauses.append(child.ended(1, now))
        now = child.due_at
    assert pauses == pytest.approx([0.5, 1, 2, 4, 8, 16, 30, 30, 0.5, 1])


def test_a_child_that_was_asked_to_end_is_killed_when_its_time_is_over() -> None:
    child = Watched("a", grace=5.0)
    child.began(42, 0.0)
    child.asked_to_end(10.0)
    child.asked_to_end(12.0)
    assert (child.state, child.next_time()) == ("ending", 15.0)
    assert child.ended(0, 11.0) == 0.0
    assert child.failures == 0


def test_a_stopped_child_is_not_started_until_it_is_wanted() -> None:
    child = Watched("a")
    child.began(42, 0.0)
    child.wanted = False
    child.asked_to_end(1.0)
    child.ended(0, 2.0)
    assert (child.state, child.is_due(1000.0), child.next_time()) == ("stopped", False, math.inf)
    child.want(1000.0)
    assert child.is_due(1000.0)


def test_a_rollout_replaces_the_next_child_only_after_the_one_before_has_settled() -> None:
    children = {name: Watched(name) for name in "ab"}
    for pid, child in enumerate(children.values(), 1):
        child.began(pid, 0.0)
    rollout = Rollout(["a", "b"])
    assert rollout.next(children, 10.0) == "a"
    children["a"].asked_to_end(10.0)
    assert (rollout.next(children, 10.5), rollout.next_time(children)) == ("", math.inf)
    children["a"].ended(0, 11.0)
    assert rollout.next(children, 11.0) == ""
    children["a"].began(3, 11.0)
    assert (rollout.next(children, 12.0), rollout.next_time(children)) == ("", 13.0)
    assert rollout.next(children, 13.0) == "b"
    children["b"].began(4, 13.0)
    assert (rollout.next(children, 14.0), rollout.done) == ("", False)
    assert (rollout.next(children, 15.0), rollout.done) == ("", True)


def test_a_rollout_stops_when_a_new_process_cannot_use_its_configuration() -> None:
    children = {name: Watched(name) for name in "ab"}
    rollout = Rollout(["a", "b"])
    assert rollout.next(children, 0.0) == "a"
    children["a"].began(3, 0.0)
    children["a"].ended(78, 0.1)
    assert (rollout.next(children, 1.0), rollout.done) == ("", True)
