"""Format SLS files: indentation, blanks and empty lines, never a value. Pure.

The result is proven: the YAML around the Jinja tags must have the same events before and after, else the text stays as it was.
A text that is no YAML without its tags (a template makes the structure) stays as it was, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from statecore.analysis.sls_text.jinja_regions import Tag, TagKind, tags
from statecore.analysis.sls_text.lines import Entry, SlsText, read
from statecore.model import yaml

_INDENT = 2

#: Blanks that one pass removes can move what the next one reads: a dash alone, then its entry below it.
_MOST_PASSES = 4

#: More blanks after the beginning show how statements nest, so they stay.
_OPENING = re.compile(r"^(\{[%{](?:[-+](?=\S)|(?=[^\s+-])))")
_CLOSING = re.compile(r"\s*([-+]?[%}]\})$")


def formatted(text: str) -> str:
    """Return the text of an SLS file in the usual form: two blanks for each level, one after ``:`` and ``-``, one empty
    line at most, blanks inside Jinja's delimiters, a newline at the end. Rendering it gives the same data.
    """
    for _ in range(_MOST_PASSES):
        made = _formatted_once(text)
        if made == text:
            break
        text = made
    return text


def _formatted_once(text: str) -> str:
    if not text.strip() or _no_yaml(text):
        return text
    spaced = _spaced_tags(text)
    known = _events(spaced)
    if known is None:
        return text
    made = _laid_out(read(spaced))
    if made is not None and _events(made) == known:
        return made
    stripped = _stripped(read(spaced))
    return stripped if _events(stripped) == known else text


def _no_yaml(text: str) -> bool:
    first = text.partition("\n")[0]
    return first.startswith("#!") and not first.strip().endswith(("yaml", "yamlex", "stateconf"))


def _spaced_tags(text: str) -> str:
    """Return the text with one blank after the beginning and before the end of each Jinja tag on one line."""
    parts, at = [], 0
    for tag in tags(text):
        inside = text[tag.start : tag.end]
        if tag.kind is TagKind.COMMENT or not tag.closed or "\n" in inside or len(inside.strip("{}%-+ ")) == 0:
            continue
        parts += [text[at : tag.start], _CLOSING.sub(r" \1", _OPENING.sub(r"\1 ", inside))]
        at = tag.end
    return "".join([*parts, text[at:]])


def _events(text: str) -> list[tuple[str, object]] | None:
    """Return the YAML events of a text with its Jinja tags taken out; None if that is no YAML."""
    try:
        return [(type(event).__name__, _value(event)) for event in yaml.events(_without_tags(text, tags(text)))]
    except yaml.YamlFault:
        return None


def _value(event: object) -> object:
    if isinstance(event, yaml.ScalarEvent):
        return event.value, event.style in ("'", '"'), event.tag, event.anchor
    return getattr(event, "anchor", None), getattr(event, "tag", None)


def _without_tags(text: str, found: Sequence[Tag]) -> str:
    """Return the text with outputs as words, and without statements. Lines of statements alone become empty."""
    parts, at = [], 0
    for tag in found:
        parts.append(text[at : tag.start])
        inside = text[tag.start : tag.end]
        if tag.kind is TagKind.OUTPUT:
            word = re.sub(r"\W+", "_", inside.strip("{}-+ "))
            parts.append(f"jinja{word}")
        else:
            parts.append("\n" * inside.count("\n"))
        at = tag.end
    lines = "".join([*parts, text[at:]]).split("\n")
    return "\n".join(line if line.strip() else "" for line in lines)


# ------------------------------------------------------------------------------------------------------------------- layout


def _kept_lines(source: SlsText) -> dict[int, Entry]:
    """Map of the lines inside a block of text, or a value of several lines, to the entry that they belong to."""
    kept: dict[int, Entry] = {}
    for number, entry in enumerate(source.entries):
        following = source.entries[number + 1].line if number + 1 < len(source.entries) else len(source.lines)
        end = following - 1 if entry.block else min(entry.end, following - 1)
        for line in range(entry.line + 1, end + 1):
            if (
                entry.block
                and not source.lines[line].strip()
                and all(not each.strip() for each in source.lines[line : end + 1])
            ):
                break
            kept[line] = entry
    return kept


def _stripped(source: SlsText) -> str:
    kept = _kept_lines(source)
    lines = [line if number in kept else line.rstrip() for number, line in enumerate(source.lines)]
    return _ended(lines, source)


def _ended(lines: list[str], source: SlsText) -> str:
    last = source.entries[-1] if source.entries else None
    if last is not None and last.block and source.lines[last.line].rstrip().endswith("+"):
        return "\n".join(lines)
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    return "\n".join(lines) + "\n"


def _laid_out(source: SlsText) -> str | None:
    """Return the text with its entries indented by their level; None if the lines cannot be placed."""
    if any("\t" in line[: len(line) - len(line.lstrip())] for line in source.lines if line.strip()):
        return None
    columns: dict[int, int] = {}
    shift: dict[int, int] = {}
    firsts: dict[int, int | None] = {}
    #: Entry, or -1 for the top -> its last child so far.
    last: dict[int, int] = {}
    for number, entry in enumerate(source.entries):
        if not entry.colon and entry.dash < 0:
            # A text that continues the line above, or a tag that makes the structure.
            return None
        base = columns[entry.parent] + _INDENT if entry.parent >= 0 else 0
        if (
            entry.parent >= 0
            and entry.dash < 0
            and source.entries[entry.parent].dash >= 0
            and source.entries[entry.parent].colon is False
        ):
            return None
        first = firsts[number] = _first_of_item(source, number, last.get(entry.parent), firsts)
        last[entry.parent] = number
        if entry.dash >= 0:
            # A list inside a list item is in the column of its key, as Salt's pages have it.
            within = entry.parent >= 0 and source.entries[entry.parent].dash >= 0
            columns[number] = base if within else base + _INDENT
        elif first is not None:
            columns[number] = columns[first]
        else:
            columns[number] = base
        # Behind a dash alone there is no blank to count.
        alone = entry.dash >= 0 and not source.lines[entry.line][entry.dash + 1 :].strip()
        shift[entry.line] = columns[number] - (entry.dash + _INDENT if alone else entry.column)
    kept = _kept_lines(source)
    at_line = {entry.line: number for number, entry in enumerate(source.entries)}
    lines: list[str] = []
    for number, line in enumerate(source.lines):
        if number in kept:
            lines.append(_shifted(line, shift[kept[number].line]))
        elif number in at_line:
            entry = source.entries[at_line[number]]
            lines.append(_entry_line(source, entry, columns[at_line[number]]))
        elif line.strip().startswith("#") and not line.startswith("#!"):
            lines.append(_comment(source, number, line, shift))
        else:
            lines.append(line.rstrip())
    return _ended(_joined_blanks(lines, kept), source)


def _first_of_item(source: SlsText, number: int, before: int | None, firsts: Mapping[int, int | None]) -> int | None:
    """Return the entry with the dash of the list item that an entry without dash belongs to; None if it is in no item.

    ``before`` is the sibling above, None for the first one, and ``firsts`` has the answers for the entries above.
    """
    entry = source.entries[number]
    if entry.dash >= 0 or before is None or source.entries[before].column != entry.column:
        return None
    return before if source.entries[before].dash >= 0 else firsts[before]


def _entry_line(source: SlsText, entry: Entry, column: int) -> str:
    line = source.lines[entry.line].rstrip()
    rest = line[entry.column :]
    if entry.colon:
        colon = entry.value_span.start - entry.column
        head, value = rest[:colon].rstrip(), rest[colon:]
        # The blanks before a comment are its author's.
        comment = value.lstrip().startswith("#")
        rest = rest if comment else f"{head} {value.lstrip()}" if value.strip() else head
    if entry.dash < 0:
        return " " * column + rest
    dashes = source.lines[entry.line][: entry.column].count("-")
    return " " * (column - _INDENT * dashes) + "- " * dashes + rest if rest else " " * (column - _INDENT) + "-"


def _shifted(line: str, by: int) -> str:
    if not line.strip() or not by:
        return line
    if by > 0:
        # A Jinja statement at the margin stays there.
        return line if line.startswith("{%") else " " * by + line
    return line[min(-by, len(line) - len(line.lstrip(" "))) :]


def _comment(source: SlsText, number: int, line: str, shift: dict[int, int]) -> str:
    """Return a line of comment, moved with the entry below it if it stands in that entry's column."""
    column = len(line) - len(line.lstrip())
    below = next((entry for entry in source.entries if entry.line > number), None)
    if below is not None:
        start = below.dash if below.dash >= 0 else below.column
        if start == column:
            return _shifted(line.rstrip(), shift[below.line])
    return line.rstrip()


def _joined_blanks(lines: Sequence[str], kept: dict[int, Entry]) -> list[str]:
    made: list[str] = []
    empty = 0
    for number, line in enumerate(lines):
        empty = empty + 1 if not line and number not in kept else 0
        if empty < 2:
            made.append(line)
    while made and not made[0]:
        made.pop(0)
    return made
