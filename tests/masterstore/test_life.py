"""The table of a job's life, and how a life is written."""

from __future__ import annotations

import pytest

from masterstore.life import (
    GIVEN_UP,
    LATE,
    LETTERS,
    MINION_SIGNS,
    MOVES,
    OPEN,
    UNDELIVERED,
    Life,
    State,
    born,
    lua,
    lua_into,
    moved,
    read,
)

S = State


def test_every_state_has_a_row_and_a_letter() -> None:
    assert set(MOVES) == set(LETTERS) == set(State)
    assert len(set(LETTERS.values())) == len(State)


def test_what_has_returned_stays_and_everything_else_may_return() -> None:
    assert MOVES[S.RETURNED] == ()
    assert all(S.RETURNED in MOVES[state] for state in State if state is not S.RETURNED)


def test_what_was_called_off_or_ran_out_is_not_handed_out_again() -> None:
    for end in (S.CANCELLED, S.EXPIRED):
        assert not set(MOVES[end]) & (UNDELIVERED | {S.DELIVERED})
    assert S.CANCELLED not in MOVES[S.STARTED]


def test_every_state_can_be_reached_and_none_leads_to_itself() -> None:
    reached, todo = {S.EXPECTED}, [S.EXPECTED]
    while todo:
        for to in MOVES[todo.pop()]:
            if to not in reached:
                reached.add(to)
                todo.append(to)
    assert reached == set(State)
    assert all(state not in into for state, into in MOVES.items())


def test_every_open_state_has_an_end_that_nobody_need_sign() -> None:
    for state in OPEN:
        assert set(MOVES[state]) & {S.EXPIRED, S.LOST}, state
    assert not OPEN & LATE - {S.OFFLINE}
    assert MINION_SIGNS <= OPEN


def test_a_state_is_open_or_has_an_end() -> None:
    assert set(State) == {*OPEN, *GIVEN_UP, S.RETURNED}


@pytest.mark.parametrize("to", State)
def test_what_a_script_for_one_state_is_told_is_the_table(to: State) -> None:
    into = lua_into(to).split("INTO = '")[1].split("'")[0]
    assert {state for state in State if LETTERS[state] in into} == {state for state in State if to in MOVES[state]}


@pytest.mark.parametrize("to", State)
@pytest.mark.parametrize("state", State)
def test_moves(state: State, to: State) -> None:
    life = Life(state, {S.EXPECTED: 10, state: 20})
    after = moved(life, to, 30)
    if to not in MOVES[state]:
        assert after is None
    else:
        assert after is not None
        assert (after.state, after.times[to], list(after.times)[-1]) == (to, 30, to)


def test_times_never_go_back() -> None:
    life = moved(born(100), S.STARTED, 50)
    assert life == Life(S.STARTED, {S.EXPECTED: 100, S.STARTED: 100})


@pytest.mark.parametrize(
    ("text", "life"),
    [
        ("", born(1005)),
        ("r5012", Life(S.RETURNED, {S.EXPECTED: 1005, S.RETURNED: 6012})),
        ("o5d12s30", Life(S.STARTED, {S.EXPECTED: 1005, S.OFFLINE: 1005, S.DELIVERED: 1012, S.STARTED: 1030})),
        ("o5e20r30", Life(S.RETURNED, {S.OFFLINE: 1005, S.EXPECTED: 1020, S.RETURNED: 1030})),
        ("c-4", Life(S.CANCELLED, {S.EXPECTED: 1005, S.CANCELLED: 996})),
    ],
)
def test_what_is_written_is_read(text: str, life: Life) -> None:
    assert read(text, 1000, 1005) == life


@pytest.mark.parametrize("text", ["x", "5", "r", "q5", "r5 ", "r5x", "r--5", "\x00", "r\u0665"])
def test_what_is_no_life(text: str) -> None:
    with pytest.raises(ValueError, match="no life of a job"):
        read(text, 0, 0)


@pytest.mark.parametrize(
    ("steps", "late"),
    [
        ("r1", False),
        ("s1r2", False),
        ("o1r2", True),
        ("o1d2r3", False),
        ("s1l2r3", True),
        ("l1s2r3", False),
        ("l1", False),
    ],
)
def test_what_is_late(steps: str, late: bool) -> None:
    assert read(steps, 0, 0).late is late


def test_scripts_get_the_same_table() -> None:
    text = lua()
    for state, into in MOVES.items():
        assert f"{LETTERS[state]}='{''.join(LETTERS[to] for to in into)}'" in text
