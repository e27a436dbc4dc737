"""What a run would do, state by state, from a run in test mode and the plans of native states. Pure.

A verdict is about what can be known beforehand: a state that reacts to one of which nobody knows whether it changes cannot be
known either, and one that fails now but comes after something that changes may well not fail then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from statecore.analysis.requisites import written
from statecore.compile.graph import Graph, Need
from statecore.engine.requisite import Decision, Seen, decide, look
from statecore.model.types import FileChange, Low, Plan, Running, RunningEntry, tag, untag

_LISTENER = "listener_"

#: States that without predicted changes cannot say whether there will be any: they only run something.
_RUN_SOMETHING = frozenset({"cmd", "module"})

#: Kinds that wait for something to happen -> whether it is a change (else a failure).
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
    """What becomes of a state."""

    CHANGE = "change"
    UNKNOWN = "unknown"
    FAIL = "fail"
    UNCHANGED = "unchanged"


#: In the order of a summary, with its words.
WORDS: Mapping[PredictedOutcome, str] = {
    PredictedOutcome.CHANGE: "to change",
    PredictedOutcome.UNKNOWN: "cannot be known before",
    PredictedOutcome.FAIL: "would fail",
    PredictedOutcome.UNCHANGED: "unchanged",
}


class Reason(NamedTuple):
    """A requisite through which another state makes this one react."""

    kind: str
    #: state module and ID of the other.
    state: str
    id: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """One state of a run that has not begun."""

    tag: str
    #: The chunk; of a listener the chunk that listens.
    low: Low
    verdict: PredictedOutcome
    comment: str
    #: As test mode tells them.
    changes: Mapping[str, Any]
    #: What would be done, in order; () where only the state itself knows.
    steps: tuple[str, ...]
    files: tuple[FileChange, ...]
    because: tuple[Reason, ...]


#: (state module, ID, name) -> the plans that a state made in the run, by function.
Plans = Mapping[tuple[str, str, str], Mapping[str, Plan]]


def predicted(graph: Graph, running: Running, plans: Plans) -> list[Prediction]:
    """Every state in order of evaluation. ``running`` is what the run in test mode returned."""
    positions = {name: position for position, name in enumerate(graph.tags)}
    seen = _Seen(graph)
    found = []
    for name, entry in sorted(running.items(), key=lambda item: int(item[1].get("__run_num__", 0))):
        position = positions.get(name)
        each = _listener(graph, name, entry, plans, seen) if position is None else _of(position, entry, plans, seen)
        if each is not None:
            found.append(each)
    return found


def summary(verdicts: Sequence[str]) -> str:
    """``3 to change, 1 cannot be known before, 20 unchanged``."""
    told = {verdict: verdicts.count(verdict) for verdict in WORDS}
    shown = {verdict for verdict, number in told.items() if number} | {
        PredictedOutcome.CHANGE,
        PredictedOutcome.UNCHANGED,
    }
    return ", ".join(f"{told[verdict]} {words}" for verdict, words in WORDS.items() if verdict in shown)


@dataclass(slots=True)
class _Seen:
    """What is known of the states so far, by tag."""

    graph: Graph
    verdicts: dict[str, PredictedOutcome] = field(default_factory=dict)
    #: Whether the state would be called, or its requisites leave it out.
    ran: dict[str, bool] = field(default_factory=dict)
    #: Of which nobody knows whether they will fail.
    shaky: set[str] = field(default_factory=set)

    def decisions(self, position: int) -> set[Decision]:
        """What the engine may decide when the state's turn comes, for all that is known of those before it.

        Prereqs are left out: they are settled by test runs, of which the run in test mode is one.
        """
        return self._decided(self.graph.needs[position])

    def foreseen(self, position: int) -> bool:
        """Whether one of the states that it prereqs may be called, so that there may be something to come before."""
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
        """The entry that a state will have; of what is unknown, by a guess."""
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
        # What it watches was foreseen to change, and does not.
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
    return _told(name, low, verdict, comment, entry, own, tuple(reasons))


def _told(
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
        # Comment and changes were masked by the engine.
        files, what = tuple(file._replace(shown=False) for file in files), ()
    return Prediction(name, low, verdict, comment, entry["changes"], what, files, reasons)


#: Decisions after which a state is called.
_RUNS = frozenset({Decision.RUN, Decision.WATCH, Decision.RUN_UNWATCHED})


def _settled(
    position: int, entry: RunningEntry, plans: Mapping[str, Plan], decisions: set[Decision], seen: _Seen
) -> PredictedOutcome:
    graph = seen.graph
    low = graph.chunks[position]
    left_out = not entry.get("__state_ran__", True)
    if left_out and "prereq" in low and entry["result"] is False and Decision.FAIL not in decisions:
        # A test run that a prereq asks for failed: that outweighs all else.
        return PredictedOutcome.FAIL
    if not decisions & _RUNS:
        if decisions == {Decision.FAIL}:
            # The target of a prereq whose state failed keeps what its test run said.
            adopted = len(graph.needs[position]) > len(graph.check_needs[position]) and entry["result"] is not False
            return PredictedOutcome.UNCHANGED if adopted else PredictedOutcome.FAIL
        return PredictedOutcome.UNKNOWN if Decision.FAIL in decisions else PredictedOutcome.UNCHANGED
    if not decisions <= _RUNS:
        return PredictedOutcome.UNKNOWN
    if "prereq" in low and not seen.foreseen(position) and entry["result"] is not False:
        return PredictedOutcome.UNCHANGED
    if left_out:
        # In test mode nobody asked what it would do, but where a prereq says that there is nothing to do.
        return PredictedOutcome.UNCHANGED if "prereq" in low else PredictedOutcome.UNKNOWN
    verdict = _verdict(entry, low, plans, reacts=Decision.WATCH in decisions)
    if verdict is PredictedOutcome.FAIL and any(
        seen.verdicts.get(graph.tags[at]) in _MOVING for at in _above(graph, position)
    ):
        # What makes it fail now may be gone when its turn comes.
        return PredictedOutcome.UNKNOWN
    if verdict is PredictedOutcome.UNCHANGED and len(decisions) > 1:
        return PredictedOutcome.UNKNOWN
    return verdict


#: Verdicts on states after which the host is not what it was.
_MOVING = frozenset({PredictedOutcome.CHANGE, PredictedOutcome.UNKNOWN})


def _verdict(entry: RunningEntry, low: Low, plans: Mapping[str, Plan], *, reacts: bool) -> PredictedOutcome:
    """What the state itself says. ``reacts``: its mod_watch may have spoken too."""
    steps = any(plan.steps for plan in plans.values())
    if entry["result"] is False:
        return PredictedOutcome.FAIL
    if plans and not steps and not reacts:
        # Changes without a step to make them are those of a reaction that does not come.
        return PredictedOutcome.UNCHANGED
    if entry["changes"]:
        return PredictedOutcome.CHANGE
    if entry["result"] is None:
        return PredictedOutcome.CHANGE if steps and low["state"] not in _RUN_SOMETHING else PredictedOutcome.UNKNOWN
    return PredictedOutcome.UNCHANGED


def _above(graph: Graph, position: int) -> set[int]:
    """All chunks that it requires, and theirs."""
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
    """The requisites by which it reacts to a change (or failure), or to what nobody knows."""
    for need in graph.check_needs[position]:
        if need.kind not in _REACTIONS:
            continue
        awaited = wanted if _REACTIONS[need.kind] or wanted is PredictedOutcome.UNKNOWN else PredictedOutcome.FAIL
        for at in need.targets:
            # A prereq's target comes later: it is known only to have been foreseen.
            if known.get(graph.tags[at], PredictedOutcome.CHANGE if need.kind == "prereq" else None) is awaited:
                other = graph.chunks[at]
                yield Reason(need.kind, str(other["state"]), str(other["__id__"]))


def _listener(graph: Graph, name: str, entry: RunningEntry, plans: Plans, seen: _Seen) -> Prediction | None:
    """The reaction at the end of the run of a chunk that listens; None when there is nothing to react to after all."""
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
            return _told(name, low, verdict, str(entry["comment"]), entry, made, heard) if heard else None
    low = {"state": own.state, "fun": own.fun, "name": own.name, "__id__": own.id}
    return _told(name, low, _verdict(entry, low, {}, reacts=True), str(entry["comment"]), entry, {}, ())


def _heard(graph: Graph, low: Low, known: Mapping[str, PredictedOutcome]) -> Iterator[Low]:
    heard = set(written(low.get("listen")))
    names = {(key, str(low[name])) for key in ("id", str(low["state"])) for name in ("__id__", "name")}
    for other in graph.chunks:
        others = {(key, str(other[name])) for key in ("id", str(other["state"])) for name in ("__id__", "name")}
        listened = others & heard or names & set(written(other.get("listen_in")))
        if listened and known.get(tag(other)) is PredictedOutcome.CHANGE:
            yield other
