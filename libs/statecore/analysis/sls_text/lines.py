"""Read the lines of a YAML file with Jinja without parsing either: keys, values, list items and their nesting.

The reader is for texts that are being typed. It takes each line by its indentation, treats a Jinja tag as one opaque word,
and never fails: a line that it does not understand is passed over. For the exact data of a finished file, the file is
rendered and parsed (``statecore.render``).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from statecore.analysis.sls_text.jinja_regions import Tag, TagKind, is_statement_line, tags

#: Replaces each character of a Jinja tag while the YAML around the tag is read.
_MASK = "\x00"

_LEAD = re.compile(r"[ \t]*")
_DASH = re.compile(r"-(?:[ \t]+|$)")
_KEY = re.compile(
    r"""(?:"(?:\\.|[^"\\])*"|'(?:''|[^'])*'|[^\s#'"\[\]{},&*!|>%@`-][^#\n]*?|-[^\s#][^#\n]*?)(?=[ \t]*:(?:[ \t]|$))"""
)
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$")
_BLOCK = re.compile(r"^(?:![\w!/-]*\s+|&\S+\s+)*[|>][+-]?\d?[+-]?$")
#: Most lines of one value in quotes or brackets.
_LONGEST = 200

_QUOTED = re.compile(r"""^(?:"(?:\\.|[^"\\])*"|'(?:''|[^'])*')""")


class Span(NamedTuple):
    """A part of one line: line number from 0, first column, column after the last character."""

    line: int
    start: int
    end: int

    def has(self, line: int, column: int) -> bool:
        """Return whether a cursor at this place touches the part."""
        return line == self.line and self.start <= column <= self.end


@dataclass(slots=True)
class Entry:
    """One line of a YAML file: a key with its value, or an item of a list."""

    line: int
    #: Column of the key or item.
    column: int
    #: Column of the dash before it; -1 without a dash.
    dash: int
    #: The key or item as written, without quotes.
    key: str
    key_span: Span
    #: The value on the key's line, without its comment and quotes; "" if there is none.
    value: str
    value_span: Span
    #: True if the line has a colon after the key.
    colon: bool
    #: Index of the entry that this one is below; -1 at the top level.
    parent: int
    #: Last line that belongs to the entry and its children.
    last: int
    #: True if the value is a block of text (``|`` or ``>``).
    block: bool = False
    #: Last line of the entry's own value, which may have several: a block, quoted text, brackets.
    end: int = -1
    children: list[int] = field(default_factory=list)


@dataclass(slots=True)
class SlsText:
    """The text of an SLS file or template, read for an editor: its lines, its Jinja tags and its YAML entries."""

    text: str
    lines: list[str]
    tags: list[Tag]
    entries: list[Entry]
    #: Offset of the first character of each line.
    starts: list[int]

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a place in the text. A place outside the text is moved to its nearest end."""
        if line >= len(self.starts):
            return len(self.text)
        return self.starts[line] + min(column, len(self.lines[line]))

    def place(self, offset: int) -> tuple[int, int]:
        """Return (line, column) of an offset, both from 0."""
        line = max(bisect_right(self.starts, offset) - 1, 0)
        return line, offset - self.starts[line]

    def span(self, start: int, end: int) -> Span:
        """Return the part of a line between two offsets. An end on a later line is moved to the end of the first line."""
        line, column = self.place(start)
        return Span(line, column, min(column + end - start, len(self.lines[line])))

    def entry_at(self, line: int) -> Entry | None:
        """Return the entry that begins on this line; None if there is none."""
        at = bisect_right(self.entries, line, key=lambda entry: entry.line) - 1
        return self.entries[at] if at >= 0 and self.entries[at].line == line else None

    def above(self, line: int, column: int, dash: int) -> Entry | None:
        """Return the entry below which a new entry at this place would be: its parent. None at the top level."""
        at = bisect_right(self.entries, line - 1, key=lambda entry: entry.line) - 1
        while at >= 0:
            entry = self.entries[at]
            if _is_parent(entry, column, dash):
                return entry
            at = entry.parent
        return None

    def parent(self, entry: Entry) -> Entry | None:
        """Return the entry that this one is below; None at the top level."""
        return self.entries[entry.parent] if entry.parent >= 0 else None

    def ancestors(self, entry: Entry) -> list[Entry]:
        """Return the entries above this one, the nearest first."""
        found = []
        at = entry.parent
        while at >= 0:
            found.append(self.entries[at])
            at = self.entries[at].parent
        return found

    def below(self, entry: Entry) -> list[Entry]:
        """Return the entries directly below this one."""
        return [self.entries[each] for each in entry.children]

    def top(self) -> Iterator[Entry]:
        """Yield the entries of the top level."""
        return (entry for entry in self.entries if entry.parent < 0)


def read(text: str) -> SlsText:
    """Return what the lines of an SLS file say. No text is refused."""
    lines = text.split("\n")
    starts, offset = [], 0
    for line in lines:
        starts.append(offset)
        offset += len(line) + 1
    found = tags(text)
    made = SlsText(text, lines, found, [], starts)
    _entries(made, _masked(text, found).split("\n"))
    return made


def _masked(text: str, found: Sequence[Tag]) -> str:
    """Return the text with every Jinja tag replaced by as many opaque characters. Newlines stay."""
    parts, at = [], 0
    for tag in found:
        parts.append(text[at : tag.start])
        inside = text[tag.start : tag.end]
        mark = " " if tag.kind is TagKind.COMMENT else _MASK
        parts.append("\n".join(mark * len(line) for line in inside.split("\n")))
        at = tag.end
    parts.append(text[at:])
    return "".join(parts)


def _entries(made: SlsText, masked: Sequence[str]) -> None:
    stack: list[int] = []
    number = 0
    statement = _statement_lines(made)
    while number < len(masked):
        line = masked[number]
        if not line.strip() or line.lstrip().startswith("#") or number in statement:
            number += 1
            continue
        first = len(made.entries)
        for entry in _of_line(made, line, number):
            while stack and not _is_parent(made.entries[stack[-1]], entry.column, entry.dash):
                stack.pop()
            entry.parent = stack[-1] if stack else -1
            if stack:
                made.entries[stack[-1]].children.append(len(made.entries))
            stack.append(len(made.entries))
            made.entries.append(entry)
        if len(made.entries) == first:
            number += 1
            continue
        last = made.entries[-1]
        end = last.end = _end_of_value(masked, number, last, statement)
        for at in stack:
            made.entries[at].last = end
        number = end + 1


def _statement_lines(made: SlsText) -> frozenset[int]:
    """Return the numbers of lines that have nothing but Jinja statements and comments, or are inside one."""
    found: set[int] = set()
    for tag in made.tags:
        if tag.kind is TagKind.OUTPUT:
            continue
        first, _ = made.place(tag.start)
        last, end = made.place(tag.end)
        if not made.lines[first][: tag.start - made.starts[first]].strip():
            found.update(range(first, last))
            if not made.lines[last][end:].strip() or is_statement_line(made.lines[last]):
                found.add(last)
    return frozenset(found)


def _is_parent(above: Entry, column: int, dash: int) -> bool:
    if dash >= 0:
        # A list may be in the column of its key.
        return above.column < dash or (above.column == dash and above.colon and not above.value)
    return above.column < column


def _of_line(made: SlsText, line: str, number: int) -> Iterator[Entry]:
    """Yield the entry of a line: at most one, the key or item after all dashes."""
    match = _LEAD.match(line)
    column = match.end() if match else 0
    dash = -1
    while (mark := _DASH.match(line, column)) is not None:
        dash = column
        column = mark.end()
    rest = _COMMENT.sub("", line[column:]).rstrip() if "#" in line else line[column:].rstrip()
    if not rest and dash < 0:
        return
    written = made.lines[number]
    key = _KEY.match(rest)
    if key is None:
        end = column + len(rest)
        span = Span(number, column, end)
        word = _unquoted(written[column:end])
        yield Entry(number, column, dash, word, span, "", Span(number, end, end), False, -1, number)
        return
    end = column + key.end()
    colon = rest.index(":", key.end())
    value = rest[colon + 1 :]
    start = column + colon + 1 + len(value) - len(value.lstrip())
    stop = column + len(rest)
    start = min(start, stop)
    span = Span(number, start, stop)
    quoted = _QUOTED.match(rest[start - column :])
    own = written[start : start + quoted.end()] if quoted else written[start:stop]
    block = bool(_BLOCK.match(value.strip()))
    yield Entry(
        number,
        column,
        dash,
        _unquoted(written[column:end]),
        Span(number, column, end),
        "" if block else _unquoted(own),
        span,
        True,
        -1,
        number,
        block,
    )


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _end_of_value(masked: Sequence[str], number: int, entry: Entry, statement: frozenset[int]) -> int:
    """Return the last line of an entry's own value: of a block of text, or of a list or map in brackets."""
    end = at = number
    if entry.block:
        while at + 1 < len(masked):
            line = masked[at + 1]
            indent = len(line) - len(line.lstrip(" "))
            if line.strip() and at + 1 not in statement and indent <= entry.column:
                break
            at += 1
            end = at if line.strip() else end
        return end
    line = masked[number]
    value = line[entry.value_span.start if entry.colon else entry.column :].lstrip()
    if value[:1] in ("'", '"'):
        return _end_of_quotes(masked, number, entry, value)
    depth = _depth(value)
    while depth > 0 and at + 1 < len(masked) and at - number < _LONGEST:
        line = masked[at + 1]
        if line.strip() and _outside(line, entry) and line.strip()[0] not in "]}":
            # A bracket that is not closed yet does not take the rest of the file.
            return number
        at += 1
        depth += _depth(line)
    return at if depth <= 0 else number


def _end_of_quotes(masked: Sequence[str], number: int, entry: Entry, value: str) -> int:
    """Return the line with the closing quote of a value; the value's first line if none closes it."""
    quote = value[0]
    text = value[1:]
    for at in range(number, min(number + _LONGEST, len(masked))):
        if at > number:
            text = masked[at]
            if text.strip() and _outside(text, entry):
                return number
        plain = text.replace("''", "") if quote == "'" else re.sub(r"\\.", "", text)
        if quote in plain:
            return at
    return number


def _outside(line: str, entry: Entry) -> bool:
    """Return whether a line is indented too little to belong to the value of an entry."""
    return len(line) - len(line.lstrip()) <= (entry.column if entry.dash < 0 else entry.dash)


def _depth(text: str) -> int:
    return text.count("[") + text.count("{") - text.count("]") - text.count("}") if text else 0
