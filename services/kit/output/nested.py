"""``nested``: Salt's default look. Names end in a colon, values stand four columns in, list items carry a dash.

Numbers, booleans and None are light yellow, text green, names cyan; names and dashes of a failed job are red.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from numbers import Number
from typing import Any

from services.kit.output.color import palette, without_escapes
from services.kit.output.options import OutputOptions


def render(data: Any, options: OutputOptions) -> str:
    """The lines of ``data``."""
    return "\n".join(_Nested(options).lines(data, options.nested_indent, ""))


class _Nested:
    def __init__(self, options: OutputOptions) -> None:
        colors = palette(options.color)
        self._end = colors.end
        self._scalar = colors.light_yellow
        self._text = colors.green
        self._name = colors.red if options.retcode else colors.cyan
        self._item = colors.red if options.retcode else colors.green
        self._strip = options.strip_colors

    def lines(self, value: Any, indent: int, prefix: str) -> Iterator[str]:
        """``prefix`` is the dash of a list item: it stands before the first line of a scalar."""
        if isinstance(value, bytes):
            value = _decoded(value)
        if value is None or isinstance(value, bool):
            yield self._line(indent, self._scalar, f"{prefix}{value}")
        elif isinstance(value, Number):
            yield self._line(indent, self._scalar, f"{prefix}{value!r}")
        elif isinstance(value, str):
            yield from self._of_text(value, indent, prefix)
        elif isinstance(value, list | tuple):
            yield from self._of_list(value, indent)
        elif isinstance(value, Mapping):
            yield from self._of_mapping(value, indent, prefix)
        else:
            # Salt shows nothing at all for a set, a date or undecodable bytes; a value that is there should be seen.
            yield from self._of_text(str(value), indent, prefix)

    def _of_text(self, text: str, indent: int, prefix: str) -> Iterator[str]:
        for line in text.splitlines():
            shown = without_escapes(line) if self._strip else line
            yield self._line(indent, self._text, f"{prefix}{shown}")
            prefix = " " * len(prefix)

    def _of_list(self, items: Iterable[Any], indent: int) -> Iterator[str]:
        for item in items:
            if isinstance(item, list | tuple | Mapping):
                yield self._line(indent, self._item, "|_")
                yield from self.lines(item, indent + 2, "" if isinstance(item, Mapping) else "- ")
            else:
                yield from self.lines(item, indent, "- ")

    def _of_mapping(self, mapping: Mapping[Any, Any], indent: int, prefix: str) -> Iterator[str]:
        if indent:
            yield self._line(indent, self._name, "----------")
        for name, value in _ordered(mapping):
            yield f"{self._line(indent, self._name, f'{prefix}{name}')}:"
            yield from self.lines(value, indent + 4, "")

    def _line(self, indent: int, color: str, text: str) -> str:
        return f"{' ' * indent}{color}{text}{self._end}"


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return repr(value)


def _ordered(mapping: Mapping[Any, Any]) -> Iterable[tuple[Any, Any]]:
    if isinstance(mapping, OrderedDict):
        return mapping.items()
    try:
        return sorted(mapping.items(), key=lambda item: item[0])
    except TypeError:
        # Names of different types do not sort among each other; as text they do.
        return sorted({str(name): value for name, value in mapping.items()}.items())
