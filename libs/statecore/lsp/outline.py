"""The outline of a file: IDs with their states, macros, pillar keys. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from statecore.analysis.sls_text.lines import Entry, Span
from statecore.lsp.facts import FileFacts
from statecore.lsp.index import IndexedFile

#: Deepest level of pillar keys that an outline shows.
_DEEPEST = 6


@dataclass(slots=True)
class Symbol:
    """One line of an outline, with the lines below it."""

    name: str
    #: "id", "state", "include", "macro" or "key".
    kind: str
    span: Span
    #: Last line that belongs to it.
    last: int
    detail: str = ""
    children: list[Symbol] = field(default_factory=list)


def outline(indexed: IndexedFile) -> list[Symbol]:
    """Return the outline of a file, in the order of its lines."""
    facts = indexed.facts
    found = [*_macros(facts)]
    if indexed.kind == "sls":
        found += _sls(facts)
    elif indexed.kind in ("pillar", "top"):
        found += [_key(facts, entry, 1) for entry in facts.source.top() if entry.colon]
    return sorted(found, key=lambda symbol: symbol.span)


def _macros(facts: FileFacts) -> Iterator[Symbol]:
    for one in facts.definitions:
        if one.how == "macro":
            span = facts.source.span(one.start, one.end)
            yield Symbol(one.name, "macro", span, span.line, one.text)


def _sls(facts: FileFacts) -> Iterator[Symbol]:
    for sls, span in facts.includes:
        yield Symbol(sls, "include", span, span.line, "include")
    for one in facts.declarations:
        symbol = Symbol(one.id, "id", one.entry.key_span, one.entry.last, "extend" if one.extends else "")
        for state in one.states:
            inline = state.entry is one.entry
            span = state.entry.value_span if inline else state.entry.key_span
            symbol.children.append(Symbol(state.full, "state", span, state.entry.last, state.value("name")))
        yield symbol


def _key(facts: FileFacts, entry: Entry, depth: int) -> Symbol:
    below = [] if depth >= _DEEPEST else [each for each in facts.source.below(entry) if each.colon]
    children = [_key(facts, each, depth + 1) for each in below]
    return Symbol(entry.key or "''", "key", entry.key_span, entry.last, entry.value, children)
