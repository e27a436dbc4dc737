"""Compiler pass: sort the low chunks into the run list.

A chunk comes after its requisites. Among the chunks whose requisites are all listed, the next is the one with the
lowest ``order``, where a chunk counts with the lowest ``order`` of the chunks that wait for it. Ties are broken by
state module, name and function. A prereq's target is listed twice: for its check before the prereq's chunk, for its run
after it. This is Salt 3008's order. The engine runs the list as it is.

Source: docs/state-system.md#sort, docs/state-system.md#order.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

from statecore.compile.draft import Draft
from statecore.compile.graph import Graph, Node, cycle
from statecore.compile.requisites import located_fault
from statecore.model.types import Low

#: Distance between the highest order in the tree and ``order: last``.
_BEYOND = 1_000_000

#: Kind of requisite -> its weight. The chunks that wait for one chunk are looked at in order of declaration; the order
#: of a waiting chunk counts if its requisite weighs at least as much as all before it.
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
    """Compiler pass: put the low chunks in the order of the run, with a number as ``order`` in each. Return the new
    draft.

    The target of a ``prereq`` is listed twice. A cycle of requisites is a fault.
    """
    nodes = order(draft.graph)
    ring = cycle(draft.graph) if nodes is None else None
    if nodes is None or ring is not None:
        assert ring is not None, "what cannot be ordered has a ring"
        return draft.with_faults([located_fault(draft, ring)])
    _mark(draft.graph)
    chunks = draft.graph.chunks
    listed = tuple(chunks[node.position] for node in nodes)
    return replace(draft, chunks=listed, graph=draft.graph._replace(order=nodes))


def order(graph: Graph) -> tuple[Node, ...] | None:
    """Return the run list of a requisite graph: its nodes (low chunks to run or to check) in order of the run; None if
    there is a cycle.

    The ``order`` of each low chunk becomes a number.
    """
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
    """Which low chunks must be listed after which, while the run list is sorted.

    Chunks that are required together form one group, so that a requisite on a whole SLS costs its states once.
    """

    #: Check nodes of the chunks that prereqs name.
    checks: tuple[Node, ...]
    groups: list[tuple[Node, ...]] = field(default_factory=list)
    #: Node -> groups that must be listed before it. Most nodes wait for nothing and are not in the map.
    needs: dict[Node, set[int]] = field(default_factory=dict)
    #: Group -> nodes that wait for it.
    waiting_for: list[list[Node]] = field(default_factory=list)
    member_of: dict[Node, list[int]] = field(default_factory=dict)
    #: Group -> (position of the chunk that declares the requisite, of the chunk that waits, weight of the requisite).
    reasons: list[list[tuple[int, int, int]]] = field(default_factory=list)
    _known: dict[tuple[object, ...], int] = field(default_factory=dict)

    def add(self, node: Node, kind: str, targets: tuple[int, ...], declared: int) -> None:
        """Record that a low chunk must be listed after ``targets``.

        ``declared`` is the position of the chunk whose requisite of this ``kind`` demands it.
        """
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
    """The number ``order`` of each low chunk, and the sort keys of the run list."""

    def __init__(self, graph: Graph, waits: _Waits) -> None:
        self._graph, self._waits = graph, waits
        self._cap = _cap(graph.chunks)
        self._settled: set[int] = set()
        #: Cache: groups that a node is in -> the lowest order that waits for them. States of one SLS have the same
        #: groups.
        self._lowest: dict[tuple[int, ...], float] = {}

    def rank(self, node: Node) -> tuple[tuple[float, float], str, str, Node]:
        """Return the sort key by which the next low chunk is chosen among those whose requisites are all listed."""
        low = self._graph.chunks[node.position]
        own = self._settle(node.position, low)
        tag = self._graph.tags[node.position]
        label = f"{low['state']}{low['name']}{low['fun']}"
        return (min(own, self._waited_for(node)), own), label, f"{tag}_|-__prereq_test__" if node.check else tag, node

    def _settle(self, position: int, low: Low) -> float:

        if position not in self._settled:
            self._settled.add(position)
            number = self._number(low)
            if number_in_names := low.pop("name_order", 0):
                number += number_in_names / 10000.0
            low["order"] = number + self._cap + _BEYOND if number < 0 else number
        own: float = low["order"]
        return own

    def _number(self, low: Low) -> float:

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
                # A chunk without an order (state_auto_order off) does not move its requisites forward.
                if "order" in self._graph.chunks[position]:
                    lowest = min(lowest, self._number(self._graph.chunks[position]))
        return lowest


def _cap(chunks: Iterable[Low]) -> int:
    """Return the order of the chunks that declare none: 100 after the highest declared order."""
    cap = 1
    for low in chunks:
        declared = low.get("order")
        if isinstance(declared, int) and declared > cap - 1 and declared > 0:
            cap = declared + 100
    return cap


def _mark(graph: Graph) -> None:
    """Set ``__prereq__`` and ``__prerequiring__`` in the chunks that take part in a prereq, as Salt does."""
    for position, needs in enumerate(graph.check_needs):
        for need in needs:
            if need.kind == "prereq":
                graph.chunks[position]["__prerequiring__"] = True
                for target in need.targets:
                    graph.chunks[target]["__prereq__"] = True
