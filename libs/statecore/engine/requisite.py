"""What each requisite means: one row a kind, and the rules that turn their verdicts into one decision (seed 003).

A row looks at the entry of each state it names and says what it sees; ``fold`` settles the list (``_any`` forgives,
``onfail_all`` does not); ``RULES`` are then read top to bottom over everything that was seen. Pure: entries in,
decision out. The order of ``REQUISITES`` is the order in which a state's requisites are evaluated (seed 001, Salt 3008).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from typing import NamedTuple

from statecore.model.types import RunningEntry


class Seen(Enum):
    """What one requisite sees in one named state."""

    MET = auto()
    FAILED = auto()
    #: A watched state changed.
    CHANGED = auto()
    #: A prereq's target would change something, or would not.
    FORESEEN = auto()
    UNFORESEEN = auto()
    #: An onfail's target is fine.
    SUCCEEDED = auto()
    #: An onchanges' target changed, or did not.
    FRESH = auto()
    STALE = auto()
    #: The target asked that its changes trigger nothing (``skip_req`` in its return).
    SKIP = auto()


class Decision(Enum):
    """What becomes of a state once its requisites have been evaluated."""

    RUN = auto()
    #: Run it, then its mod_watch if it changed nothing itself.
    WATCH = auto()
    #: Run it, but not its mod_watch.
    RUN_UNWATCHED = auto()
    FAIL = auto()
    SKIP = auto()
    UNFORESEEN = auto()
    NO_FAILURE = auto()
    NO_CHANGES = auto()


def _required(entry: RunningEntry) -> Seen | None:
    if entry["result"] is False:
        return Seen.FAILED
    # A state that was left out for its own requisites neither meets nor breaks the requirement.
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
    # A failed target counts as one without changes: onchanges is a trigger, not a demand.
    return Seen.FRESH if entry["result"] is not False and entry["changes"] else Seen.STALE


Fold = Callable[[set[Seen]], set[Seen]]


def _every(seen: set[Seen]) -> set[Seen]:
    return seen


def _any(seen: set[Seen]) -> set[Seen]:
    """One that is met makes up for the others."""
    forgiven: set[Seen] = set()
    if seen & {Seen.MET, Seen.CHANGED}:
        forgiven.add(Seen.FAILED)
    if Seen.FRESH in seen:
        forgiven |= {Seen.STALE, Seen.FAILED}
    if Seen.MET in seen:
        forgiven.add(Seen.SUCCEEDED)
    return seen - forgiven


def _all_failed(seen: set[Seen]) -> set[Seen]:
    """One success outweighs all failures."""
    return seen - {Seen.MET} if Seen.SUCCEEDED in seen else seen


class Requisite(NamedTuple):
    """One kind of requisite."""

    look: Callable[[RunningEntry], Seen | None]
    fold: Fold
    #: For people and for the generated page: met when, fires when, otherwise.
    met: str
    fires: str
    otherwise: str


#: Kind -> meaning, in order of evaluation.
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

#: (all of these were seen, none of these was) -> decision; the first that fits.
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

#: Decision -> (result, comment) of a state that is not run. Salt's words.
NOT_RUN: Mapping[Decision, tuple[bool, str]] = {
    Decision.FAIL: (False, "One or more requisite failed: {failed}"),
    Decision.SKIP: (True, "State was not run because requisites were skipped by another state"),
    Decision.UNFORESEEN: (True, "No changes detected"),
    Decision.NO_FAILURE: (True, "State was not run because onfail req did not change"),
    Decision.NO_CHANGES: (True, "State was not run because none of the onchanges reqs changed"),
}


def look(kind: str, entries: Iterable[RunningEntry]) -> set[Seen]:
    """What a requisite of this kind sees in these entries, before folding (so that parts of a list can be united)."""
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
    """What becomes of a state, from what each kind of its requisites saw."""
    seen: set[Seen] = set()
    for kind, found in by_kind.items():
        seen |= REQUISITES[kind].fold(found)
    return next(decision for has, lacks, decision in RULES if has <= seen and not lacks & seen)
