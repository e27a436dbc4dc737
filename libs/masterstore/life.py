"""The states of a job on one minion ("life"), the allowed transitions, and their stored form. No I/O.

A sign is a minion's report that it reached a state; it has the name of that state. MOVES is the only table of
transitions; ``lua`` writes it into the Lua scripts.

Stored form: one letter and a number of milliseconds since the JID's time for each state, in order. ``d12s30r5012``
means delivered after 12 ms, started after 30 ms, returned after 5012 ms; the last one is the current state. Nothing is
stored for ``expected``, the state of every minion in ``salt:job:<jid>:minions`` from the start, so a publish to ten
thousand minions writes only their names. If a state is entered again, its earlier entry is removed; the stored form
therefore has at most eight entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """State of a job on one minion: expected, offline, delivered, started, returned, lost, cancelled or expired."""

    #: Published; the minion has sent nothing about it.
    EXPECTED = "expected"
    #: The minion was offline when the job was published.
    OFFLINE = "offline"
    #: The minion has received the job.
    DELIVERED = "delivered"
    #: The minion runs the job.
    STARTED = "started"
    #: The result is in the job cache. The final state.
    RETURNED = "returned"
    #: The minion had the job and then sent nothing for too long.
    LOST = "lost"
    #: Cancelled before the minion started it.
    CANCELLED = "cancelled"
    #: Not delivered in time; it is not sent any more.
    EXPIRED = "expired"


_S = State

#: State -> states that a sign may change it to. ``returned`` is possible from each state: a computed result is stored. A cancelled
#: job does not start; if it ran nevertheless, it ends with its return. A lost minion may send signs again.
MOVES: Mapping[State, tuple[State, ...]] = {
    _S.EXPECTED: (_S.OFFLINE, _S.DELIVERED, _S.STARTED, _S.RETURNED, _S.LOST, _S.CANCELLED, _S.EXPIRED),
    _S.OFFLINE: (_S.EXPECTED, _S.DELIVERED, _S.STARTED, _S.RETURNED, _S.CANCELLED, _S.EXPIRED),
    _S.DELIVERED: (_S.STARTED, _S.RETURNED, _S.LOST, _S.CANCELLED),
    _S.STARTED: (_S.RETURNED, _S.LOST),
    _S.LOST: (_S.DELIVERED, _S.STARTED, _S.RETURNED),
    _S.CANCELLED: (_S.RETURNED,),
    _S.EXPIRED: (_S.STARTED, _S.RETURNED),
    _S.RETURNED: (),
}

#: States in which a return is still expected.
OPEN = frozenset({_S.EXPECTED, _S.OFFLINE, _S.DELIVERED, _S.STARTED})

#: A return in one of these states is late.
LATE = frozenset({_S.OFFLINE, _S.LOST, _S.CANCELLED, _S.EXPIRED})

#: States in which no return is expected any more.
GIVEN_UP = frozenset({_S.LOST, _S.CANCELLED, _S.EXPIRED})

#: States in which the job was not handed to the minion: it may be sent again.
UNDELIVERED = frozenset({_S.EXPECTED, _S.OFFLINE})

#: States that a minion reports by a sign. A return is no sign: it is sent with the result.
MINION_SIGNS = frozenset({_S.DELIVERED, _S.STARTED})

#: States that have an index: rare ones, so that the index stays small.
INDEXED = (_S.OFFLINE, _S.LOST, _S.CANCELLED, _S.EXPIRED)

#: Map of state to its letter in the stored form.
LETTERS: Mapping[State, str] = {
    _S.EXPECTED: "e",
    _S.OFFLINE: "o",
    _S.DELIVERED: "d",
    _S.STARTED: "s",
    _S.RETURNED: "r",
    _S.LOST: "l",
    _S.CANCELLED: "c",
    _S.EXPIRED: "x",
}

_STATES: Mapping[str, State] = {letter: state for state, letter in LETTERS.items()}

_WRITTEN = re.compile(rf"(?:[{''.join(_STATES)}]-?[0-9]+)+")
_STEP = re.compile(r"([a-z])(-?[0-9]+)")


@dataclass(frozen=True, slots=True)
class Life:
    """All states of a job on one minion so far (expected, delivered, started, ...), with their times."""

    state: State
    #: State -> milliseconds since 1970 (master's clock) at which it began, in the order of the states.
    times: Mapping[State, int]

    @property
    def late(self) -> bool:
        """True if the job's current state is returned, and the state before was offline, lost, cancelled or expired."""
        steps = list(self.times)
        return self.state is State.RETURNED and len(steps) > 1 and steps[-2] in LATE


def born(created_ms: int) -> Life:
    """Return the Life of a job on a minion that has just been published: state expected.

    ``created_ms``: milliseconds since 1970.
    """
    return Life(State.EXPECTED, {State.EXPECTED: created_ms})


def moved(life: Life, to: State, ms: int) -> Life | None:
    """Return the Life after a change to the state ``to`` at ``ms`` (milliseconds since 1970); None if the table
    MOVES does not allow it.

    A time before that of the previous state is replaced by the previous state's time.
    """
    if to not in MOVES[life.state]:
        return None
    at = max(ms, life.times[life.state])
    return Life(to, {state: time for state, time in life.times.items() if state is not to} | {to: at})


def read(text: str, base_ms: int, created_ms: int) -> Life:
    """Return the Life (states of a job on one minion, with times) that ``text`` describes in its stored form:
    ``d12s30`` means delivered after 12 ms, started after 30 ms.

    ``base_ms``: time in the JID, from which the stored times count. ``created_ms``: time of the first state,
    ``expected``. Both are milliseconds since 1970. Raises ValueError if ``text`` is malformed.
    """
    if not text:
        return born(created_ms)
    if _WRITTEN.fullmatch(text) is None:
        raise ValueError(f"{text!r} is no life of a job: letters of {''.join(_STATES)}, each with milliseconds")
    steps = {_STATES[letter]: base_ms + int(ms) for letter, ms in _STEP.findall(text)}
    first = {} if State.EXPECTED in steps else {State.EXPECTED: created_ms}
    return Life(list(steps)[-1], first | steps)


def lua(moves: Mapping[State, tuple[State, ...]] = MOVES) -> str:
    """Return Lua source that defines four tables for scripts; a state is written as its letter.

    MAY maps a state to the states that it may change to. LATE has the states in which a return is late. NAME
    and INDEXED map a state to the name of its counter.
    """
    may = ",".join(f"{LETTERS[state]}='{''.join(LETTERS[to] for to in into)}'" for state, into in moves.items())
    late = ",".join(f"{LETTERS[state]}=1" for state in State if state in LATE)
    return "\n".join(
        [
            f"local MAY = {{{may}}}",
            f"local LATE = {{{late}}}",
            f"local NAME = {lua_names()}",
            f"local INDEXED = {lua_names(INDEXED)}",
        ]
    )


def lua_into(to: State, moves: Mapping[State, tuple[State, ...]] = MOVES) -> str:
    """Return Lua source for a script that changes jobs on minions to the state ``to``: it defines texts of letters,
    one letter for each state.

    LETTERS: all states. INTO: states that may change to ``to``. LATE, INDEXED, GIVEN_UP, UNDELIVERED: the states in
    the sets of these names.
    """
    return "\n".join(
        [
            f"local LETTERS = '{_letters(State)}'",
            f"local INTO = '{_letters(state for state, into in moves.items() if to in into)}'",
            f"local LATE = '{_letters(LATE)}'",
            f"local INDEXED = '{_letters(INDEXED)}'",
            f"local GIVEN_UP = '{_letters(GIVEN_UP)}'",
            f"local UNDELIVERED = '{_letters(UNDELIVERED)}'",
        ]
    )


def lua_names(states: Iterable[State] = (State.DELIVERED, State.STARTED, *INDEXED)) -> str:
    """Return a Lua table that maps a state's letter to the counter of that state in a job's hash."""
    return f"{{{','.join(f'{LETTERS[state]}={state.value!r}' for state in states)}}}"


def _letters(states: Iterable[State]) -> str:
    return "".join(sorted(LETTERS[state] for state in states))
