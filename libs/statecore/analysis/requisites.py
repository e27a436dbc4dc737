"""Find requisites that cannot work: cycles, contradictions, waits for events that never happen, patterns without a
match. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from statecore.analysis.finding import Remark
from statecore.compile.graph import KINDS, Graph, Node, link
from statecore.model.types import Low

#: Functions that never report a change: a state with ``onchanges`` on one of them never runs.
_NEVER_CHANGES = frozenset(
    {"test.nop", "test.succeed_without_changes", "test.fail_without_changes", "test.show_notification"}
    | {"test.check_pillar", "file.exists", "file.missing"}
)

#: Functions that never fail: a state with ``onfail`` on one of them never runs.
_NEVER_FAILS = frozenset({"test.nop", "test.succeed_without_changes", "test.succeed_with_changes"})

_GLOB = frozenset("*?[")

_SUCCESS = frozenset({"require", "watch"})


class Link(NamedTuple):
    """One requisite in a cycle: the chunk that waits, the kind of the requisite, and the chunk that declares it."""

    low: Low
    #: The requisite by which this chunk waits for the next one.
    kind: str
    #: The chunk that declares the requisite: this one, or for a prereq the next one.
    by: Low


class Reference(NamedTuple):
    """One reference of a requisite, as written, with the chunks that it refers to."""

    kind: str
    #: A state module, ``sls`` or ``id``; "id" for a bare ID.
    key: str
    value: str
    #: Positions of the chunks in the graph.
    targets: tuple[int, ...]


def remarks(graph: Graph, reacts: Callable[[str], bool]) -> Iterator[Remark]:
    """Yield a remark for each requisite that cannot work: a contradiction, a wait for an event that never happens, a
    watch without mod_watch, a pattern without a match. Cycles and references to nothing are left to the compiler.

    In ``graph``, watches must not have been turned into requires. ``reacts(state)`` tells whether the state module has
    mod_watch.
    """
    for position, low in enumerate(graph.chunks):
        keys = (str(low["__id__"]), str(low["state"]))
        impossible = list(_contradiction(graph, position, keys))
        yield from impossible or _never(graph, position, keys)
        for kind in ("watch", "watch_any"):
            if low.get(kind) and not reacts(low["state"]):
                text = f"'{low['state']}' has no mod_watch: this {kind} means {kind.replace('watch', 'require')}"
                yield Remark("watch-without-reaction", text, low, (*keys, kind))
        for kind in KINDS:
            for key, value in written(low.get(kind)):
                # The compiler reports a pattern of IDs without a match, but not a pattern of SLS.
                if key == "sls" and _GLOB & set(value) and not targets_of(graph.chunks, low, key, value):
                    text = f"no state matches '{kind}: {key}: {value}'"
                    yield Remark("unmatched-glob", text, low, (*keys, kind))


def listening_to_nothing(chunks: Sequence[Low]) -> Iterator[Remark]:
    """Yield a remark for each ``listen`` and ``listen_in`` that refers to no state. A run reports these only at its
    end.
    """
    for low in chunks:
        for kind in ("listen", "listen_in"):
            for key, value in written(low.get(kind)):
                if not _GLOB & set(value) and not targets_of(chunks, low, key, value):
                    text = f"nothing in the run is meant by '{kind}: {key}: {value}'"
                    yield Remark("requisite-to-nothing", text, low, (str(low["__id__"]), str(low["state"]), kind))


def references(graph: Graph, position: int) -> list[Reference]:
    """Return the references in the requisites of the low chunk at ``position`` of ``graph.chunks``: each as written,
    with the positions of the low chunks that it refers to.
    """
    low = graph.chunks[position]
    needs = graph.check_needs[position]
    named = [(kind, key, value) for kind in KINDS for key, value in written(low.get(kind))]
    if len(needs) == len(named):
        # There is one need for each reference, in the same order, unless a reference has no targets (an empty SLS).
        return [Reference(*one, need.targets) for one, need in zip(named, needs, strict=True)]
    return [Reference(kind, key, value, targets_of(graph.chunks, low, key, value)) for kind, key, value in named]


def written(value: object) -> Iterator[tuple[str, str]]:
    """Yield (state module, ID) for each reference in a requisite's value; the module is "id" for a bare ID."""
    for item in value if isinstance(value, list) else [value] if value else []:
        if isinstance(item, Mapping):
            yield from ((str(key).partition(".")[0], str(name)) for key, name in item.items() if name is not None)
        elif item:
            yield "id", str(item)


def targets_of(chunks: Sequence[Low], low: Low, key: str, value: str) -> tuple[int, ...]:
    """Return the positions in ``chunks`` of the low chunks that the requisite reference ``key: value`` of ``low``
    refers to, by the compiler's own rules.
    """
    others = [{name: each[name] for name in each if name not in KINDS} for each in chunks]
    at = next(position for position, each in enumerate(chunks) if each is low)
    others[at] |= {"require": [{key: value}]}
    needs = link(others).needs[at]
    return needs[0].targets if needs else ()


def rings(graph: Graph) -> list[list[Link]]:
    """Return one shortest cycle for each group of states whose requisites form cycles, as lists of Links."""
    found: dict[frozenset[int], list[Link]] = {}
    # Chunks that prereq each other form two cycles (of checks and of runs) for one mistake; the first is reported.
    for knot in sorted(_knots(graph), key=lambda knot: not any(node.check for node in knot)):
        found.setdefault(frozenset(node.position for node in knot), _shortest(graph, knot))
    return list(found.values())


def ring_text(ring: Sequence[Link], position_of: Callable[[Low, str], str]) -> str:
    """Return a cycle as text: ``file:line (ID: requisite) -> ... -> file:line``, from its first state back to the same
    state.
    """
    stops = [f"{position_of(one.by, one.kind)} ({one.low['__id__']}: {_reason(one)})" for one in ring]
    return " -> ".join([*stops, position_of(ring[0].by, ring[0].kind)])


def _reason(one: Link) -> str:
    return one.kind if one.by is one.low else f"{one.kind} of {one.by['__id__']}"


def _contradiction(graph: Graph, position: int, keys: tuple[str, ...]) -> Iterator[Remark]:
    low = graph.chunks[position]
    required = {at for need in graph.check_needs[position] if need.kind in _SUCCESS for at in need.targets}
    for kind in ("onfail", "onfail_any", "onfail_all"):
        awaited = [at for need in graph.check_needs[position] if need.kind == kind for at in need.targets]
        both = [at for at in awaited if at in required]
        if both and (len(both) == len(awaited) or kind == "onfail_all"):
            other = graph.chunks[both[0]]
            text = f"it requires that '{other['__id__']}' succeeds and, by {kind}, that it fails: it can never run"
            yield Remark("contradiction", text, low, (*keys, kind))


def _never(graph: Graph, position: int, keys: tuple[str, ...]) -> Iterator[Remark]:
    low = graph.chunks[position]
    waits = ((("onchanges", "onchanges_any"), _NEVER_CHANGES, "changes anything"), (("onfail",), _NEVER_FAILS, "fails"))
    for kinds, never, what in waits:
        targets = [
            (need.kind, graph.chunks[at])
            for need in graph.check_needs[position]
            if need.kind in kinds
            for at in need.targets
        ]
        if targets and all(f"{other['state']}.{other['fun']}" in never for _, other in targets):
            kind, other = targets[0]
            text = f"it can never run: {other['state']}.{other['fun']} ('{other['__id__']}') never {what}"
            yield Remark("never-runs", text, low, (*keys, kind))


def _steps(graph: Graph, node: Node) -> Iterator[tuple[Node, str, bool]]:
    """Yield (other node, requisite kind, whether the other state declares the requisite) for each node of the run list
    that ``node`` waits for.
    """
    own = graph.check_needs[node.position]
    for need in own:
        for target in need.targets:
            yield Node(target, need.kind == "prereq"), need.kind, False
    # A state waits for the states that list it under prereq, although it declares no requisite itself.
    for need in () if node.check else graph.needs[node.position][len(own) :]:
        for target in need.targets:
            yield Node(target, False), "prereq", True


def _knots(graph: Graph) -> list[set[Node]]:
    """Return a list of sets of nodes: the parts of the graph in which each node waits for each other one through
    requisites (strongly connected components, by Tarjan's algorithm without recursion).
    """
    index: dict[Node, int] = {}
    lowest: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    found: list[set[Node]] = []
    for start in (Node(position, False) for position in range(len(graph.chunks))):
        if start in index:
            continue
        work = [(start, _steps(graph, start))]
        index[start] = lowest[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, steps = work[-1]
            following = next((each for each, _, _ in steps if each not in index or each in on_stack), None)
            if following is None:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[node])
                if lowest[node] == index[node]:
                    knot = set(stack[stack.index(node) :])
                    del stack[stack.index(node) :]
                    on_stack -= knot
                    if len(knot) > 1 or any(each == node for each, _, _ in _steps(graph, node)):
                        found.append(knot)
            elif following in index:
                lowest[node] = min(lowest[node], index[following])
            else:
                index[following] = lowest[following] = len(index)
                stack.append(following)
                on_stack.add(following)
                work.append((following, _steps(graph, following)))
    return found


def _shortest(graph: Graph, knot: set[Node]) -> list[Link]:
    start = min(knot)
    came: dict[Node, tuple[Node, Link]] = {}
    todo = deque([start])
    while todo:
        node = todo.popleft()
        for following, kind, others in _steps(graph, node):
            if following not in knot:
                continue
            low = graph.chunks[node.position]
            step = Link(low, kind, graph.chunks[following.position] if others else low)
            if following == start:
                ring = [step]
                while node != start:
                    node, step = came[node]
                    ring.append(step)
                return ring[::-1]
            if following not in came:
                came[following] = (node, step)
                todo.append(following)
    raise AssertionError("a knot without a way back to its first node")
