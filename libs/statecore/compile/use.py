"""Pass: ``use`` and ``use_in`` lend arguments from one state to another, but for names and most requisites (seed 003)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from statecore.compile.draft import REQUISITES_IN, Draft, Extension, arguments, disabled, states
from statecore.compile.extend import extended
from statecore.compile.targets import bearing, dotted, targets
from statecore.model.errors import SlsFault

#: Never lent. The requisites that are not among these are lent by Salt, so they are here.
_OWN = frozenset(REQUISITES_IN) | {
    *("require", "watch", "prereq", "onfail", "onfail_stop", "onchanges"),
    *("use", "use_in", "name", "names"),
}


def borrow(draft: Draft) -> Draft:
    """High data in which the borrower has every argument of the lender that it lacks; of two lenders, the later one's.

    Faults: dots in references.
    """
    faults: list[SlsFault] = []
    loans = list(_loans(draft, faults))
    return extended(draft.with_faults(faults), loans, strict=True)


def _loans(draft: Draft, faults: list[SlsFault]) -> Iterator[Extension]:
    off = disabled(draft.opts)
    for name, body in draft.high.items():
        for state, run in states(body):
            for key, references in arguments(run):
                if key not in ("use", "use_in") or key in off:
                    continue
                for target in targets(references, draft.high):
                    if "." in target[0]:
                        faults.append(dotted(draft, "use", target, name))
                        continue
                    for other in bearing(draft.high, target[1], target[0]):
                        pair = (name, state), (other, target[0])
                        yield from _loan(draft, *(pair if key == "use_in" else reversed(pair)))


def _loan(draft: Draft, lender: tuple[str, str], borrower: tuple[str, str]) -> Iterator[Extension]:
    own = {key for key, _ in arguments(draft.high[borrower[0]][borrower[1]])}
    lent: list[Any] = [
        {key: value} for key, value in arguments(draft.high[lender[0]][lender[1]]) if key not in own | _OWN
    ]
    if lent:
        yield Extension(borrower[0], {borrower[1]: lent})
