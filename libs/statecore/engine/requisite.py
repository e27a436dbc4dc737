"""Meaning of each requisite: the table ``REQUISITES``, and the rules that make one decision of all requisites of a
state.

Pure.

A row's ``look`` maps the entry of one target to a Seen. Its ``fold`` joins the Seen values of all targets of one kind:
``_any`` kinds need one good target, ``onfail_all`` needs all. ``RULES`` are read from top to bottom over all that was
seen; the first that fits decides. Requisites are evaluated in the order of ``REQUISITES`` (as in Salt 3008).

Source: docs/state-system.md#requisite-evaluation
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from typing import NamedTuple

from statecore.model.types import RunningEntry


class Seen(Enum):
    """How one target of a requisite (a state that another state requires, watches, ...) ended: met, failed, changed,
    unchanged ...
    """

    MET = auto()
    FAILED = auto()
    #: A watched state changed.
    CHANGED = auto()
    #: prereq: the target would change something (FORESEEN), or would not (UNFORESEEN).
    FORESEEN = auto()
    UNFORESEEN = auto()
    #: onfail: the target succeeded.
    SUCCEEDED = auto()
    #: onchanges: the target changed (FRESH), or did not (STALE).
    FRESH = auto()
    STALE = auto()
    #: The target's return has ``skip_req``: its changes must not trigger other states.
    SKIP = auto()


class Decision(Enum):
    """Decision about a state after its requisites were evaluated. RUN, WATCH and RUN_UNWATCHED call the state's
    function; all other values do not.
    """

    RUN = auto()
    #: Run the state; then its mod_watch if the state changed nothing itself.
    WATCH = auto()
    #: Run the state without its mod_watch.
    RUN_UNWATCHED = auto()
    FAIL = auto()
    SKIP = auto()
    UNFORESEEN = auto()
    NO_FAILURE = auto()
    NO_CHANGES = auto()


def _required(entry: RunningEntry) -> Seen | None:
    if entry["result"] is False:
        return Seen.FAILED
    # A target that was not run because of its own requisites neither meets nor breaks the requirement.
    return Seen.MET if entry.get("__state_ran__", True) else None


def _watched(entry: RunningEntry) -> Seen | None:
    if entry["result"] is not False and entry["changes"]:
        return Seen.CHANGED
    return _required(entry)


def _foreseen(entry: RunningEntry) -> Seen | None:
    if entry["result"] is False:
        return Seen.FAILED
    return Seen.FORESEEN if entry["result"] is None else Seen.UNFORESEEN


def _failed(entry: RunningEntry) -> Seen | None:
    if entry["result"] is True:
        return Seen.SUCCEEDED
    return Seen.MET if entry.get("__state_ran__", True) else None


def _changed(entry: RunningEntry) -> Seen | None:
    # A failed target counts as unchanged: onchanges triggers a state, it does not demand success.
    return Seen.FRESH if entry["result"] is not False and entry["changes"] else Seen.STALE


Fold = Callable[[set[Seen]], set[Seen]]


def _every(seen: set[Seen]) -> set[Seen]:
    return seen


def _any(seen: set[Seen]) -> set[Seen]:

    forgiven: set[Seen] = set()
    if seen & {Seen.MET, Seen.CHANGED}:
        forgiven.add(Seen.FAILED)
    if Seen.FRESH in seen:
        forgiven |= {Seen.STALE, Seen.FAILED}
    if Seen.MET in seen:
        forgiven.add(Seen.SUCCEEDED)
    return seen - forgiven


def _all_failed(seen: set[Seen]) -> set[Seen]:

    return seen - {Seen.MET} if Seen.SUCCEEDED in seen else seen


class Requisite(NamedTuple):
    """Row of ``REQUISITES`` for one kind of requisite: the functions that evaluate its targets, and words for the
    documentation.
    """

    look: Callable[[RunningEntry], Seen | None]
    fold: Fold
    #: Words for the generated reference page: condition, effect when met, effect otherwise.
    met: str
    fires: str
    otherwise: str


#: Requisite kind -> its meaning, in order of evaluation.
REQUISITES: Mapping[str, Requisite] = {
    "require": Requisite(_required, _every, "every target succeeded", "runs", "fails, naming the targets"),
    "require_any": Requisite(_required, _any, "one target succeeded", "runs", "fails, naming the targets"),
    "watch": Requisite(
        _watched, _every, "every target succeeded", "runs, and mod_watch if one changed", "fails, naming the targets"
    ),
    "watch_any": Requisite(
        _watched, _any, "one target succeeded", "runs, and mod_watch if one changed", "fails, naming the targets"
    ),
    "prereq": Requisite(
        _foreseen,
        _every,
        "a target would change something",
        "runs before the targets",
        "is not run, and counts as fine",
    ),
    "onfail": Requisite(_failed, _any, "one target failed", "runs", "is not run, and counts as fine"),
    "onfail_any": Requisite(_failed, _any, "one target failed", "runs", "is not run, and counts as fine"),
    "onfail_all": Requisite(_failed, _all_failed, "every target failed", "runs", "is not run, and counts as fine"),
    "onchanges": Requisite(
        _changed, _every, "one target succeeded with changes", "runs", "is not run, and counts as fine"
    ),
    "onchanges_any": Requisite(
        _changed, _any, "one target succeeded with changes", "runs", "is not run, and counts as fine"
    ),
}

_NOTHING: frozenset[Seen] = frozenset()

#: (values that must be seen, values that must not be seen, decision). The first row that fits decides.
RULES: tuple[tuple[frozenset[Seen], frozenset[Seen], Decision], ...] = (
    (frozenset({Seen.FAILED}), _NOTHING, Decision.FAIL),
    (frozenset({Seen.SKIP, Seen.FRESH}), _NOTHING, Decision.SKIP),
    (frozenset({Seen.SKIP, Seen.FORESEEN}), _NOTHING, Decision.SKIP),
    (frozenset({Seen.SKIP, Seen.CHANGED}), _NOTHING, Decision.RUN_UNWATCHED),
    (frozenset({Seen.UNFORESEEN, Seen.FORESEEN}), _NOTHING, Decision.RUN),
    (frozenset({Seen.UNFORESEEN}), _NOTHING, Decision.UNFORESEEN),
    (frozenset({Seen.SUCCEEDED}), frozenset({Seen.FRESH}), Decision.NO_FAILURE),
    (frozenset({Seen.STALE}), frozenset({Seen.FRESH}), Decision.NO_CHANGES),
    (frozenset({Seen.CHANGED}), _NOTHING, Decision.WATCH),
    (frozenset({Seen.SUCCEEDED}), _NOTHING, Decision.NO_FAILURE),
    (_NOTHING, _NOTHING, Decision.RUN),
)

#: Decision -> (result, comment) of a state that is not run, in Salt's words.
NOT_RUN: Mapping[Decision, tuple[bool, str]] = {
    Decision.FAIL: (False, "One or more requisite failed: {failed}"),
    Decision.SKIP: (True, "State was not run because requisites were skipped by another state"),
    Decision.UNFORESEEN: (True, "No changes detected"),
    Decision.NO_FAILURE: (True, "State was not run because onfail req did not change"),
    Decision.NO_CHANGES: (True, "State was not run because none of the onchanges reqs changed"),
}


def look(kind: str, entries: Iterable[RunningEntry]) -> set[Seen]:
    """Return how the targets of a requisite of this ``kind`` ended (met, failed, changed ...), as a set of Seen.
    ``entries`` are the targets' entries of the running dictionary.
    """
    row = REQUISITES[kind]
    seen: set[Seen] = set()
    for entry in entries:
        verdict = row.look(entry)
        if verdict is not None:
            seen.add(verdict)
        if entry.get("skip_req"):
            seen.add(Seen.SKIP)
    return seen


def decide(by_kind: Mapping[str, set[Seen]]) -> Decision:
    """Return the Decision whether and how a state runs. ``by_kind`` maps each kind of its requisites to the conditions
    (Seen) of the targets.
    """
    seen: set[Seen] = set()
    for kind, found in by_kind.items():
        seen |= REQUISITES[kind].fold(found)
    return next(decision for has, lacks, decision in RULES if has <= seen and not lacks & seen)
