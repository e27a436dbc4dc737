"""Outputter ``table``: shows each list of rows as a table, below the names of the maps that contain it.

A row is a list of texts, one text, or a mapping from column label to value. The options are ``out.table.*`` in the
configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import zip_longest
from typing import Any

from saltern.kit.command.output.options import OutputOptions

_JUSTIFY: Mapping[str, Callable[[str, int], str]] = {"center": str.center, "right": str.rjust, "left": str.ljust}

#: Option of ``table`` -> default.
DEFAULTS: Mapping[str, object] = {
    "nested_indent": 0,
    "has_header": True,
    "row_delimiter": "-",
    "delim": " | ",
    "justify": "center",
    "separate_rows": True,
    "prefix": "| ",
    "suffix": " |",
    "width": 50,
    "rows_key": None,
    "labels_key": None,
    "title": None,
}


def render(data: object, options: OutputOptions) -> str:
    """Return ``data`` as text: each list of maps in it becomes a table with a column for each key.

    Raises AttributeError or TypeError for malformed rows, ValueError for an unknown option of the outputter.
    """
    unknown = sorted(map(str, options.table.keys() - DEFAULTS.keys()))
    if unknown:
        raise ValueError(f"out.table has no option {', '.join(unknown)}")
    given = {name: value for name, value in options.table.items() if value is not None}
    return "\n".join(_Table(options, {**DEFAULTS, **given}).lines(_decoded(data)))


class _Table:
    def __init__(self, options: OutputOptions, settings: Mapping[str, Any]) -> None:
        self._colors = options.colors
        self._has = settings
        self._justify = _JUSTIFY[settings["justify"].lower()]

    def lines(self, data: Any) -> Iterator[str]:
        """Yield the output of ``table`` line by line; each list of rows is titled with the name that leads to it."""
        indent = self._has["nested_indent"]
        if self._has["title"] and self._has["rows_key"]:
            yield f"{' ' * indent}{self._has['title']}{self._colors.white}{self._colors.endc}\n"
        yield from self._display(data, indent)

    def _line(self, indent: int, color: str, text: str) -> str:
        return f"{' ' * indent}{color}{text}{self._colors.endc}"

    def _display(self, data: Any, indent: int) -> Iterator[str]:
        wanted = self._has["rows_key"]
        if isinstance(data, Mapping):
            if not wanted:
                yield from self._display_all(data, indent)
            elif wanted in data:
                yield from self._display_rows_or_below(data, wanted, indent)
            else:
                for name in sorted(data):
                    yield from self._display(data[name], indent)
        elif isinstance(data, list | tuple) and not wanted:
            yield from self._rows(data, None, indent)

    def _display_all(self, data: Mapping[str, object], indent: int) -> Iterator[str]:
        for name in sorted(data):
            yield f"{self._line(indent, self._colors.dark_gray, name)}:"
            yield self._line(indent, self._colors.dark_gray, "----------")
            yield from self._display_rows_or_below(data, name, indent)

    def _display_rows_or_below(self, data: Mapping[str, Any], name: str, indent: int) -> Iterator[str]:
        if isinstance(data[name], list | tuple):
            labels = data.get(self._has["labels_key"]) if self._has["labels_key"] else None
            yield from self._rows(data[name], labels, indent)
        else:
            yield from self._display(data[name], indent + 4)

    def _rows(self, rows: Sequence[Any], labels: Any, indent: int) -> Iterator[str]:
        if not rows or any(type(row) is not type(rows[0]) for row in rows):
            return
        if isinstance(labels, Mapping):
            labels = [labels[name] for name in sorted(labels)]
        if isinstance(rows[0], Mapping):
            labels = labels or [str(name).replace("_", " ").title() for name in sorted(rows[0])]
            rows = [[str(row[name]) for name in sorted(row)] for row in rows]
        elif isinstance(rows[0], str):
            rows = [[row] for row in rows]
        yield from self._drawn(
            [labels, *rows] if labels else rows, bool(labels and self._has["has_header"]), indent + 4
        )

    def _drawn(self, rows: Iterable[Sequence[str]], has_header: bool, indent: int) -> Iterator[str]:
        logical = [list(self._wrapped(row)) for row in rows]
        columns = zip_longest(*(line for row in logical for line in row), fillvalue="")
        widths = [max(map(len, column)) for column in columns]
        if not widths:
            raise TypeError("rows without cells")
        has, colors = self._has, self._colors
        across = len(has["prefix"]) + len(has["suffix"]) + sum(widths) + len(has["delim"]) * (len(widths) - 1)
        rule = self._line(indent, colors.light_gray, has["row_delimiter"] * across)
        if has["separate_rows"]:
            yield rule
        for row in logical:
            for line in row:
                line += ("",) * (len(widths) - len(line))
                text = has["delim"].join(map(self._justify, line, widths))
                yield self._line(indent, colors.white, f"{has['prefix']}{text}{has['suffix']}")
            if has["separate_rows"] or has_header:
                yield rule
                has_header = False

    def _wrapped(self, row: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Yield the lines of one table row; a cell with fewer lines than another cell of the row is filled with empty lines."""
        return zip_longest(*(self._wrap(cell).split("\n") for cell in row), fillvalue="")

    def _wrap(self, text: str) -> str:
        """Return a cell's text broken at spaces into lines of the table's width; a word longer than the width stays whole."""

        def joined(line: str, word: str) -> str:
            length = len(line) - line.rfind("\n") - 1 + len(word.split("\n", 1)[0])
            return f"{line}{chr(10) if length >= self._has['width'] else ' '}{word}"

        return reduce(joined, text.split(" "))


def _decoded(data: object) -> object:
    if isinstance(data, bytes):
        return data.decode(errors="backslashreplace")
    if isinstance(data, Mapping):
        return {_decoded(name): _decoded(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_decoded(item) for item in data]
    return data
