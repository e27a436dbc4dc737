"""Predict the result of each state from a state run in test mode and from the plans of native states. Pure.

A verdict is ``unknown`` if it depends on an unknown result: a state that reacts to a state with an unknown result is
unknown. A state that fails in test mode, but requires a state that will change, is unknown too: the change may prevent
the failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from statecore.analysis.requisites import written
from statecore.compile.graph import Graph, Need
from statecore.engine.requisite import Decision, Seen, decide, look
from statecore.model.types import FileChange, Low, Plan, Running, RunningEntry, tag, untag

_LISTENER = "listener_"

#: State modules that only run a command or function: their test return does not tell whether there will be changes.
_RUN_SOMETHING = frozenset({"cmd", "module"})

#: Requisite that reacts to another state -> True if it reacts to a change, False if it reacts to a failure.
_REACTIONS: Mapping[str, bool] = {
    "watch": True,
    "watch_any": True,
    "onchanges": True,
    "onchanges_any": True,
    "listen": True,
    "prereq": True,
    "onfail": False,
    "onfail_any": False,
    "onfail_all": False,
}


class PredictedOutcome(StrEnum):
    """Predicted result of one state: it will change the host, will fail, will not change the host, or the result is unknown."""

    CHANGE = "change"
    UNKNOWN = "unknown"
    FAIL = "fail"
    UNCHANGED = "unchanged"


#: The text of each outcome, in the order of the summary line.
WORDS: Mapping[PredictedOutcome, str] = {
    PredictedOutcome.CHANGE: "to change",
    PredictedOutcome.UNKNOWN: "cannot be known before",
    PredictedOutcome.FAIL: "would fail",
    PredictedOutcome.UNCHANGED: "unchanged",
}


class Reason(NamedTuple):
    """A requisite by which one state of a run reacts to another one: the requisite's kind, and the module and ID of
    the state that it reacts to.
    """

    kind: str
    #: State module and ID of the other state.
    state: str
    id: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction for one state of a state run: verdict, comment, changes, steps, file changes, the requisites
    because of which the state reacts, and its warnings.
    """

    tag: str
    #: The low chunk; for a listen reaction the chunk that listens.
    low: Low
    verdict: PredictedOutcome
    comment: str
    #: The changes that test mode returned.
    changes: Mapping[str, object]
    #: Descriptions of the plan's steps, in order; () for a state that returns no plan.
    steps: tuple[str, ...]
    files: tuple[FileChange, ...]
    because: tuple[Reason, ...]
    #: Warnings of the state's return, such as those about arguments that it ignores.
    warnings: tuple[str, ...] = ()


#: (state module, ID, name) -> {function: plan} that the state returned in the run.
Plans = Mapping[tuple[str, str, str], Mapping[str, Plan]]


def predicted(graph: Graph, running: Running, plans: Plans) -> list[Prediction]:
    """Return a list with the Prediction for each state of a state run, in order of evaluation.

    ``running`` is the running dictionary of the run in test mode; ``plans`` are the plans that native states returned
    in it.
    """
    positions = {name: position for position, name in enumerate(graph.tags)}
    seen = _Seen(graph)
    found = []
    for name, entry in sorted(running.items(), key=lambda item: int(item[1].get("__run_num__", 0))):
        position = positions.get(name)
        each = _listener(graph, name, entry, plans, seen) if position is None else _of(position, entry, plans, seen)
        if each is not None:
            found.append(each)
    return found


def summary(verdicts: Sequence[str], warned: int = 0) -> str:
    """Return the summary line of a list of verdicts, such as ``3 to change, 1 cannot be known before, 20 unchanged``.

    ``warned`` is the number of states with warnings, which the line names if there are any.
    """
    counts = {verdict: verdicts.count(verdict) for verdict in WORDS}
    shown = {verdict for verdict, number in counts.items() if number} | {
        PredictedOutcome.CHANGE,
        PredictedOutcome.UNCHANGED,
    }
    parts = [f"{counts[verdict]} {words}" for verdict, words in WORDS.items() if verdict in shown]
    return ", ".join([*parts, *([f"{warned} with warnings"] if warned else [])])


@dataclass(slots=True)
class _Seen:
    """The predictions made so far, by state tag: each state's predicted result, and whether its requisites allow its
    call.
    """

    graph: Graph
    verdicts: dict[str, PredictedOutcome] = field(default_factory=dict)
    #: False if the state's requisites prevent its call.
    ran: dict[str, bool] = field(default_factory=dict)
    #: Tags of states that may succeed or fail.
    shaky: set[str] = field(default_factory=set)

    def decisions(self, position: int) -> set[Decision]:
        """Return the set of decisions (run, fail, skip ...) that the engine may take for a state, given the predictions
        for its requisites.

        Prereqs are ignored: the engine decides them by a test run, and the run in test mode was such a test run.
        """
        return self._decided(self.graph.needs[position])

    def foreseen(self, position: int) -> bool:
        """Return whether the engine may call one of the states that this state lists under ``prereq``."""
        targets = [at for need in self.graph.check_needs[position] if need.kind == "prereq" for at in need.targets]
        return any(self._decided(self.graph.check_needs[at]) & _RUNS for at in targets)

    def _decided(self, needs: Sequence[Need]) -> set[Decision]:
        return {
            self._decision(needs, guess)
            for guess in (PredictedOutcome.CHANGE, PredictedOutcome.UNCHANGED, PredictedOutcome.FAIL)
        }

    def _decision(self, needs: Sequence[Need], guess: PredictedOutcome) -> Decision:
        by_kind: dict[str, set[Seen]] = {}
        for kind, targets in needs:
            if kind != "prereq":
                by_kind.setdefault(kind, set()).update(look(kind, [self._entry(at, guess) for at in targets]))
        return decide(by_kind)

    def _entry(self, position: int, guess: PredictedOutcome) -> RunningEntry:
        """Return the return (result, changes) that is predicted for a state, as the running dictionary would hold it.
        ``guess`` replaces an unknown result.
        """
        name = self.graph.tags[position]
        verdict = self.verdicts.get(name, PredictedOutcome.UNKNOWN)
        if verdict is PredictedOutcome.UNKNOWN:
            verdict = guess if guess is not PredictedOutcome.FAIL or name in self.shaky else PredictedOutcome.CHANGE
        changes = {"what": "something"} if verdict is PredictedOutcome.CHANGE else {}
        return {
            "result": verdict is not PredictedOutcome.FAIL,
            "changes": changes,
            "__state_ran__": self.ran.get(name, True),
        }


def _of(position: int, entry: RunningEntry, plans: Plans, seen: _Seen) -> Prediction:
    graph = seen.graph
    name, low = graph.tags[position], graph.chunks[position]
    own = plans.get((str(low["state"]), str(low["__id__"]), str(low["name"])), {})
    decisions = seen.decisions(position)
    if Decision.WATCH not in decisions:
        # Test mode called mod_watch because the watched state might change; the prediction is that it will not.
        own = {fun: plan for fun, plan in own.items() if fun != "mod_watch"}
    verdict, comment = _settled(position, entry, own, decisions, seen), str(entry["comment"])
    if verdict is PredictedOutcome.UNCHANGED and entry["result"] is not True:
        comment = "What it waits for does not happen"
    wanted = PredictedOutcome.UNKNOWN if verdict is PredictedOutcome.UNKNOWN else PredictedOutcome.CHANGE
    reasons = (
        _reasons(graph, position, seen.verdicts, wanted)
        if verdict in (PredictedOutcome.CHANGE, PredictedOutcome.UNKNOWN)
        else ()
    )
    seen.verdicts[name] = verdict
    seen.ran[name] = bool(decisions & _RUNS) and bool(entry.get("__state_ran__", True))
    if verdict is PredictedOutcome.UNKNOWN and entry["result"] is False:
        seen.shaky.add(name)
    return _prediction(name, low, verdict, comment, entry, own, tuple(reasons))


def _prediction(
    name: str,
    low: Low,
    verdict: PredictedOutcome,
    comment: str,
    entry: RunningEntry,
    plans: Mapping[str, Plan],
    reasons: tuple[Reason, ...],
) -> Prediction:
    steps = [step for plan in plans.values() for step in plan.steps]
    files = tuple(step.file for step in steps if step.file is not None)
    what = tuple(step.what for step in steps)
    if low.get("no_log"):
        # The engine has already masked the comment and the changes.
        files, what = tuple(file._replace(shown=False) for file in files), ()
    warnings = tuple(str(warning) for warning in entry.get("warnings") or ())
    return Prediction(name, low, verdict, comment, entry["changes"], what, files, reasons, warnings)


#: Decisions of the engine that call the state function.
_RUNS = frozenset({Decision.RUN, Decision.WATCH, Decision.RUN_UNWATCHED})


def _settled(
    position: int, entry: RunningEntry, plans: Mapping[str, Plan], decisions: set[Decision], seen: _Seen
) -> PredictedOutcome:
    graph = seen.graph
    low = graph.chunks[position]
    left_out = not entry.get("__state_ran__", True)
    if left_out and "prereq" in low and entry["result"] is False and Decision.FAIL not in decisions:
        # The test run for a prereq failed, so the state fails whatever its other requisites say.
        return PredictedOutcome.FAIL
    if not decisions & _RUNS:
        if decisions == {Decision.FAIL}:
            # If the state that declares the prereq failed, the target's result is that of its own test run.
            adopted = len(graph.needs[position]) > len(graph.check_needs[position]) and entry["result"] is not False
            return PredictedOutcome.UNCHANGED if adopted else PredictedOutcome.FAIL
        return PredictedOutcome.UNKNOWN if Decision.FAIL in decisions else PredictedOutcome.UNCHANGED
    if not decisions <= _RUNS:
        return PredictedOutcome.UNKNOWN
    if "prereq" in low and not seen.foreseen(position) and entry["result"] is not False:
        return PredictedOutcome.UNCHANGED
    if left_out:
        # Test mode did not call the state, so its result is unknown. Exception: a prereq found nothing to do.
        return PredictedOutcome.UNCHANGED if "prereq" in low else PredictedOutcome.UNKNOWN
    verdict = _verdict(entry, low, plans, reacts=Decision.WATCH in decisions)
    if verdict is PredictedOutcome.FAIL and any(
        seen.verdicts.get(graph.tags[at]) in _MOVING for at in _above(graph, position)
    ):
        # An earlier state's changes may remove the cause of the failure.
        return PredictedOutcome.UNKNOWN
    if verdict is PredictedOutcome.UNCHANGED and len(decisions) > 1:
        return PredictedOutcome.UNKNOWN
    return verdict


#: Outcomes that may change the host.
_MOVING = frozenset({PredictedOutcome.CHANGE, PredictedOutcome.UNKNOWN})


def _verdict(entry: RunningEntry, low: Low, plans: Mapping[str, Plan], *, reacts: bool) -> PredictedOutcome:
    """Return the result (change, failure, no change, unknown) that a state's own return in test mode predicts.
    ``reacts``: the return may include mod_watch's changes.
    """
    steps = any(plan.steps for plan in plans.values())
    if entry["result"] is False:
        return PredictedOutcome.FAIL
    if plans and not steps and not reacts:
        # Changes without a step come from mod_watch, which will not be called.
        return PredictedOutcome.UNCHANGED
    if entry["changes"]:
        return PredictedOutcome.CHANGE
    if entry["result"] is None:
        return PredictedOutcome.CHANGE if steps and low["state"] not in _RUN_SOMETHING else PredictedOutcome.UNKNOWN
    return PredictedOutcome.UNCHANGED


def _above(graph: Graph, position: int) -> set[int]:
    """Return the set of positions in ``graph.chunks`` of all low chunks that the one at ``position`` requires, directly
    or through others.
    """
    found: set[int] = set()
    todo = [position]
    while todo:
        for need in graph.check_needs[todo.pop()]:
            new = [at for at in need.targets if at not in found]
            found.update(new)
            todo += new
    return found


def _reasons(
    graph: Graph, position: int, known: Mapping[str, PredictedOutcome], wanted: PredictedOutcome
) -> Iterator[Reason]:
    """Yield a Reason (requisite kind, state module and ID of the other state) for each requisite by which the state at
    ``position`` reacts to another state: to one that will change or fail, or with ``wanted`` UNKNOWN to one with an
    unknown result.
    """
    for need in graph.check_needs[position]:
        if need.kind not in _REACTIONS:
            continue
        awaited = wanted if _REACTIONS[need.kind] or wanted is PredictedOutcome.UNKNOWN else PredictedOutcome.FAIL
        for at in need.targets:
            # A prereq's target runs later and has no verdict yet; its test run predicted a change.
            if known.get(graph.tags[at], PredictedOutcome.CHANGE if need.kind == "prereq" else None) is awaited:
                other = graph.chunks[at]
                yield Reason(need.kind, str(other["state"]), str(other["__id__"]))


def _listener(graph: Graph, name: str, entry: RunningEntry, plans: Plans, seen: _Seen) -> Prediction | None:
    """Return the prediction for a ``listen`` reaction at the end of the run; None if no state that it listens to will
    change.
    """
    own = untag(name)
    wanted = own.id.removeprefix(_LISTENER)
    for low in graph.chunks:
        if (low["state"], str(low["__id__"]), str(low["name"])) == (own.state, wanted, own.name):
            heard = tuple(
                Reason("listen", str(other["state"]), str(other["__id__"]))
                for other in _heard(graph, low, seen.verdicts)
            )
            made = plans.get((own.state, own.id, own.name), {})
            verdict = _verdict(entry, low, made, reacts=True)
            return _prediction(name, low, verdict, str(entry["comment"]), entry, made, heard) if heard else None
    low = {"state": own.state, "fun": own.fun, "name": own.name, "__id__": own.id}
    return _prediction(name, low, _verdict(entry, low, {}, reacts=True), str(entry["comment"]), entry, {}, ())


def _heard(graph: Graph, low: Low, known: Mapping[str, PredictedOutcome]) -> Iterator[Low]:
    heard = set(written(low.get("listen")))
    names = {(key, str(low[name])) for key in ("id", str(low["state"])) for name in ("__id__", "name")}
    for other in graph.chunks:
        others = {(key, str(other[name])) for key in ("id", str(other["state"])) for name in ("__id__", "name")}
        listened = others & heard or names & set(written(other.get("listen_in")))
        if listened and known.get(tag(other)) is PredictedOutcome.CHANGE:
            yield other
