"""Requisite graph: the requisites of all low chunks, resolved to the chunks they name.

A reference names a state module and an ID or name (``pkg: vim``), an ID alone, a whole SLS (``sls: web``), or a glob of
these. Equal references share one tuple of targets, so a thousand states that require the same SLS cost one list.

Source: docs/state-system.md#requisites.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import NamedTuple

from statecore.model.nearest import close_matches
from statecore.model.types import Low, tag

#: Kinds of requisites in the graph, in order of evaluation (as in Salt 3008).
#: Source: docs/state-system.md#requisite-evaluation.
KINDS = (
    *("require", "require_any", "watch", "watch_any", "prereq"),
    *("onfail", "onfail_any", "onfail_all", "onchanges", "onchanges_any"),
)

_KINDS = frozenset(KINDS)

_GLOB = frozenset("*?[]")


class Fault(NamedTuple):
    """A requisite of a low chunk that cannot be resolved: its target does not exist, or it leads back to its own chunk."""

    #: Error text, in Salt's words.
    message: str
    #: The chunk that declares the requisite. ``kind`` is the argument that holds the requisite.
    low: Low
    kind: str
    hint: str = ""
    #: For a cycle: its chunks, each with the argument that requires the next chunk. Empty for other faults.
    ring: tuple[tuple[Low, str], ...] = ()


class Need(NamedTuple):
    """One resolved requisite of a low chunk: its kind ("require") and the positions of the chunks that it names."""

    kind: str
    #: Positions of the named chunks in ``Graph.chunks``.
    targets: tuple[int, ...]


class Node(NamedTuple):
    """One element of the run list of states: a low chunk to run, or (``check``) a low chunk to run in test mode first,
    because a ``prereq`` names it. ``position`` is the chunk's index in the graph's ``chunks``.
    """

    position: int
    check: bool = False


class Graph(NamedTuple):
    """The low chunks of a state run with their tags, their resolved requisites and the order of the run."""

    chunks: tuple[Low, ...] = ()
    tags: tuple[str, ...] = ()
    #: Requisites of each chunk for its run: its own requisites, then a require on every chunk that names it in a
    #: prereq.
    needs: tuple[tuple[Need, ...], ...] = ()
    #: Requisites of each chunk for its check by a prereq: its own requisites only.
    check_needs: tuple[tuple[Need, ...], ...] = ()
    #: The run list: every chunk once, and once more as a check if a prereq names it.
    order: tuple[Node, ...] = ()
    #: Requisites that name no chunk.
    faults: tuple[Fault, ...] = ()


class _Names:
    """Index of all low chunks of a run. It finds the positions of the chunks that an ID, a name or an SLS reference
    names.

    It is built at the first look-up.
    """

    def __init__(self, chunks: Sequence[Low]) -> None:
        self._chunks = chunks
        self._cache: dict[tuple[str, str], tuple[int, ...]] = {}

    @cached_property
    def _named(self) -> dict[tuple[str, str], list[int]]:
        named: dict[tuple[str, str], list[int]] = {}
        for position, low in enumerate(self._chunks):
            state, name, own_id = low["state"], str(low["name"]), str(low["__id__"])
            for each in (name,) if name == own_id else (name, own_id):
                named.setdefault((state, each), []).append(position)
                named.setdefault(("id", each), []).append(position)
        return named

    @cached_property
    def _in_sls(self) -> dict[str, list[int]]:
        in_sls: dict[str, list[int]] = {}
        for position, low in enumerate(self._chunks):
            for sls in dict.fromkeys((low.get("__sls__"), *low.get("__sls_included_from__", ()))):
                if sls:
                    in_sls.setdefault(sls, []).append(position)
        return in_sls

    def find(self, key: str, value: str) -> tuple[int, ...]:
        """Return the positions of the low chunks that a requisite's reference ``key: value`` names, each once, in
        order.
        """
        known = self._cache.get((key, value))
        if known is None:
            known = self._cache[(key, value)] = tuple(dict.fromkeys(self._search(key, value)))
        return known

    def nearest(self, key: str, value: str) -> str:
        """Return the known SLS, state ID or name most similar to ``value``, for an error message; "" if none is
        similar.
        """
        known = list(self._in_sls) if key == "sls" else [name for state, name in self._named if state == key]
        return next(iter(close_matches(value, known, n=1)), "")

    def _search(self, key: str, value: str) -> list[int]:
        globbed = not _GLOB.isdisjoint(value)
        if key == "sls":
            if not globbed:
                return self._in_sls.get(value, [])
            return [at for sls, found in self._in_sls.items() if fnmatchcase(sls, value) for at in found]
        if not globbed:
            return self._named.get((key, value), [])
        return [
            at
            for (state, name), found in self._named.items()
            if state == key and fnmatchcase(name, value)
            for at in found
        ]


def link(chunks: Sequence[Low], empty: Collection[str] = ()) -> Graph:
    """Return the requisite graph of low chunks: each requisite resolved to the chunks it names, in the given order.

    ``empty`` holds the SLS references of the run without any state: a requisite on one of them is met. A chunk that
    occurs twice counts once. References that name nothing are in ``faults`` and not in ``needs``.
    """
    tagged = {tag(low): low for low in chunks}
    unique = tuple(tagged.values())
    names = _Names(unique)
    faults: list[Fault] = []
    own = [tuple(_needs(low, names, empty, faults)) for low in unique]
    required_by: list[list[int]] = [[] for _ in unique]
    for position, needs in enumerate(own):
        for need in needs:
            if need.kind == "prereq":
                for target in need.targets:
                    required_by[target].append(position)
    return Graph(
        chunks=unique,
        tags=tuple(tagged),
        needs=tuple(
            (*needs, Need("require", tuple(first))) if first else needs
            for needs, first in zip(own, required_by, strict=True)
        ),
        check_needs=tuple(own),
        order=tuple(Node(position) for position in range(len(unique))),
        faults=tuple(faults),
    )


def _needs(low: Low, names: _Names, empty: Collection[str], faults: list[Fault]) -> list[Need]:
    needs: list[Need] = []
    if _KINDS.isdisjoint(low):
        return needs
    for kind in KINDS:
        if kind not in low:
            continue
        for reference in _references(low[kind]):
            key, value = next(iter(reference.items()))
            if value is None:
                continue
            targets = names.find(str(key).partition(".")[0], str(value))
            if targets:
                needs.append(Need(kind, targets))
            elif key != "sls" or not (str(value) in empty or not _GLOB.isdisjoint(str(value))):
                faults.append(_dangling(low, kind, str(key), str(value), names))
    return needs


def _dangling(low: Low, kind: str, key: str, value: str, names: _Names) -> Fault:
    text = (
        f"Referenced state does not exist for requisite [{kind}: ({key}: {value})] in state [{low['name']}]"
        f" in SLS [{low.get('__sls__')}]"
    )
    near = names.nearest(key, value)
    if near:
        return Fault(text, low, kind, f"the nearest is '{near}'")
    return Fault(text, low, kind, f"include '{value}' where it is required" if key == "sls" else "")


def _references(value: object) -> list[dict[str, object]]:
    if value is None:
        return []
    listed = value if isinstance(value, list) else [value]
    return [item if isinstance(item, dict) else {"id": item} for item in listed if item not in (None, {})]


class _Edge(NamedTuple):
    """One requisite of the graph, from the required chunk to the chunk that requires it. Each end is (position of the
    chunk, True for its check for a prereq).
    """

    required: tuple[int, bool]
    node: tuple[int, bool]
    kind: str


def cycle(graph: Graph) -> Fault | None:
    """Return the first cycle of requisites in the graph as a Fault with all its low chunks; None if there is no cycle.

    The message starts where Salt's does: Salt follows the chunks in their order, each to those that require it.
    """
    edges = _ring(graph, _requiring(graph))
    if not edges:
        return None
    told = [(graph.chunks[each.node[0]], _declared(graph, each)) for each in edges]
    shown = [
        f"({_named(low)}, '{kind}', {_named(graph.chunks[each.required[0]])})"
        for each, (low, kind) in zip(edges, told, strict=True)
    ]
    # From a chunk to the one that it requires, and so on.
    ring = (told[0], *reversed(told[1:]))
    return Fault(f"Recursive requisites were found: {', '.join(shown)}", *told[0], ring=ring)


def _requiring(graph: Graph) -> dict[tuple[int, bool], list[_Edge]]:
    """Map of each chunk (or its check for a prereq) to the list of requisites that name it, in the order in which Salt
    finds them.
    """
    checked = {
        target for needs in graph.check_needs for need in needs if need.kind == "prereq" for target in need.targets
    }
    found: dict[tuple[int, bool], list[_Edge]] = {}

    def add(required: tuple[int, bool], node: tuple[int, bool], kind: str) -> None:
        found.setdefault(required, []).append(_Edge(required, node, kind))

    for position, needs in enumerate(graph.check_needs):
        own = (position, False)
        for need in needs:
            for target in need.targets:
                if need.kind == "prereq":
                    add((target, True), own, "prereq")
                    add(own, (target, False), "require")
                    if position in checked:
                        add((target, True), (position, True), "prereq")
                    continue
                if position in checked:
                    add((target, False), (position, True), need.kind)
                add((target, False), own, need.kind)
    return found


def _ring(graph: Graph, requiring: Mapping[tuple[int, bool], list[_Edge]]) -> list[_Edge]:
    """Return the requisites of the first cycle that a depth-first walk over the graph finds; [] if there is none."""
    done: set[tuple[int, bool]] = set()
    starts = [(position, False) for position in range(len(graph.chunks))]
    for start in [*starts, *(node for node in requiring if node[1])]:
        if start in done:
            continue
        path: list[_Edge] = []
        pending = [iter(requiring.get(start, ()))]
        nodes = [start]
        on_path = {start}
        while nodes:
            edge = next(pending[-1], None)
            if edge is None:
                node = nodes.pop()
                pending.pop()
                on_path.discard(node)
                done.add(node)
                if path:
                    path.pop()
            elif edge.node in on_path:
                return [*path[nodes.index(edge.node) :], edge]
            elif edge.node not in done:
                path.append(edge)
                nodes.append(edge.node)
                pending.append(iter(requiring.get(edge.node, ())))
                on_path.add(edge.node)
    return []


def _declared(graph: Graph, edge: _Edge) -> str:
    """Return the name of the requisite as the user wrote it, for a message about a cycle.

    For a prereq, the graph also has an edge in the other direction, which the user did not declare.
    """
    return "prereq" if edge.kind == "require" and "require" not in graph.chunks[edge.node[0]] else edge.kind


def _named(low: Low) -> dict[str, str]:
    named = {"SLS": str(low.get("__sls__")), "ID": str(low["__id__"])}
    return named | ({"NAME": str(low["name"])} if low["name"] != low["__id__"] else {})
