"""Draws a flame graph as SVG from stacks that py-spy has sampled, for the documentation.

py-spy record --gil --rate 500 --format raw --pid PID --output stacks.txt
python -m bench.flame stacks.txt --title TITLE --output PICTURE.svg

A box is a function; its width is its share of all samples; the functions that it called are above it. Each line of the input is a
stack and a number of samples: ``outer (file:line);inner (file:line) 12``. Lines of one function are one box. The picture is
readable on light and dark pages.
"""

from __future__ import annotations

import argparse
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

#: Size of the picture, of a box and of a letter, pixels.
_WIDTH, _ROW, _LETTER = 1200, 17, 6.4
_TOP, _BOTTOM = 30, 6

#: Shares of all samples below which a box is not drawn.
_LEAST = 0.004

_TEXT, _TITLE = "#1f2328", "#7d8590"

#: Colours of boxes, by the name of the file; of similar brightness, for dark text.
_COLOURS = ("#f2a65a", "#f2c14e", "#e88d67", "#f7b267", "#e9a178", "#f4d06f", "#d9a05b", "#efb08c")

#: A frame: name of the function, file, and the line, which is left out of the picture.
_FRAME = re.compile(r"^(?P<name>.*) \((?P<file>[^()]*?)(?::\d+)?\)$")


@dataclass
class Box:
    """A function in the place of a stack, with the samples that were taken in it and in what it called."""

    name: str
    samples: int = 0
    above: dict[str, Box] = field(default_factory=dict)


def grown(lines: Iterable[str], start: str = "") -> Box:
    """Return the box that holds all stacks of ``lines``.

    ``start``: name of a function; stacks without it are left out, others begin with it. Raises ValueError for a line that is no
    stack with a number.
    """
    root = Box("all")
    for line in lines:
        if not line.strip():
            continue
        stack, _, number = line.rstrip().rpartition(" ")
        count = int(number)
        frames = [_short(frame) for frame in stack.split(";")]
        if start:
            first = next((at for at, frame in enumerate(frames) if frame.split(" ")[0] == start), None)
            if first is None:
                continue
            frames = frames[first:]
        root.samples += count
        box = root
        for frame in frames:
            box = box.above.setdefault(frame, Box(frame))
            box.samples += count
    return root


def _short(frame: str) -> str:
    found = _FRAME.match(frame)
    return f"{found['name']} ({Path(found['file']).name})" if found else frame


def flame_graph(title: str, root: Box) -> str:
    """Return the SVG text of a flame graph. Raises ValueError if ``root`` has no samples."""
    if not root.samples:
        raise ValueError("no samples")
    boxes = list(_placed(root, 0.0, 0, root.samples))
    rows = 1 + max(row for _, _, row, _ in boxes)
    height = _TOP + rows * _ROW + _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="monospace" font-size="11">',
        f'<text x="{_WIDTH / 2}" y="18" text-anchor="middle" font-size="14" fill="{_TITLE}">{escape(title)}</text>',
    ]
    for box, left, row, width in boxes:
        y = height - _BOTTOM - (row + 1) * _ROW
        share = 100 * box.samples / root.samples
        parts.append(
            f'<g><title>{escape(box.name)}: {share:.1f} %</title><rect x="{left:.1f}" y="{y}" width="{max(width - 0.5, 0.5):.1f}" '
            f'height="{_ROW - 1}" fill="{_colour(box.name)}"/>'
        )
        letters = int((width - 6) / _LETTER)
        if letters >= 3:
            said = box.name if len(box.name) <= letters else box.name[: letters - 1] + "…"
            parts.append(f'<text x="{left + 3:.1f}" y="{y + 12}" fill="{_TEXT}">{escape(said)}</text>')
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def _placed(box: Box, left: float, row: int, whole: int) -> Iterator[tuple[Box, float, int, float]]:
    """Yield (box, left edge, row, width) of a box and of those above it that are wide enough; the widest one is leftmost."""
    width = _WIDTH * box.samples / whole
    if box.samples < _LEAST * whole:
        return
    yield box, left, row, width
    for one in sorted(box.above.values(), key=lambda one: (-one.samples, one.name)):
        yield from _placed(one, left, row + 1, whole)
        left += _WIDTH * one.samples / whole


def _colour(name: str) -> str:
    file = name.rpartition("(")[2]
    return _COLOURS[zlib.crc32(file.encode()) % len(_COLOURS)]


def main(argv: Sequence[str] | None = None) -> int:
    """Write the picture and return 0. Raises ValueError for a file that holds no stacks."""
    parser = argparse.ArgumentParser(
        prog="bench.flame", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("stacks", type=Path, nargs="+")
    parser.add_argument("--title", required=True)
    parser.add_argument("--start", default="", help="name of the function with which the stacks begin")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args(argv)
    lines = (line for path in arguments.stacks for line in path.read_text("utf-8").splitlines())
    arguments.output.write_text(flame_graph(arguments.title, grown(lines, arguments.start)), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
