"""Draw the diagram of a state run as a self-contained SVG picture without scripts, fonts or links. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise

from statecore.analysis.diagram import Box, Diagram
from statecore.analysis.layout import Layout, Point, arranged

_MARGIN, _HEIGHT, _LEGEND = 24, 58, 34

#: Width in pixels of one character (12 px monospace), and the largest number of characters in a line; longer text is cut.
_LETTER, _MOST = 7.25, 38

#: Requisite -> (colour, SVG dash pattern).
_KINDS: Mapping[str, tuple[str, str]] = {
    "require": ("#475569", ""),
    "watch": ("#2563eb", ""),
    "prereq": ("#7c3aed", "7 4"),
    "onchanges": ("#c2410c", ""),
    "onfail": ("#dc2626", "3 3"),
    "listen": ("#15803d", "7 4"),
}


def svg(drawn: Diagram) -> str:
    """Return the drawing of a state run as SVG text."""
    widths = {box.number: _width(box) for box in drawn.boxes}
    layout = arranged(widths, _HEIGHT, [(arrow.first, arrow.then) for arrow in drawn.arrows])
    kinds = [kind for kind in _KINDS if any(_family(arrow.kind) == kind for arrow in drawn.arrows)]
    width = max(layout.width, len(kinds) * 110.0, 200.0) + 2 * _MARGIN
    height = layout.height + 2 * _MARGIN + (_LEGEND if kinds else 0)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"'
        f' height="{height:.0f}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">',
        "<title>States in their order, and their requisites</title>",
        *_markers(kinds),
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<g transform="translate({_MARGIN} {_MARGIN})">',
        *_arrows(drawn, layout),
        *(line for box in drawn.boxes for line in _box(box, layout.centres[box.number], widths[box.number])),
        "</g>",
        *_legend(kinds, height),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _markers(kinds: Sequence[str]) -> Iterator[str]:
    yield "<defs>"
    for kind in kinds:
        yield (
            f'<marker id="{kind}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0L10 5L0 10z" fill="{_KINDS[kind][0]}"/></marker>'
        )
    yield "</defs>"


def _arrows(drawn: Diagram, layout: Layout) -> Iterator[str]:
    kinds_by_ends: dict[tuple[int, int], list[str]] = {}
    for arrow in drawn.arrows:
        kinds_by_ends.setdefault((arrow.first, arrow.then), []).append(arrow.kind)
    labels = []
    for ends, kinds in kinds_by_ends.items():
        if ends[0] == ends[1]:
            continue
        kind = _family(kinds[0])
        colour, dashes = _KINDS[kind]
        points = layout.paths[ends]
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        yield (
            f'<path d="{_curve(points)}" fill="none" stroke="{colour}" stroke-width="1.4"{dashed}'
            f' marker-end="url(#{kind})"><title>{_text(", ".join(kinds))}</title></path>'
        )
        extra = [each for each in kinds if each not in _KINDS]
        if extra:
            labels.append((points, ", ".join(extra), colour))
    for points, text, colour in labels:
        at = points[len(points) // 2 - 1], points[len(points) // 2]
        x, y = (at[0].x + at[1].x) / 2, (at[0].y + at[1].y) / 2
        yield (
            f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="11" text-anchor="middle" stroke="#ffffff"'
            f' stroke-width="4" paint-order="stroke">{_text(_cut(text))}</text>'
        )


def _curve(points: Sequence[Point]) -> str:
    parts = [f"M{points[0].x:.1f} {points[0].y:.1f}"]
    for one, other in pairwise(points):
        half = (other.y - one.y) / 2
        parts.append(f"C{one.x:.1f} {one.y + half:.1f} {other.x:.1f} {other.y - half:.1f} {other.x:.1f} {other.y:.1f}")
    return "".join(parts)


def _box(box: Box, centre: Point, width: float) -> Iterator[str]:
    left, top = centre.x - width / 2, centre.y - _HEIGHT / 2
    yield f"<g><title>{_text(f'{box.function}: {box.name} ({box.at})')}</title>"
    yield (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{_HEIGHT}" rx="6" fill="#f8fafc"'
        ' stroke="#94a3b8"/>'
    )
    rows = (
        (_lines(box)[0], "#0f172a", ' font-weight="bold"'),
        (_lines(box)[1], "#0f172a", ""),
        (_lines(box)[2], "#64748b", ""),
    )
    for at, (line, colour, weight) in enumerate(rows):
        yield f'<text x="{left + 10:.1f}" y="{top + 18 + 16 * at:.1f}" fill="{colour}"{weight}>{_text(line)}</text>'
    yield "</g>"


def _legend(kinds: Sequence[str], height: float) -> Iterator[str]:
    y = height - _MARGIN
    for at, kind in enumerate(kinds):
        colour, dashes = _KINDS[kind]
        x = _MARGIN + 110 * at
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        yield (
            f'<path d="M{x} {y}H{x + 26}" stroke="{colour}" stroke-width="1.4" fill="none"{dashed} marker-end="url(#{kind})"/>'
        )
        yield f'<text x="{x + 34}" y="{y + 4}" fill="{colour}">{kind}</text>'


def _lines(box: Box) -> tuple[str, str, str]:
    return _cut(f"{box.number}. {box.function}"), _cut(box.label or box.id), _cut(box.sls)


def _width(box: Box) -> float:
    return max(len(line) for line in _lines(box)) * _LETTER + 22


def _family(kind: str) -> str:

    return next((name for name in _KINDS if kind.startswith(name)), "require")


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST else f"{text[: _MOST // 2]}…{text[-(_MOST // 2 - 1) :]}"


def _text(text: str) -> str:
    """Return text escaped for XML, with each unprintable character replaced by a space."""
    return escape("".join(letter if letter.isprintable() else " " for letter in text))
