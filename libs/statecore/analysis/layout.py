"""Place the boxes and arrows of a diagram in layers, earlier states above later ones. Pure Python without dependencies.

Sugiyama's method in short. Each connected part gets layers by longest path. A long arrow gets a bend in each layer that
it crosses. Barycentres of the neighbours order each layer, then coordinates are assigned. Connected parts are placed
side by side in rows. Boxes without arrows fill a grid below the parts, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

#: Distances in pixels: between the boxes of a layer, between layers, between connected parts.
_BESIDE, _BELOW, _APART = 28, 62, 48

#: Width in pixels at which rows of parts and of the grid are wrapped.
_PAGE = 1200

#: Iterations of ordering and of placing. More iterations change little.
_ROUNDS = 12

#: Width in pixels that a bend of a long arrow takes in its layer.
_BEND = 14


class Point(NamedTuple):
    """A position in the drawing of a state run, in pixels from its top left corner."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Layout:
    """Coordinates of all boxes (states) and arrows of the drawing of a state run, and its size, in pixels."""

    #: Box number -> its centre.
    centres: Mapping[int, Point]
    #: (first, then) -> the points of the arrow, from the bottom of the first box to the top of the other.
    paths: Mapping[tuple[int, int], Sequence[Point]]
    width: float
    height: float


#: A cell of a layer: a box (its number) or a bend (first, then, layer).
_Cell = int | tuple[int, int, int]


def arranged(widths: Mapping[int, float], height: float, arrows: Iterable[tuple[int, int]]) -> Layout:
    """Return the coordinates of the boxes and arrows of a drawing, in pixels.

    ``widths`` maps a box number to its width; all boxes have the height ``height``. ``arrows`` are pairs (first box,
    box that waits) without cycles.
    """
    edges = sorted({(one, other) for one, other in arrows if one != other})
    centres: dict[int, Point] = {}
    paths: dict[tuple[int, int], list[Point]] = {}
    left, top, row, right = 0.0, 0.0, 0.0, 0.0
    touched = {end for edge in edges for end in edge}
    for part in _parts(edges):
        placed, bends, size = _arrange(part, [edge for edge in edges if edge[0] in part], widths, height)
        if left and left + size.x > _PAGE:
            left, top, row = 0.0, top + row + _APART, 0.0
        centres |= {box: Point(at.x + left, at.y + top) for box, at in placed.items()}
        paths |= {edge: [Point(at.x + left, at.y + top) for at in points] for edge, points in bends.items()}
        left += size.x + _APART
        row = max(row, size.y)
        right = max(right, left - _APART)
    top += row + (_APART if row else 0)
    alone = [box for box in sorted(widths) if box not in touched]
    grid, size = _grid(alone, widths, height)
    centres |= {box: Point(at.x, at.y + top) for box, at in grid.items()}
    return Layout(centres, paths, max(right, size.x), top + size.y if alone else top - (_APART if row else 0))


def _parts(edges: Sequence[tuple[int, int]]) -> list[set[int]]:

    owner: dict[int, set[int]] = {}
    for one, other in edges:
        first, second = owner.get(one, {one}), owner.get(other, {other})
        if first is not second:
            if len(first) < len(second):
                first, second = second, first
            first |= second
        for box in (*second, one, other):
            owner[box] = first
    return sorted({id(part): part for part in owner.values()}.values(), key=min)


def _arrange(
    part: set[int], edges: Sequence[tuple[int, int]], widths: Mapping[int, float], height: float
) -> tuple[dict[int, Point], dict[tuple[int, int], list[Point]], Point]:
    layer = _layers(part, edges)
    chains = {edge: _chain(edge, layer) for edge in edges}
    rows: list[list[_Cell]] = [[] for _ in range(max(layer.values()) + 1)]
    for box in sorted(part):
        rows[layer[box]].append(box)
    for chain in chains.values():
        for cell in chain[1:-1]:
            assert isinstance(cell, tuple)
            rows[cell[2]].append(cell)
    above: dict[_Cell, list[_Cell]] = {cell: [] for row in rows for cell in row}
    below: dict[_Cell, list[_Cell]] = {cell: [] for row in rows for cell in row}
    for chain in chains.values():
        for one, other in pairwise(chain):
            below[one].append(other)
            above[other].append(one)
    _order(rows, above, below)
    size = {cell: widths[cell] if isinstance(cell, int) else float(_BEND) for row in rows for cell in row}
    x = _spread(rows, above, below, size)
    y = [at * (height + _BELOW) + height / 2 for at in range(len(rows))]
    placed = {box: Point(x[box], y[layer[box]]) for box in part}
    paths = {}
    for (one, other), chain in chains.items():
        bends = [Point(x[cell], y[cell[2]]) for cell in chain[1:-1] if isinstance(cell, tuple)]
        start, end = Point(x[one], y[layer[one]] + height / 2), Point(x[other], y[layer[other]] - height / 2)
        paths[one, other] = [start, *bends, end]
    right = max(x[cell] + size[cell] / 2 for row in rows for cell in row)
    return placed, paths, Point(right, y[-1] + height / 2)


def _layers(part: set[int], edges: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Map of box number to its layer, counted from 0. A box is one layer below the deepest box that has an arrow to it."""
    before: dict[int, list[int]] = {box: [] for box in part}
    after: dict[int, list[int]] = {box: [] for box in part}
    for one, other in edges:
        before[other].append(one)
        after[one].append(other)
    waiting = {box: len(before[box]) for box in part}
    layer = {box: 0 for box in part if not waiting[box]}
    todo = sorted(layer)
    while todo:
        box = todo.pop()
        for other in after[box]:
            layer[other] = max(layer.get(other, 0), layer[box] + 1)
            waiting[other] -= 1
            if not waiting[other]:
                todo.append(other)
    return {box: layer.get(box, 0) for box in part}


def _chain(edge: tuple[int, int], layer: Mapping[int, int]) -> list[_Cell]:
    one, other = edge
    return [one, *((one, other, at) for at in range(layer[one] + 1, layer[other])), other]


def _order(rows: list[list[_Cell]], above: Mapping[_Cell, list[_Cell]], below: Mapping[_Cell, list[_Cell]]) -> None:
    """Sort the boxes in each layer by the mean position of their neighbours, in sweeps downwards and upwards by turns.
    The lists ``rows`` are sorted in place.
    """
    index_of = {cell: float(at) for row in rows for at, cell in enumerate(row)}
    for sweep in range(_ROUNDS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        for row in rows if down else reversed(rows):
            preferred = {cell: _mean([index_of[one] for one in neighbours[cell]], index_of[cell]) for cell in row}
            row.sort(key=preferred.__getitem__)
            index_of |= {cell: float(at) for at, cell in enumerate(row)}


def _spread(
    rows: list[list[_Cell]],
    above: Mapping[_Cell, list[_Cell]],
    below: Mapping[_Cell, list[_Cell]],
    size: Mapping[_Cell, float],
) -> dict[_Cell, float]:
    """Return a map of each box, and each bend of an arrow, to the x coordinate of its centre in pixels: close to its
    neighbours' and without overlap. The leftmost edge is 0.
    """
    x: dict[_Cell, float] = {}
    for row in rows:
        at = 0.0
        for cell in row:
            x[cell] = at + size[cell] / 2
            at += size[cell] + _BESIDE
    for sweep in range(_ROUNDS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            preferred = {cell: _mean([x[one] for one in (above if down else below)[cell]], x[cell]) for cell in row}
            fromleft = _pushed(row, preferred, size, 1)
            fromright = _pushed(row[::-1], preferred, size, -1)
            x |= {cell: (fromleft[cell] + fromright[cell]) / 2 for cell in row}
    left = min(x[cell] - size[cell] / 2 for row in rows for cell in row)
    return {cell: at - left for cell, at in x.items()}


def _pushed(
    row: Sequence[_Cell], preferred: Mapping[_Cell, float], size: Mapping[_Cell, float], way: int
) -> dict[_Cell, float]:

    placed: dict[_Cell, float] = {}
    edge: float | None = None
    for cell in row:
        at = preferred[cell]
        if edge is not None:
            nearest = edge + way * (_BESIDE + size[cell] / 2)
            at = max(at, nearest) if way > 0 else min(at, nearest)
        placed[cell] = at
        edge = at + way * size[cell] / 2
    return placed


def _grid(boxes: Sequence[int], widths: Mapping[int, float], height: float) -> tuple[dict[int, Point], Point]:
    placed: dict[int, Point] = {}
    left, top, right = 0.0, 0.0, 0.0
    for box in boxes:
        if left and left + widths[box] > _PAGE:
            left, top = 0.0, top + height + _BESIDE
        placed[box] = Point(left + widths[box] / 2, top + height / 2)
        left += widths[box] + _BESIDE
        right = max(right, left - _BESIDE)
    return placed, Point(right, top + height if boxes else 0.0)


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
