"""``nested``: Salt's default outputter. Names end in a colon, values are indented by four columns, list items have a dash.

Numbers, booleans and None are light yellow, texts green, names cyan; names and dashes of a failed job are red.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import StringIO
from numbers import Number
from typing import Any

from saltern.kit.command.output.color import without_escapes
from saltern.kit.command.output.options import OutputOptions

#: Levels of nesting that are shown if the data is too deep for Python's stack; 100 levels are 400 columns of indentation.
_DEEPEST = 100


def render(data: object, options: OutputOptions) -> str:
    """Return ``data`` as text in the layout of ``nested``. Very deep data, and data that contains itself, is cut."""
    # A list of lines would need five times the memory of the text.
    lines = StringIO()
    nested = _Nested(options, lines)
    try:
        nested.add(data, options.nested_indent, "")
    except RecursionError:
        lines.seek(0)
        lines.truncate()
        nested.add(_pruned(data, 0, frozenset()), options.nested_indent, "")
    return lines.getvalue()[:-1]


_PLAIN_SCALARS = frozenset({int, float, bool, type(None)})


class _Nested:
    """Builds the lines of the ``nested`` outputter in one list.

    A generator for each level would cost as much as the text itself.
    """

    def __init__(self, options: OutputOptions, lines: StringIO) -> None:
        colors = options.colors
        self._write = lines.write
        self._end = f"{colors.endc}\n"
        self._name_end = f"{colors.endc}:\n"
        self._scalar = colors.light_yellow
        self._text = colors.green
        self._name = colors.red if options.retcode else colors.cyan
        self._item = colors.red if options.retcode else colors.green
        self._strip = options.strip_colors

    def add(self, value: object, indent: int, prefix: str) -> None:
        """Append the lines of a value. ``prefix`` is the dash of a list item; the dash precedes the first line of a scalar."""
        if isinstance(value, bytes):
            value = _decoded(value)
        if type(value) is dict:
            self._add_mapping(value, indent, prefix)
        elif isinstance(value, str):
            self._add_text(value, indent, prefix)
        elif value is None or isinstance(value, bool):
            self._write(f"{' ' * indent}{self._scalar}{prefix}{value}{self._end}")
        elif isinstance(value, Number):
            self._write(f"{' ' * indent}{self._scalar}{prefix}{value!r}{self._end}")
        elif isinstance(value, list | tuple):
            self._add_list(value, indent)
        elif isinstance(value, Mapping):
            self._add_mapping(value, indent, prefix)
        else:
            # Salt prints nothing for a set, a date or undecodable bytes. Here such a value is printed as text.
            self._add_text(str(value), indent, prefix)

    def _add_text(self, text: str, indent: int, prefix: str) -> None:
        margin = f"{' ' * indent}{self._text}"
        for line in (without_escapes(text) if self._strip else text).splitlines():
            self._write(f"{margin}{prefix}{line}{self._end}")
            prefix = " " * len(prefix)

    def _add_list(self, items: Iterable[object], indent: int) -> None:
        for item in items:
            if type(item) is dict or isinstance(item, Mapping):
                self._write(f"{' ' * indent}{self._item}|_{self._end}")
                self._add_mapping(item, indent + 2, "")
            elif isinstance(item, list | tuple):
                self._write(f"{' ' * indent}{self._item}|_{self._end}")
                self._add_list(item, indent + 2)
            else:
                self.add(item, indent, "- ")

    def _add_mapping(self, mapping: Mapping[object, object], indent: int, prefix: str) -> None:
        margin = f"{' ' * indent}{self._name}"
        if indent:
            self._write(f"{margin}----------{self._end}")
        # Most output is written by this loop, so attributes are looked up and strings are built once.
        write, name_end, end = self._write, self._name_end, self._end
        text, scalar = f"{' ' * (indent + 4)}{self._text}", f"{' ' * (indent + 4)}{self._scalar}"
        for name, value in _ordered(mapping):
            write(f"{margin}{prefix}{name}{name_end}")
            kind = type(value)
            if kind is str and value and str(value).isprintable():
                write(f"{text}{value}{end}")
            elif kind in _PLAIN_SCALARS:
                write(f"{scalar}{value!r}{end}")
            else:
                self.add(value, indent + 4, "")


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return repr(value)


def _ordered(mapping: Mapping[Any, object]) -> Iterable[tuple[object, object]]:
    try:
        return [(name, mapping[name]) for name in sorted(mapping)]
    except TypeError:
        # Names of different types cannot be compared, so they are sorted as text.
        return sorted({str(name): value for name, value in mapping.items()}.items(), key=lambda item: item[0])


def _pruned(value: object, depth: int, above: frozenset[int]) -> object:
    """Return a copy of ``value`` with a remark in place of each part that is nested too deep or contains itself."""
    if not isinstance(value, list | tuple | Mapping):
        return value
    if id(value) in above:
        return "(contains itself)"
    if depth == _DEEPEST:
        return f"(more than {_DEEPEST} levels deep)"
    above |= {id(value)}
    if isinstance(value, Mapping):
        return {name: _pruned(item, depth + 1, above) for name, item in value.items()}
    return [_pruned(item, depth + 1, above) for item in value]
