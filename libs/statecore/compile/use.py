"""Pass: ``use`` and ``use_in`` lend arguments from one state to another, but for names and requisites (seed 003)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from statecore.compile.draft import REQUISITES, REQUISITES_IN, Draft, arguments, states
from statecore.types import High

#: Never lent.
_OWN = REQUISITES | frozenset(REQUISITES_IN) | {"use", "use_in", "listen_in", "name", "names", "order"}


def borrow(draft: Draft) -> Draft:
    """High data in which the borrower has every argument of the lender that it lacks."""
    high: High = dict(draft.high)
    for name, body in draft.high.items():
        for state, run in states(body):
            for key, value in arguments(run):
                if key not in ("use", "use_in"):
                    continue
                for other_state, other in _references(value):
                    lender, borrower = ((state, name), (other_state, other))
                    if key == "use":
                        lender, borrower = borrower, lender
                    _lend(draft.high, high, lender, borrower)
    return replace(draft, high=high)


def _references(value: Any) -> Iterator[tuple[str, str]]:
    for reference in value if isinstance(value, list) else [value]:
        if isinstance(reference, Mapping):
            for state, name in reference.items():
                yield str(state).partition(".")[0], str(name)


def _lend(before: Mapping[str, Any], high: High, lender: tuple[str, str], borrower: tuple[str, str]) -> None:
    for lender_id in _named(before, *lender):
        for borrower_id in _named(before, *borrower):
            own = {key for key, _ in arguments(high[borrower_id][borrower[0]])}
            lent = [{key: value} for key, value in arguments(before[lender_id][lender[0]]) if key not in own | _OWN]
            body = dict(high[borrower_id])
            body[borrower[0]] = [*body[borrower[0]], *lent]
            high[borrower_id] = body


def _named(high: Mapping[str, Any], state: str, name: str) -> list[str]:
    """IDs that have this state and this ID or name."""
    if name in high and state in high[name]:
        return [name]
    return [
        each
        for each, body in high.items()
        if any(key == "name" and value == name for key, value in arguments(body.get(state)))
    ]
