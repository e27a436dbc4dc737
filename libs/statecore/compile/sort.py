"""Pass: the run list (seed 001): requisites first, and otherwise by ``order``, then by what the chunks are.

A state whose requisites have all been listed is ready. Of those that are ready the one is next whose order, or the order of a
state that waits for it, is the lowest; a prereq's target is ready for its check before it is ready for its run. That is Salt
3008's order, and the list is the order of the run: nothing is left for the engine to rearrange.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from typing import Any

from statecore.compile.draft import Draft
from statecore.compile.graph import Graph, Node, cycle
from statecore.compile.requisites import located
from statecore.model.types import Low

#: Lies between the highest order in the tree and ``last``.
_BEYOND = 1_000_000

#: Kind of a requisite -> its weight. The states that wait for one are looked at in order of declaration; one counts if it
#: waits for a reason at least as weighty as any before it.
_WEIGHTS: Mapping[str, int] = {
    kind: weight
    for weight, kind in enumerate(
        (
            *("onfail", "onfail_any", "onfail_all", "require", "require_any", "onchanges", "onchanges_any"),
            *("watch", "watch_any", "prereq"),
        )
    )
}

_NEVER = float("inf")


def sort(draft: Draft) -> Draft:
    """The draft with its run list: chunks as they will run, a prereq's target twice; ``order`` is a number in each.

    Fault: requisites that lead back to their own state.
    """
    nodes = order(draft.graph)
    ring = cycle(draft.graph) if nodes is None else None
    if nodes is None or ring is not None:
        assert ring is not None, "what cannot be ordered has a ring"
        return draft.with_faults([located(draft, ring)])
    _mark(draft.graph)
    chunks = draft.graph.chunks
    listed = tuple(chunks[node.position] for node in nodes)
    return replace(draft, chunks=listed, graph=draft.graph._replace(order=nodes))


def order(graph: Graph) -> tuple[Node, ...] | None:
    """The nodes in order of the run; None when there is no such order. Sets ``order`` of the chunks to numbers."""
    waits = _waits(graph)
    orders = _Orders(graph, waits)
    blocking = [len(group) for group in waits.groups]
    missing = {node: len(groups) for node, groups in waits.needs.items()}
    nodes = [*graph.order, *waits.checks]
    ready = [orders.rank(node) for node in nodes if node not in missing]
    if not missing:
        return tuple([rank[-1] for rank in sorted(ready)])
    heapify(ready)
    listed: list[Node] = []
    while ready:
        node = heappop(ready)[-1]
        listed.append(node)
        for group in waits.member_of.get(node, ()):
            blocking[group] -= 1
            if blocking[group]:
                continue
            for waiting in waits.waiting_for[group]:
                missing[waiting] -= 1
                if not missing[waiting]:
                    heappush(ready, orders.rank(waiting))
    return tuple(listed) if len(listed) == len(nodes) else None


@dataclass(slots=True)
class _Waits:
    """Who waits for whom. Nodes that are required together are a group: a whole SLS costs its states once."""

    #: What prereqs name, as checks.
    checks: tuple[Node, ...]
    groups: list[tuple[Node, ...]] = field(default_factory=list)
    #: Node -> groups that must have been listed before it, each once. Most nodes wait for nothing and are not here.
    needs: dict[Node, set[int]] = field(default_factory=dict)
    #: Group -> nodes that wait for it.
    waiting_for: list[list[Node]] = field(default_factory=list)
    member_of: dict[Node, list[int]] = field(default_factory=dict)
    #: Group -> (position of the chunk that says so, of the chunk that waits, weight of the reason).
    reasons: list[list[tuple[int, int, int]]] = field(default_factory=list)
    _known: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def add(self, node: Node, kind: str, targets: tuple[int, ...], declared: int) -> None:
        """The node waits for these, for a reason of this kind that the chunk at ``declared`` gives."""
        check = kind == "prereq"
        group = self._known.get((targets, check))
        if group is None:
            group = self._known[targets, check] = len(self.groups)
            self.groups.append(tuple(Node(target, check) for target in targets))
            self.waiting_for.append([])
            self.reasons.append([])
            for member in self.groups[group]:
                self.member_of.setdefault(member, []).append(group)
        self.reasons[group].append((declared, node.position, _WEIGHTS[kind]))
        needs = self.needs.setdefault(node, set())
        if group not in needs:
            needs.add(group)
            self.waiting_for[group].append(node)


def _waits(graph: Graph) -> _Waits:
    checked = {
        target for needs in graph.check_needs for need in needs if need.kind == "prereq" for target in need.targets
    }
    waits = _Waits(checks=tuple(Node(position, check=True) for position in sorted(checked)))
    for position, needs in enumerate(graph.check_needs):
        for need in needs:
            for node in _nodes(position, checked):
                waits.add(node, need.kind, need.targets, position)
            if need.kind == "prereq":
                for target in need.targets:
                    waits.add(Node(target), "require", (position,), position)
    return waits


def _nodes(position: int, checked: Container[int]) -> tuple[Node, ...]:
    return (Node(position), Node(position, check=True)) if position in checked else (Node(position),)


class _Orders:
    """Numbers for ``order``, and ranks of nodes."""

    def __init__(self, graph: Graph, waits: _Waits) -> None:
        self._graph, self._waits = graph, waits
        self._cap = _cap(graph.chunks)
        self._settled: set[int] = set()
        #: Groups that a node is in -> the lowest order that waits for these: states of one SLS have the same groups.
        self._lowest: dict[tuple[int, ...], float] = {}

    def rank(self, node: Node) -> tuple[tuple[float, float], str, str, Node]:
        """What nodes that are ready are compared by."""
        low = self._graph.chunks[node.position]
        own = self._settle(node.position, low)
        tag = self._graph.tags[node.position]
        label = f"{low['state']}{low['name']}{low['fun']}"
        return (min(own, self._waited_for(node)), own), label, f"{tag}_|-__prereq_test__" if node.check else tag, node

    def _settle(self, position: int, low: Low) -> float:
        """The chunk's own order as a number: a negative one counts from the end, names follow each other."""
        if position not in self._settled:
            self._settled.add(position)
            number = self._number(low)
            if place := low.pop("name_order", 0):
                number += place / 10000.0
            low["order"] = number + self._cap + _BEYOND if number < 0 else number
        own: float = low["order"]
        return own

    def _number(self, low: Low) -> float:
        """The chunk's order as declared: a number for ``first``, ``last``, nothing and what is no number."""
        declared = low.get("order")
        if not isinstance(declared, int | float):
            declared = {"first": 0, "last": self._cap + _BEYOND}.get(str(declared), self._cap)
            low["order"] = declared
        return declared

    def _waited_for(self, node: Node) -> float:
        groups = tuple(self._waits.member_of.get(node, ()))
        if not groups:
            return _NEVER
        known = self._lowest.get(groups)
        if known is None:
            known = self._lowest[groups] = self._lowest_of(groups)
        return known

    def _lowest_of(self, groups: Iterable[int]) -> float:
        reasons = [reason for group in groups for reason in self._waits.reasons[group]]
        lowest, weightiest = _NEVER, -1
        for _declared, position, weight in sorted(reasons):
            if weight >= weightiest:
                weightiest = weight
                # One that has no order yet hastens nothing (state_auto_order off).
                if "order" in self._graph.chunks[position]:
                    lowest = min(lowest, self._number(self._graph.chunks[position]))
        return lowest


def _cap(chunks: Iterable[Low]) -> int:
    """Where chunks without an order begin."""
    cap = 1
    for low in chunks:
        declared = low.get("order")
        if isinstance(declared, int) and declared > cap - 1 and declared > 0:
            cap = declared + 100
    return cap


def _mark(graph: Graph) -> None:
    """Tells in the chunks who takes part in a prereq, as Salt does."""
    for position, needs in enumerate(graph.check_needs):
        for need in needs:
            if need.kind == "prereq":
                graph.chunks[position]["__prerequiring__"] = True
                for target in need.targets:
                    graph.chunks[target]["__prereq__"] = True
