"""Draws a line chart as SVG: the curves of a benchmark, for the documentation. It is readable on light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

#: Size of the picture and of its margins, pixels.
_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 150, 40, 48

#: Colours of the curves, of similar brightness on white and on black.
_COLOURS = ("#2f81f7", "#d9822b", "#3fa45b", "#c94f7c", "#8a63d2", "#6b8e9e", "#b08800", "#d04437")

_TEXT = "#7d8590"

#: Lines across the picture at most.
_TICKS = 5

#: A curve: the values of x and y.
Curve = Sequence[tuple[float, float]]


def steps(most: float) -> list[float]:
    """Return up to six round numbers from 0 on, the last of which is ``most`` or more: the labels of an axis."""
    if most <= 0:
        return [0.0, 1.0]
    raw = most / _TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor * (1 + 1e-9) >= raw)
    return [step * number for number in range(math.ceil(most / step - 1e-9) + 1)]


def line_chart(title: str, x_label: str, y_label: str, curves: Mapping[str, Curve], *, log_x: bool = False) -> str:
    """Return the SVG text of a chart with a curve for each name. ``log_x``: each x has the same distance to its double.

    Raises ValueError if there is no point, or one whose x is not positive where ``log_x`` is set.
    """
    points = [point for curve in curves.values() for point in curve]
    if not points:
        raise ValueError(f"{title}: a chart without a point")
    ticks_x = sorted({x for x, _ in points})
    if log_x and ticks_x[0] <= 0:
        raise ValueError(f"{title}: {ticks_x[0]} has no logarithm")
    ticks_y = steps(max(y for _, y in points))
    low, high = (math.log(ticks_x[0]), math.log(ticks_x[-1])) if log_x else (0.0, ticks_x[-1])

    def place(x: float, y: float) -> tuple[float, float]:
        along = ((math.log(x) if log_x else x) - low) / ((high - low) or 1.0)
        across = y / ticks_y[-1]
        return (
            _LEFT + along * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - across * (_HEIGHT - _TOP - _BOTTOM),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" font-family="sans-serif" '
        f'font-size="12" fill="{_TEXT}">',
        f"<title>{escape(title)}</title>",
        f'<text x="{_LEFT}" y="20" font-size="14">{escape(title)}</text>',
        f'<text x="{_LEFT}" y="{_HEIGHT - 8}">{escape(x_label)}</text>',
        f'<text x="4" y="{_TOP - 6}">{escape(y_label)}</text>',
    ]
    for y in ticks_y:
        (left, at), (right, _) = place(ticks_x[0], y), place(ticks_x[-1], y)
        parts.append(f'<path d="M{left:.1f} {at:.1f}H{right:.1f}" stroke="{_TEXT}" stroke-opacity=".3"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{number(y)}</text>')
    for x in ticks_x:
        at, bottom = place(x, 0)
        parts.append(f'<text x="{at:.1f}" y="{bottom + 18:.1f}" text-anchor="middle">{number(x)}</text>')
    ends = _apart({name: place(*curve[-1])[1] for name, curve in curves.items() if curve})
    for (name, curve), colour in zip(curves.items(), _cycle(len(curves)), strict=True):
        if not curve:
            continue
        placed = [place(x, y) for x, y in curve]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in placed)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
        parts.append(
            f'<text x="{placed[-1][0] + 10:.1f}" y="{ends[name] + 4:.1f}" fill="{colour}">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


def number(value: float) -> str:
    """Return a number as an axis shows it: 2500 as 2,500, and 0.25 as it is."""
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def _cycle(count: int) -> list[str]:
    return [_COLOURS[number % len(_COLOURS)] for number in range(count)]


def _apart(ends: Mapping[str, float]) -> dict[str, float]:
    """Return the heights of the names beside their curves, moved down where two would lie on each other."""
    placed: dict[str, float] = {}
    last = -math.inf
    for name in sorted(ends, key=ends.__getitem__):
        last = placed[name] = max(ends[name], last + 14)
    return placed
