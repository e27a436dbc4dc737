"""What a run would do, state by state, from a run in test mode and the plans of native states. Pure.

A verdict is about what can be known beforehand: a state that reacts to one of which nobody knows whether it changes cannot be
known either, and one that fails now but comes after something that changes may well not fail then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from statecore.analysis.requisites import written
from statecore.compile.graph import Graph
from statecore.types import FileChange, Low, Plan, Running, RunningEntry, tag, untag

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


#: Kinds without which the state is left out -> what must become of one of their targets. In test mode, where nothing succeeds
#: before it was done, the engine cannot know.
_GATES: Mapping[str, str] = {
    "onchanges": "change",
    "onchanges_any": "change",
    "onfail": "fail",
    "onfail_any": "fail",
    "onfail_all": "fail",
}


class Verdict(StrEnum):
    """What becomes of a state."""

    CHANGE = "change"
    UNKNOWN = "unknown"
    FAIL = "fail"
    UNCHANGED = "unchanged"


#: In the order of a summary, with its words.
WORDS: Mapping[Verdict, str] = {
    Verdict.CHANGE: "to change",
    Verdict.UNKNOWN: "cannot be known before",
    Verdict.FAIL: "would fail",
    Verdict.UNCHANGED: "unchanged",
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
    verdict: Verdict
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
    known: dict[str, Verdict] = {}
    positions = {name: position for position, name in enumerate(graph.tags)}
    found = []
    for name, entry in sorted(running.items(), key=lambda item: int(item[1].get("__run_num__", 0))):
        found.append(_of(graph, positions.get(name), name, entry, plans, known))
        known[name] = found[-1].verdict
    return found


def summary(verdicts: Sequence[str]) -> str:
    """``3 to change, 1 cannot be known before, 20 unchanged``."""
    told = {verdict: verdicts.count(verdict) for verdict in WORDS}
    shown = {verdict for verdict, number in told.items() if number} | {Verdict.CHANGE, Verdict.UNCHANGED}
    return ", ".join(f"{told[verdict]} {words}" for verdict, words in WORDS.items() if verdict in shown)


def _of(
    graph: Graph, position: int | None, name: str, entry: RunningEntry, plans: Plans, known: Mapping[str, Verdict]
) -> Prediction:
    low, reasons = _listener(graph, name, known) if position is None else (graph.chunks[position], [])
    chunk_id = untag(name)
    own = plans.get((chunk_id.state, chunk_id.id, chunk_id.name), {})
    steps = [step for plan in own.values() for step in plan.steps]
    verdict = _verdict(entry, chunk_id.state, bool(steps), ran=entry.get("__state_ran__", True))
    comment = str(entry["comment"])
    if position is not None:
        reasons = list(_reasons(graph, position, known, {Verdict.CHANGE}, {Verdict.FAIL}))
        maybe = list(_reasons(graph, position, known, {Verdict.UNKNOWN}, {Verdict.UNKNOWN}))
        if verdict is not Verdict.UNCHANGED and _shut(graph, position, known):
            verdict, comment = Verdict.UNCHANGED, "What it waits for does not happen"
        if verdict is Verdict.FAIL and _may_recover(graph, position, entry, known):
            verdict = Verdict.UNKNOWN
        elif verdict is Verdict.UNCHANGED and maybe:
            verdict, reasons = Verdict.UNKNOWN, maybe
    if verdict in (Verdict.FAIL, Verdict.UNCHANGED):
        reasons = []
    files = tuple(step.file for step in steps if step.file is not None)
    what = tuple(step.what for step in steps)
    if low.get("no_log"):
        # Comment and changes were masked by the engine.
        files, what = tuple(replace(file, shown=False) for file in files), ()
    return Prediction(name, low, verdict, comment, entry["changes"], what, files, tuple(reasons))


def _verdict(entry: RunningEntry, state: str, steps: bool, *, ran: bool) -> Verdict:
    if entry["result"] is False:
        return Verdict.FAIL
    if entry["changes"]:
        return Verdict.CHANGE
    if entry["result"] is None and ran:
        return Verdict.CHANGE if steps and state not in _RUN_SOMETHING else Verdict.UNKNOWN
    return Verdict.UNCHANGED


def _shut(graph: Graph, position: int, known: Mapping[str, Verdict]) -> bool:
    """Whether it waits for something, and nothing of that happens as far as anybody knows."""
    needs = [need for need in graph.check_needs[position] if need.kind in _GATES]
    return bool(needs) and not any(
        known.get(graph.tags[at]) in (_GATES[need.kind], Verdict.UNKNOWN) for need in needs for at in need.targets
    )


def _may_recover(graph: Graph, position: int, entry: RunningEntry, known: Mapping[str, Verdict]) -> bool:
    """Whether what makes it fail now may be gone when its turn comes."""
    above = {known.get(graph.tags[at]) for at in _above(graph, position)}
    if not entry.get("__state_ran__", True):
        # It was left out: it fails with those that it requires.
        direct = {known.get(graph.tags[at]) for need in graph.needs[position] for at in need.targets}
        return Verdict.FAIL not in direct
    return bool(above & {Verdict.CHANGE, Verdict.UNKNOWN})


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
    graph: Graph, position: int, known: Mapping[str, Verdict], changing: set[Verdict], failing: set[Verdict]
) -> Iterator[Reason]:
    for need in graph.check_needs[position]:
        if need.kind in _REACTIONS:
            for at in need.targets:
                wanted = changing if _REACTIONS[need.kind] else failing
                # A prereq's target comes later: it is known only to have been foreseen.
                if known.get(graph.tags[at], Verdict.CHANGE if need.kind == "prereq" else None) in wanted:
                    other = graph.chunks[at]
                    yield Reason(need.kind, str(other["state"]), str(other["__id__"]))


def _listener(graph: Graph, name: str, known: Mapping[str, Verdict]) -> tuple[Low, list[Reason]]:
    """The chunk that reacts at the end of the run, and to what."""
    own = untag(name)
    wanted = own.id.removeprefix(_LISTENER)
    for low in graph.chunks:
        if (low["state"], str(low["__id__"]), str(low["name"])) == (own.state, wanted, own.name):
            return low, [
                Reason("listen", str(other["state"]), str(other["__id__"])) for other in _heard(graph, low, known)
            ]
    return {"state": own.state, "fun": own.fun, "name": own.name, "__id__": own.id}, []


def _heard(graph: Graph, low: Low, known: Mapping[str, Verdict]) -> Iterator[Low]:
    heard = set(written(low.get("listen")))
    names = {(key, str(low[field])) for key in ("id", str(low["state"])) for field in ("__id__", "name")}
    for other in graph.chunks:
        others = {(key, str(other[field])) for key in ("id", str(other["state"])) for field in ("__id__", "name")}
        listened = others & heard or names & set(written(other.get("listen_in")))
        if listened and known.get(tag(other)) is Verdict.CHANGE:
            yield other
