"""State machine that decides the order of a state run, without side effects: ``step()`` returns the next instruction,
and ``feed()`` records the running dictionary's entry that the instruction gave.

The machine walks the run list in order. Before a state it evaluates the state's requisites, and their requisites
before them. It keeps its own stack, so a chain of ten thousand states causes no recursion error. A prereq's target is
first run as a check in test mode, and the check's entry is kept in ``foreseen``; then the state with the prereq runs;
then the target itself.

A state that runs in a parallel process is reported by ``begun()``, and its entry later by ``feed()``. States that need
it wait. Parallel states that need it are put off, so that other states run meanwhile.

Source: docs/state-system.md#requisite-evaluation
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from statecore.compile.graph import Graph, Need, Node
from statecore.engine.report import requisite_name
from statecore.engine.requisite import NOT_RUN, Decision, Seen, decide, look
from statecore.model.types import Low, Running, RunningEntry


class CallState(NamedTuple):
    """Instruction of the state engine: call the state function of the low chunk ``low``.

    If ``watch`` is True (a state that it watches has changed) and the call itself changed nothing, call mod_watch too.
    """

    node: Node
    low: Low
    watch: bool = False
    #: A watched state changed, but its return has ``skip_req``: mod_watch is not called, and the comment says so.
    unwatched: bool = False
    #: Requisite kind -> chunks that it names (``__reqs__`` of mod_watch).
    requisites: Mapping[str, list[Low]] = MappingProxyType({})


class LeaveOut(NamedTuple):
    """Instruction of the state engine: do not call the state function of ``low``; record ``result`` and ``comment`` as
    its entry of the running dictionary.
    """

    node: Node
    low: Low
    result: bool
    comment: str


class Adopt(NamedTuple):
    """Instruction of the state engine: do not call the state function of ``low``; record ``entry``, the running
    dictionary's entry of its test run, as its result.

    It is given for the target of a ``prereq`` that was checked in test mode and one of whose requisites failed
    afterwards.
    """

    node: Node
    low: Low
    entry: RunningEntry


class Wait(NamedTuple):
    """Instruction of the state engine: wait until one of the parallel states ``nodes`` has ended."""

    nodes: frozenset[Node]


Instruction: TypeAlias = CallState | LeaveOut | Adopt

#: Target lists of this length or more are evaluated once and remembered: each state of an SLS may require a whole other SLS.
_SHARED = 8


@dataclass(slots=True)
class _Visit:
    """A node of the run list (a low chunk, to run or to check for a prereq) on the machine's stack: it waits there
    until its requisites are evaluated.
    """

    node: Node
    #: Nodes to evaluate before this node. An iterator, so each is evaluated once.
    todo: Iterator[Node]


class Machine:
    """Decides which state of a requisite graph runs next; it calls no state itself.

    ``stop(low, entry)`` returns True if this low chunk's entry of the running dictionary ends the whole run
    (failhard). ``wanted(low)`` returns True for the low chunks to run, besides their requisites; None: run all.
    """

    def __init__(
        self,
        graph: Graph,
        stop: Callable[[Low, RunningEntry], bool] = lambda _low, _entry: False,
        wanted: Callable[[Low], bool] | None = None,
    ) -> None:
        self.running: Running = {}
        #: Tag -> entry of the check (in test mode) of a prereq's target.
        self.foreseen: Running = {}
        self.stopped = False
        self._graph = graph
        self._stop = stop
        self._wanted = wanted
        self._next = 0
        self._stack: list[_Visit] = []
        self._open: set[Node] = set()
        #: Nodes that run in parallel processes.
        self._busy: set[Node] = set()
        #: Nodes put off until the parallel states that they need have ended, in order.
        self._put_off: dict[Node, None] = {}
        self._complete: set[int] = set()
        self._seen_in_group: dict[tuple[str, int], set[Seen]] = {}

    def step(self) -> Instruction | Wait | None:
        """Return the next instruction of the run (CallState, LeaveOut or Adopt), or a Wait for parallel states; None
        when the run is over.

        The caller carries out the instruction and passes the state's entry of the running dictionary to ``feed``. For
        a state that it starts in a child process, it calls ``begun`` first and ``feed`` when the child has ended. It
        answers a Wait by ``feed`` for one of the Wait's nodes.
        """
        while not self.stopped:
            if not self._stack and not self._begin():
                break
            visit = self._stack[-1]
            if self._done(visit.node):
                self._leave()
                continue
            needed = next((node for node in visit.todo if not self._done(node)), None)
            if needed is None:
                return self._decide(visit.node)
            if needed in self._open:
                return self._cycle(visit.node, needed)
            if needed in self._busy or needed in self._put_off:
                if self._yields(visit.node, needed):
                    continue
                return Wait(frozenset({needed}))
            self._enter(needed)
        return Wait(frozenset(self._busy)) if self._busy else None

    def begun(self, instruction: CallState) -> None:
        """Record that the state of this instruction now runs in a child process. When the child has ended, the caller
        passes its entry to ``feed``.
        """
        self._busy.add(instruction.node)
        self._leave()

    def _yields(self, node: Node, needed: Node) -> bool:

        if needed in self._busy and not self._graph.chunks[node.position].get("parallel"):
            # The iterator has passed ``needed``: a new one asks for it again.
            self._stack[-1] = _Visit(node, self._todo(node))
            return False
        while self._stack:
            self._put_off[self._stack[-1].node] = None
            self._leave()
        return True

    def feed(self, instruction: Instruction, entry: RunningEntry) -> None:
        """Record ``entry``, the running dictionary's entry of the state whose instruction was carried out."""
        node = instruction.node
        self._busy.discard(node)
        tag = self._graph.tags[node.position]
        if node.check:
            self.foreseen[tag] = entry
        if not node.check or isinstance(instruction, LeaveOut):
            self.running[tag] = entry
            self.stopped = self.stopped or self._stop(instruction.low, entry)
        if self._stack and self._stack[-1].node == node:
            self._leave()

    def ready(self, wanted: Callable[[Low], bool]) -> list[Low]:
        """Return the low chunks that ``wanted`` accepts and that could run now: not yet run, and their requisites are
        met.
        """
        return [low for position, low in enumerate(self._graph.chunks) if wanted(low) and self._may_run(Node(position))]

    def _may_run(self, node: Node) -> bool:
        if self._done(node) or node in self._busy:
            return False
        evaluated = all(
            self._done(Node(target, kind == "prereq")) for kind, targets in self._needs(node) for target in targets
        )
        return evaluated and decide(self._what_is_seen(node)) not in NOT_RUN

    def check(self) -> None:
        """Assert, for tests, that the machine's data agree: the nodes (states of the run list) recorded as waiting for
        their requisites are those on its stack, and none of them has a result yet. Raise AssertionError otherwise.
        """
        assert self._open == {visit.node for visit in self._stack}
        assert not any(self._done(node) for node in self._open)

    def _begin(self) -> bool:

        for node in self._put_off:
            if not any(need in self._busy or need in self._put_off for need in self._direct(node)):
                del self._put_off[node]
                self._enter(node)
                return True
        order = self._graph.order
        while self._next < len(order):
            node = order[self._next]
            if not (self._done(node) or node in self._busy or node in self._put_off) and self._asked_for(node.position):
                self._enter(node)
                return True
            self._next += 1
        return False

    def _direct(self, node: Node) -> Iterator[Node]:
        return (Node(target, kind == "prereq") for kind, targets in self._needs(node) for target in targets)

    def _asked_for(self, position: int) -> bool:
        return self._wanted is None or self._wanted(self._graph.chunks[position])

    def _enter(self, node: Node) -> None:
        self._stack.append(_Visit(node, self._todo(node)))
        self._open.add(node)

    def _leave(self) -> None:
        self._open.discard(self._stack.pop().node)

    def _done(self, node: Node) -> bool:
        return self._graph.tags[node.position] in (self.foreseen if node.check else self.running)

    def _needs(self, node: Node) -> tuple[Need, ...]:
        return (self._graph.check_needs if node.check else self._graph.needs)[node.position]

    def _todo(self, node: Node) -> Iterator[Node]:
        for kind, targets in self._needs(node):
            check = kind == "prereq"
            if not check and id(targets) in self._complete:
                continue
            for target in targets:
                yield Node(target, check)
            if not check:
                # The loop above ended, so all targets are evaluated. The id is safe to keep: the graph holds the tuple.
                self._complete.add(id(targets))

    def _decide(self, node: Node) -> Instruction:
        low = self._graph.chunks[node.position]
        decision = decide(self._what_is_seen(node)) if self._needs(node) else Decision.RUN
        if decision in NOT_RUN:
            foreseen = self.foreseen.get(self._graph.tags[node.position])
            if decision is Decision.FAIL and foreseen is not None and not node.check:
                return Adopt(node, low, {**foreseen, "changes": {}})
            result, comment = NOT_RUN[decision]
            if decision is Decision.FAIL:
                comment = comment.format(failed=", ".join(self._failed(node)))
            return LeaveOut(node, low, result, comment)
        if node.check:
            return CallState(node, low)
        return CallState(
            node,
            low,
            watch=decision is Decision.WATCH,
            unwatched=decision is Decision.RUN_UNWATCHED,
            requisites=self._requisites(node) if decision is Decision.WATCH else {},
        )

    def _what_is_seen(self, node: Node) -> dict[str, set[Seen]]:
        by_kind: dict[str, set[Seen]] = {}
        for kind, targets in self._needs(node):
            by_kind.setdefault(kind, set()).update(self._look(kind, targets))
        return by_kind

    def _look(self, kind: str, targets: tuple[int, ...]) -> set[Seen]:
        if len(targets) < _SHARED or kind == "prereq":
            return look(kind, self._entries(kind, targets))
        known = self._seen_in_group.get((kind, id(targets)))
        if known is None:
            known = self._seen_in_group[(kind, id(targets))] = look(kind, self._entries(kind, targets))
        return known

    def _entries(self, kind: str, targets: tuple[int, ...]) -> list[RunningEntry]:
        tags = self._graph.tags
        source = self.foreseen if kind == "prereq" else self.running
        return [source[tags[target]] for target in targets]

    def _requisites(self, node: Node) -> dict[str, list[Low]]:
        """Map of each kind of requisite of a state ("require", "watch" ...) to the low chunks that the requisites name,
        each once.
        """
        named: dict[str, dict[int, None]] = {}
        for kind, targets in self._needs(node):
            named.setdefault(kind, {}).update(dict.fromkeys(targets))
        return {kind: [self._graph.chunks[target] for target in targets] for kind, targets in named.items()}

    def _failed(self, node: Node) -> list[str]:
        """Return "SLS.ID" of each failed requisite of a state, each once, in the order of evaluation."""
        names: dict[str, object] = {}
        for _kind, targets in self._needs(node):
            for target in targets:
                tag = self._graph.tags[target]
                entry = self.foreseen.get(tag) or self.running.get(tag)
                if entry is not None and entry["result"] is False:
                    names[requisite_name(self._graph.chunks[target])] = None
        return list(names)

    def _cycle(self, node: Node, needed: Node) -> LeaveOut:

        nodes = [visit.node for visit in self._stack]
        ring = [*nodes[nodes.index(needed) :], needed]
        names = " -> ".join(requisite_name(self._graph.chunks[each.position]) for each in ring)
        low = self._graph.chunks[node.position]
        return LeaveOut(node, low, False, f"Recursive requisite found: {names}")
