"""``explain``: why a state runs at its position, and which file and line set each of its arguments and requisites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from statecore.analysis.explain_text import (
    DependentChunk,
    ExplainedArgument,
    ExplainedChunk,
    ExplainedRequisite,
    ExplainedState,
    Explanation,
    ExplanationHead,
    TopEntry,
)
from statecore.analysis.inspection.plan import run_matches
from statecore.analysis.provenance import Argument, History, Origin, Override, followed, include_chain
from statecore.analysis.requisites import references, targets_of, written
from statecore.compile.draft import Draft
from statecore.compile.graph import Graph
from statecore.engine.requisite import REQUISITES
from statecore.model.errors import SlsError, SlsFault
from statecore.model.nearest import close_matches
from statecore.model.types import Low
from statecore.model.values import redacted
from statecore.runtime.state_runs.state_system import RunParts

#: Arguments for the compiler, which the explanation shows in other fields.
_ELSEWHERE = frozenset({"order", "names", "use", "use_in"})


def explain(parts: RunParts, slses: Sequence[str] | None, wanted: str) -> Explanation:
    """Return the explanation of an ID, or of a state's name, as a map for JSON.

    The run consists of the SLS references ``slses``, or of the top file's if None. Raise SlsError if it does not
    compile or does not contain ``wanted``.
    """
    matches = run_matches(parts, slses)
    draft = Draft(opts=parts.run.opts, tree=parts.run.tree, matches=matches)
    seen = followed(draft, wanted)
    if seen.history is None and not seen.draft.faults:
        named = [str(low["__id__"]) for low in seen.draft.graph.chunks if str(low["name"]) == wanted]
        if named:
            seen = followed(draft, named[0])
    if seen.draft.faults:
        raise SlsError(seen.draft.faults)
    if seen.history is None:
        raise SlsError([_unknown(seen.draft, wanted, slses)])
    return _Explanation(parts, seen.draft, seen.history, slses is None).everything()


@dataclass(frozen=True, slots=True)
class _Explanation:
    """Makes the result of ``explain`` for one ID from the compiled state run and the recorded history of the ID."""

    parts: RunParts
    draft: Draft
    history: History
    #: True if the top file selected the SLS of the run.
    from_top: bool

    def everything(self) -> Explanation:
        own, graph = self.history, self.draft.graph
        positions = [at for at, low in enumerate(graph.chunks) if low["__id__"] == own.id]
        head: ExplanationHead = {
            "id": own.id,
            "sls": own.sls,
            "at": self._at(Origin("declared", own.sls, own.saltenv, (own.id,))),
            "included_through": [
                {"sls": includer, "includes": child, "at": self._at(Origin("", includer, env, ("include", entry)))}
                for includer, env, entry, child in include_chain(self.draft, own.sls)
            ],
            "extended_by": [{"sls": one.sls, "at": self._at(one)} for one in own.extended_by],
        }
        if self.from_top and (named := self._in_top()):
            head["named_by"] = named
        if own.excluded_at is not None:
            head["excluded_by"] = {"what": own.excluded_by, "sls": own.excluded_at.sls, "at": self._at(own.excluded_at)}
        return {**head, "states": [self._state(position) for position in positions]}

    def _in_top(self) -> TopEntry | None:
        """Return the top file's target that assigns the SLS (or the SLS that includes it) to the minion, with its ``file:line``.

        None if the top file lists neither.
        """
        chain = include_chain(self.draft, self.history.sls)
        asked = chain[-1][0] if chain else self.history.sls
        tree = self.parts.run.tree
        for own in tree.files.envs():
            if tree.locate("top", own) is None:
                continue
            for env, targets in tree.data("top", own).items():
                for target, rows in targets.items() if isinstance(targets, Mapping) else ():
                    listed = rows if isinstance(rows, list) else []
                    options = {key: value for row in listed if isinstance(row, Mapping) for key, value in row.items()}
                    meant = str(options.get("match", "compound")), str(options.get("delimiter", ":"))
                    for ref in listed if tree.matches_minion(str(target), *meant) else ():
                        if isinstance(ref, str) and asked in tree.find(ref, str(env)):
                            mark = tree.locate("top", own, str(env), str(target), ref)
                            return {"target": str(target), "sls": asked, "at": str(mark or "")}
        return None

    def _state(self, position: int) -> ExplainedState:
        graph = self.draft.graph
        low = graph.chunks[position]
        numbers = _numbers(graph)
        state = str(low["state"])
        return {
            "function": f"{state}.{low['fun']}",
            "name": str(low["name"]),
            "at": self._declared(low),
            "position": numbers[position],
            "of": len(numbers),
            "order": low["order"],
            "why": list(self._why(position, numbers)),
            "requisites": list(self._requisites(position, numbers)),
            "required_by": list(self._required_by(position, numbers)),
            "arguments": [self._argument(low, one) for one in self._arguments(low, state)],
        }

    # ----------------------------------------------------------------------------------------------------------------- order

    def _why(self, position: int, numbers: Mapping[int, int]) -> Iterator[str]:
        """Yield sentences that explain the state's position in the run: its ``order``, and the states that moved it."""
        graph = self.draft.graph
        low = graph.chunks[position]
        written_order = self.history.arguments.get((str(low["state"]), "order"))
        if written_order is not None:
            yield f"order {written_order.value} ({self._at(written_order.origin)}) counts as {low['order']}"
        elif self.parts.run.opts.get("state_auto_order", True):
            yield f"its order is {low['order']}: states without one are counted as they are declared"
        alone = _by_order(graph)[position]
        if numbers[position] == alone:
            return
        # A state runs before every state that requires it, so the lowest order of those states moves it forward
        # (docs/state-system.md#sort).
        waiting = [at for at in _below(graph, position) if graph.chunks[at]["order"] < low["order"]]
        later = [at for at in _above(graph, position) if graph.chunks[at]["order"] > low["order"]]
        would = f"(alone it would be {alone}.)"
        if numbers[position] < alone and waiting:
            first = min(waiting, key=self._order)
            yield f"it comes earlier {would}: {self._named(first, numbers)} waits for it, whose order is {self._order(first)}"
        elif numbers[position] > alone and later:
            last = max(later, key=self._order)
            yield f"it comes later {would}: it waits for {self._named(last, numbers)}, whose order is {self._order(last)}"
        else:
            yield f"others were moved past it {would}"

    def _order(self, position: int) -> float:
        order: float = self.draft.graph.chunks[position]["order"]
        return order

    # ------------------------------------------------------------------------------------------------------------ requisites

    def _requisites(self, position: int, numbers: Mapping[int, int]) -> Iterator[ExplainedRequisite]:
        graph = self.draft.graph
        low = graph.chunks[position]
        origins = [one for one in self.history.wanted if one.state == low["state"]]
        for reference in references(graph, position):
            pair = (reference.key, reference.value)
            known = next(
                (one for one in origins if one.kind == reference.kind and pair in written([one.reference])), None
            )
            if known is not None:
                origins.remove(known)
            row = REQUISITES[reference.kind]
            yield {
                "kind": reference.kind,
                "on": _reference(*pair),
                "by": self._by(known.origin) if known else "",
                "at": self._at(known.origin) if known else self._declared(low),
                "means": f"{row.met}: it {row.fires}; otherwise it {row.otherwise}",
                "states": [self._other(at, numbers) for at in sorted(reference.targets, key=lambda at: numbers[at])],
            }
        for key, value in written(low.get("listen")):
            yield {
                "kind": "listen",
                "on": _reference(key, value),
                "by": "",
                "at": self._place_of(low, "listen"),
                "means": "mod_watch at the end of the run when one changed; the order is not touched",
                "states": [self._other(at, numbers) for at in targets_of(graph.chunks, low, key, value)],
            }

    def _required_by(self, position: int, numbers: Mapping[int, int]) -> Iterator[DependentChunk]:
        graph = self.draft.graph
        for other in sorted(numbers, key=lambda at: numbers[at]):
            for need in graph.check_needs[other]:
                if position in need.targets:
                    yield {"kind": need.kind, **self._other(other, numbers)}

    def _by(self, origin: Origin) -> str:
        if origin.how == "declared":
            return ""
        if origin.how == "extend":
            return f"extend in {origin.sls}"
        return f"{origin.how} of {origin.keys[0]}"

    # ------------------------------------------------------------------------------------------------------------- arguments

    def _arguments(self, low: Low, state: str) -> Iterator[Argument]:
        for (own, name), argument in self.history.arguments.items():
            if own == state and name not in _ELSEWHERE and name in low:
                yield argument

    def _argument(self, low: Low, argument: Argument) -> ExplainedArgument:
        value, before, by, at = low[argument.name], list(argument.before), self._by(argument.origin), argument.origin
        if value != argument.value:
            # An entry of ``names`` may have its own arguments, which replace the state's.
            before, by = [*before, Override(argument.value, argument.origin)], "names"
            own = self.history
            keys = (own.id, argument.state, "names", str(low["name"]), argument.name)
            at = Origin("declared", own.sls, own.saltenv, keys)
        explained: ExplainedArgument = {"name": argument.name, "value": value, "by": by, "at": self._at(at)}
        if low.get("no_log") and argument.name != "no_log":
            return {**explained, "value": redacted(value)}
        if before:
            explained["instead_of"] = [
                {"value": one.value, "by": self._by(one.origin), "at": self._at(one.origin)} for one in before
            ]
        return explained

    # ---------------------------------------------------------------------------------------------------------------- places

    def _other(self, position: int, numbers: Mapping[int, int]) -> ExplainedChunk:
        low = self.draft.graph.chunks[position]
        return {
            "id": str(low["__id__"]),
            "function": f"{low['state']}.{low['fun']}",
            "at": self._declared(low),
            "position": numbers[position],
        }

    def _named(self, position: int, numbers: Mapping[int, int]) -> str:
        other = self._other(position, numbers)
        return f"{other['function']} {other['id']} ({other['at']})"

    def _declared(self, low: Low) -> str:
        return self._place_of(low)

    def _place_of(self, low: Low, *more: str) -> str:
        sls, saltenv = str(low.get("__sls__", "")), str(low.get("__env__", "base"))
        return self._at(Origin("", sls, saltenv, (str(low["__id__"]), str(low["state"]), *more)))

    def _at(self, origin: Origin) -> str:
        return str(self.parts.run.tree.locate(origin.sls, origin.saltenv, *_keys(origin)) or "")


def _keys(origin: Origin) -> tuple[str, ...]:
    return ("extend", *origin.keys) if origin.how == "extend" else origin.keys


def _numbers(graph: Graph) -> dict[int, int]:
    """Map of each low chunk's position in ``graph.chunks`` to its number in the run, from 1."""
    return {at: number for number, at in enumerate((node.position for node in graph.order if not node.check), 1)}


def _by_order(graph: Graph) -> dict[int, int]:
    """Map of each low chunk's position in ``graph.chunks`` to the number (from 1) that it would have in the run if no
    state had requisites.
    """
    positions = sorted(range(len(graph.chunks)), key=lambda at: (graph.chunks[at]["order"], graph.tags[at]))
    return {at: number for number, at in enumerate(positions, 1)}


def _above(graph: Graph, position: int) -> set[int]:
    """Return the set of positions in ``graph.chunks`` of the low chunks that must run before that at ``position``."""
    found: set[int] = set()
    todo = [position]
    while todo:
        at = todo.pop()
        own = len(graph.check_needs[at])
        for index, need in enumerate(graph.needs[at]):
            if need.kind != "prereq" or index >= own:
                new = [each for each in need.targets if each not in found]
                found.update(new)
                todo += new
    return found


def _below(graph: Graph, position: int) -> set[int]:
    """Return the set of positions in ``graph.chunks`` of the low chunks that must run after that at ``position``."""
    followers: dict[int, list[int]] = {}
    for at, needs in enumerate(graph.needs):
        own = len(graph.check_needs[at])
        for index, need in enumerate(needs):
            for target in need.targets if need.kind != "prereq" or index >= own else ():
                followers.setdefault(target, []).append(at)
    found: set[int] = set()
    todo = [position]
    while todo:
        new = [at for at in followers.get(todo.pop(), ()) if at not in found]
        found.update(new)
        todo += new
    return found


def _reference(key: str, value: str) -> str:
    return value if key == "id" else f"{key}: {value}"


def _unknown(draft: Draft, wanted: str, slses: Sequence[str] | None) -> SlsFault:
    ids = sorted({str(low["__id__"]) for low in draft.graph.chunks})
    near = close_matches(wanted, ids, n=1)
    where = ", ".join(slses) if slses else "the top file's run"
    hint = f"the nearest is '{near[0]}'" if near else f"there is {', '.join(ids[:10]) or 'no ID at all'}"
    return SlsFault(f"there is no ID '{wanted}' in {where}", hint=hint)
