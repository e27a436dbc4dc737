"""What is under the cursor: the name that hover, definition, references and rename are about. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from statecore.analysis.sls_text.jinja_regions import Tag, TagKind, tag_at
from statecore.analysis.sls_text.lines import Entry, SlsText, Span
from statecore.lsp.facts import Declaration, FileFacts, Reference, StateUse
from statecore.lsp.index import IndexedFile


class Subject(NamedTuple):
    """The name under the cursor: its kind, the name, its place, and what it belongs to."""

    #: "declaration" (an ID), "state" (``file.managed``), "argument", "salt" (an execution function), "filter", "test",
    #: "variable", or the kind of a Reference ("id", "sls", "template", "file", "pillar", "grain").
    kind: str
    name: str
    span: Span
    #: State function of an argument, state module of a requisite; "" for none.
    owner: str = ""


_WORD = re.compile(r"[A-Za-z_]\w*")
_SALT_ITEM = re.compile(r"salt\[\s*(['\"])([\w.]*)\1")
_SALT_DOT = re.compile(r"(?<![\w.])salt\.(\w+)\.(\w+)")
_FILTER = re.compile(r"\|\s*([A-Za-z_]\w*)")
_TEST = re.compile(r"\bis\s+(?:not\s+)?([A-Za-z_]\w*)")


def subject_at(facts: FileFacts, line: int, column: int) -> Subject | None:
    """Return the name under the cursor; None if there is none that the engine knows."""
    source = facts.source
    if line >= len(source.lines):
        return None
    offset = source.offset(line, column)
    tag = tag_at(source.tags, offset)
    for reference in _touching(facts, line, column):
        return Subject(reference.kind, reference.name, reference.span, reference.module)
    if tag is not None:
        return None if tag.kind is TagKind.COMMENT else _in_tag(source, tag, offset)
    found = in_declaration(facts, line)
    if found is None:
        return None
    declaration, state, argument = found
    if declaration.entry.key_span.has(line, column):
        return Subject("declaration", declaration.id, declaration.entry.key_span)
    if state is not None:
        if state.function_entry is not None and state.function_entry.key_span.has(line, column):
            return Subject("state", state.full, state.function_entry.key_span)
        if state.entry is declaration.entry:
            return (
                Subject("state", state.full, state.entry.value_span)
                if state.entry.value_span.has(line, column)
                else None
            )
        if state.entry.key_span.has(line, column):
            return Subject("state", state.full, state.entry.key_span)
        if argument is not None and argument.key_span.has(line, column):
            return Subject("argument", argument.key, argument.key_span, state.full)
    return None


def _touching(facts: FileFacts, line: int, column: int) -> Iterator[Reference]:
    found = [each for each in facts.references if each.span.has(line, column)]
    # The ID below ``extend`` is a declaration and a reference: the reference counts. The shortest is the most exact.
    yield from sorted(found, key=lambda each: each.span.end - each.span.start)


def _in_tag(source: SlsText, tag: Tag, offset: int) -> Subject | None:
    text = source.text
    for match in _SALT_ITEM.finditer(text, tag.start, tag.end):
        if match.start(2) <= offset <= match.end(2):
            return Subject("salt", match[2], source.span(match.start(2), match.end(2)))
    for match in _SALT_DOT.finditer(text, tag.start, tag.end):
        if match.start(1) <= offset <= match.end(2):
            return Subject("salt", f"{match[1]}.{match[2]}", source.span(match.start(1), match.end(2)))
    for kind, pattern in (("filter", _FILTER), ("test", _TEST)):
        for match in pattern.finditer(text, tag.start, tag.end):
            if match.start(1) <= offset <= match.end(1):
                return Subject(kind, match[1], source.span(match.start(1), match.end(1)))
    for match in _WORD.finditer(text, tag.start, tag.end):
        if match.start() <= offset <= match.end():
            before = text[tag.start : match.start()].rstrip()
            if _in_quotes(text[tag.start + 2 : match.start()]):
                return None
            return Subject(
                "variable",
                match[0],
                source.span(match.start(), match.end()),
                before[-1:] if before.endswith(".") else "",
            )
    return None


def _in_quotes(text: str) -> bool:
    """Return whether a quoted text of an expression is still open at the end of ``text``."""
    quote = ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
    return bool(quote)


class Inside(NamedTuple):
    """The declaration that a line belongs to, its state and its argument, as far as the line is inside them."""

    declaration: Declaration
    state: StateUse | None
    argument: Entry | None


def in_declaration(facts: FileFacts, line: int) -> Inside | None:
    """Return the declaration, state and argument that a line belongs to; None outside of all declarations."""
    for declaration in facts.declarations:
        if not declaration.entry.line <= line <= declaration.entry.last:
            continue
        for state in declaration.states:
            if state.entry.line <= line <= state.entry.last:
                argument = next((each for each in state.arguments if each.line <= line <= each.last), None)
                return Inside(declaration, state, argument)
        return Inside(declaration, None, None)
    return None


def tag_text(indexed: IndexedFile, line: int, column: int) -> tuple[Tag, str] | None:
    """Return the Jinja tag under the cursor and its inside; None outside of all tags."""
    source = indexed.facts.source
    tag = tag_at(source.tags, source.offset(line, column))
    if tag is None:
        return None
    return tag, source.text[tag.start + 2 : tag.end - 2 if tag.closed else tag.end]
