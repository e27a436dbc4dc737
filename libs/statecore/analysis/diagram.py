"""A state run as boxes (states) and arrows (requisites), and its text formats: Mermaid, DOT, plain data. Pure.

An arrow leads from the state that runs first to the state that waits for it. The arrow's label is the requisite's name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from statecore.analysis.requisites import references, targets_of, written
from statecore.compile.graph import Graph
from statecore.model.types import Low

#: If one ``sls:`` requisite or glob refers to more states than this, a single arrow from the last of them is drawn.
_MANY = 4


class Box(NamedTuple):
    """A box in the drawing of a state run: one state with number, ID, function, name, SLS, ``file:line`` and label."""

    #: Number in the order of evaluation, from 1.
    number: int
    id: str
    function: str
    name: str
    sls: str
    #: ``file:line`` of the declaration; "" if it is not known.
    at: str
    #: The ID; the ``name`` if several states have the same ID and function.
    label: str = ""


class Arrow(NamedTuple):
    """An arrow in the drawing of a state run: one requisite, from the state that runs first to the state that waits for
    it.
    """

    first: int
    then: int
    #: ``require``; ``require sls: web`` for an arrow that replaces several.
    kind: str


@dataclass(frozen=True, slots=True)
class Diagram:
    """The drawing of a state run: boxes (states) in order of the run, and arrows (requisites) between them."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def diagram(graph: Graph, at: Callable[[Low], str]) -> Diagram:
    """Return the drawing of a state run, given its requisite graph.

    ``at(low)`` returns the ``file:line`` where a low chunk is declared.
    """
    order = [node.position for node in graph.order if not node.check]
    number = {position: count for count, position in enumerate(order, 1)}
    boxes = [_box(count, graph.chunks[position], at) for position, count in number.items()]
    shared = Counter((box.id, box.function) for box in boxes)
    boxes = [box._replace(label=box.name if shared[box.id, box.function] > 1 else box.id) for box in boxes]
    arrows = dict.fromkeys(each for position in order for each in _arrows(graph, position, number))
    return Diagram(tuple(boxes), tuple(sorted(arrows)))


def as_data(drawn: Diagram) -> dict[str, object]:
    """Return the drawing of a state run as a map for JSON: lists ``states`` and ``requisites``."""
    return {
        "states": [box._asdict() for box in drawn.boxes],
        "requisites": [arrow._asdict() for arrow in drawn.arrows],
    }


def mermaid(drawn: Diagram) -> str:
    """Return the drawing of a state run as a Mermaid flow chart with one subgraph for each SLS."""
    lines = ["flowchart TD"]
    for at, (sls, boxes) in enumerate(_by_sls(drawn).items()):
        lines.append(f'  subgraph s{at}["{_mermaid(sls)}"]')
        lines += [f'    n{box.number}["{_mermaid(_title(box))}<br/>{_mermaid(box.label or box.id)}"]' for box in boxes]
        lines.append("  end")
    lines += [f'  n{arrow.first} -->|"{_mermaid(arrow.kind)}"| n{arrow.then}' for arrow in drawn.arrows]
    return "\n".join(lines) + "\n"


def dot(drawn: Diagram) -> str:
    """Return the drawing of a state run as a directed graph for Graphviz, with one cluster for each SLS."""
    lines = ["digraph states {", "  rankdir=TB;", '  node [shape=box, fontname="sans-serif"];']
    for at, (sls, boxes) in enumerate(_by_sls(drawn).items()):
        lines += [f"  subgraph cluster_{at} {{", f"    label={_dot(sls)};"]
        lines += [
            f"    n{box.number} [label={_dot(f'{_title(box)}{chr(10)}{box.label or box.id}')}, tooltip={_dot(box.at)}];"
            for box in boxes
        ]
        lines.append("  }")
    lines += [f"  n{arrow.first} -> n{arrow.then} [label={_dot(arrow.kind)}];" for arrow in drawn.arrows]
    return "\n".join([*lines, "}"]) + "\n"


def _box(number: int, low: Low, at: Callable[[Low], str]) -> Box:
    function = f"{low['state']}.{low['fun']}"
    return Box(number, str(low["__id__"]), function, str(low["name"]), str(low.get("__sls__", "")), at(low))


def _arrows(graph: Graph, position: int, number: Mapping[int, int]) -> Iterator[Arrow]:
    own = number[position]
    low = graph.chunks[position]
    requisites = [(each.kind, each.key, each.value, each.targets) for each in references(graph, position)]
    for key, value in written(low.get("listen")):
        requisites.append(("listen", key, value, targets_of(graph.chunks, low, key, value)))
    for kind, key, value, targets in requisites:
        places = sorted(number[at] for at in targets if at in number)
        named = kind
        if len(places) > _MANY:
            places, named = places[-1:], f"{kind} {key}: {value}"
        for other in places:
            yield Arrow(own, other, named) if kind == "prereq" else Arrow(other, own, named)
    for key, value in written(low.get("listen_in")):
        for at in targets_of(graph.chunks, low, key, value):
            yield Arrow(own, number[at], "listen")


def _by_sls(drawn: Diagram) -> dict[str, list[Box]]:
    found: dict[str, list[Box]] = {}
    for box in drawn.boxes:
        found.setdefault(box.sls, []).append(box)
    return found


def _title(box: Box) -> str:
    return f"{box.number}. {box.function}"


def _mermaid(text: str) -> str:
    """Escape text for a quoted Mermaid label: each character with a meaning in Mermaid or HTML becomes an entity."""
    return re.sub(r"[^\w ./:@%+,=-]", lambda found: f"#{ord(found[0])};", " ".join(text.split()))


def _dot(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
