"""Go to definition, find references and rename, over the index of a workspace. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from statecore.analysis.sls_text.jinja_regions import TagKind
from statecore.analysis.sls_text.lines import Span
from statecore.lsp.catalogue import Catalogue
from statecore.lsp.cursor import Subject, subject_at
from statecore.lsp.facts import Declaration
from statecore.lsp.index import IndexedFile, Place, TreeIndex, absolute, spans, template_path


class Edit(NamedTuple):
    """A change of one file: the text between two places, which may be on different lines, becomes ``text``."""

    file: str
    start: tuple[int, int]
    end: tuple[int, int]
    text: str


class CannotRename(Exception):
    """The name under the cursor cannot be renamed; ``str()`` says why, for the user."""


_TOP = Span(0, 0, 0)


def definition(index: TreeIndex, catalogue: Catalogue, file: str, line: int, column: int) -> list[Place]:
    """Return the places that define the name under the cursor; [] if none is known."""
    indexed = index.files[file]
    subject = subject_at(indexed.facts, line, column)
    if subject is None:
        return []
    if subject.kind in ("id", "declaration"):
        return _declared(index, file, subject)
    if subject.kind == "sls":
        found = index.sls_file(subject.name, indexed.at)
    elif subject.kind == "template":
        found = index.tree_file(template_path(subject.name, indexed.at), indexed.at)
    elif subject.kind == "file":
        found = index.tree_file(subject.name, indexed.at)
    elif subject.kind == "pillar":
        return _pillar_places(index, subject.name)
    elif subject.kind == "variable":
        return _variable(index, file, indexed, subject)
    elif subject.kind in ("state", "salt", "argument"):
        full = subject.owner if subject.kind == "argument" else subject.name
        function = catalogue.function("modules" if subject.kind == "salt" else "states", full)
        return [Place(function.file, Span(function.line, 0, 0))] if function and function.file else []
    else:
        return []
    return [Place(found, _TOP)] if found else []


def _declared(index: TreeIndex, file: str, subject: Subject) -> list[Place]:
    found = [
        (other, one)
        for other, one in index.declarations(subject.name)
        if not subject.owner or not one.states or any(state.module == subject.owner for state in one.states)
    ]
    env = index.files[file].at.env
    own = [(other, one) for other, one in found if index.files[other].at.env == env] or found
    included = index.includes_of(file)
    # An ID of the files that this file includes is the one that is meant.
    near = [(other, one) for other, one in own if other in included] or own
    return spans(Place(other, one.entry.key_span) for other, one in near)


def _pillar_places(index: TreeIndex, path: str) -> list[Place]:
    """Return the places of a pillar key, else of the longest part of its path that pillar files have."""
    keys = index.pillar_keys()
    while path:
        if path in keys:
            return spans(Place(file, span) for file, span in keys[path].items())
        path = path.rpartition(":")[0]
    return []


def _variable(index: TreeIndex, file: str, indexed: IndexedFile, subject: Subject) -> list[Place]:
    source = indexed.facts.source
    if subject.owner == ".":
        # ``map.user``: the macro ``user`` of the template imported as ``map``.
        before = re.search(r"(\w+)\s*\.\s*$", source.lines[subject.span.line][: subject.span.start])
        return _imported(index, indexed, before[1], subject.name) if before else []
    through = _imported(index, indexed, subject.name, "")
    own = [one for one in indexed.facts.definitions if one.name == subject.name]
    if through or not own:
        return through
    at = source.offset(subject.span.line, subject.span.start)
    earlier = [one for one in own if one.start <= at]
    chosen = earlier[-1] if earlier else own[0]
    return [Place(file, source.span(chosen.start, chosen.end))]


def _imported(index: TreeIndex, indexed: IndexedFile, name: str, member: str) -> list[Place]:
    """Return the definition of an imported name, or of ``member`` in a template that is imported as ``name``."""
    for one in indexed.facts.imports:
        there = next((theirs for theirs, ours, _ in one.names if ours == name), "")
        whole = not one.names and any(
            each.how == "import" and each.name == name and one.start < each.start < one.end + 80
            for each in indexed.facts.definitions
        )
        wanted = member if whole else there
        if not (there or whole):
            continue
        file = index.tree_file(template_path(one.path, indexed.at), indexed.at)
        if file is None:
            continue
        other = index.files.get(file)
        if other is None or not wanted:
            return [Place(file, _TOP)]
        for each in other.facts.definitions:
            if each.name == wanted and each.how != "argument":
                return [Place(file, other.facts.source.span(each.start, each.end))]
    return []


# --------------------------------------------------------------------------------------------------------------- references


def references(index: TreeIndex, file: str, line: int, column: int, *, declaration: bool = True) -> list[Place]:
    """Return all uses of the name under the cursor. ``declaration``: its definitions too."""
    indexed = index.files[file]
    subject = subject_at(indexed.facts, line, column)
    if subject is None:
        return []
    if subject.kind in ("id", "declaration"):
        return _uses_of_id(index, file, subject, declaration=declaration)
    if subject.kind == "variable":
        return _uses_of_variable(file, indexed, subject)
    if subject.kind == "state":
        return spans(
            Place(
                other,
                (state.function_entry or state.entry).key_span
                if state.entry is not one.entry
                else state.entry.value_span,
            )
            for other, each in index.files.items()
            for one in each.facts.declarations
            for state in one.states
            if state.full == subject.name
        )
    name = subject.name
    if subject.kind == "sls":
        name = f"{indexed.at.tree}:{absolute(name, indexed.at)}"
    elif subject.kind == "template":
        name = template_path(name, indexed.at)
    found = [Place(other, each.span) for other, each in index.uses(subject.kind, name)]
    if declaration and subject.kind == "pillar":
        found += _pillar_places(index, name)
    return spans(found)


def _uses_of_id(index: TreeIndex, file: str, subject: Subject, *, declaration: bool) -> list[Place]:
    declared = _declarations_meant(index, file, subject)
    names = {subject.name}
    modules: set[str] = set()
    for _, one in declared:
        names.add(one.id)
        names |= {state.value("name") for state in one.states if state.value("name")}
        modules |= {state.module for state in one.states}
    found = [
        Place(other, each.span)
        for name in names
        for other, each in index.uses("id", name)
        if not each.module or not modules or each.module in modules
    ]
    if declaration:
        found += [Place(other, one.entry.key_span) for other, one in declared]
    return spans(found)


def _declarations_meant(index: TreeIndex, file: str, subject: Subject) -> list[tuple[str, Declaration]]:
    places = set(_declared(index, file, subject))
    return [
        (other, one) for other, one in index.declarations(subject.name) if Place(other, one.entry.key_span) in places
    ]


def _uses_of_variable(file: str, indexed: IndexedFile, subject: Subject) -> list[Place]:
    source = indexed.facts.source
    word = re.compile(rf"(?<![\w.'\"]){re.escape(subject.name)}(?![\w'\"])")
    return spans(
        Place(file, source.span(match.start(), match.end()))
        for tag in source.tags
        if tag.kind is not TagKind.COMMENT
        for match in word.finditer(source.text, tag.start, tag.end)
    )


# ------------------------------------------------------------------------------------------------------------------- rename


def renamable(index: TreeIndex, file: str, line: int, column: int) -> Span:
    """Return the part of the line that a rename at the cursor would replace. Raise CannotRename with the reason."""
    subject = subject_at(index.files[file].facts, line, column)
    if subject is None or subject.kind not in ("id", "declaration"):
        raise CannotRename("only IDs of states can be renamed")
    if "{{" in subject.name or "{%" in subject.name:
        raise CannotRename(f"the ID '{subject.name}' is computed by a template")
    if not [one for _, one in _declarations_meant(index, file, subject) if one.id == subject.name]:
        raise CannotRename(f"no file of the tree declares the ID '{subject.name}'; a state's name is not an ID")
    span = subject.span
    text = index.files[file].facts.source.lines[span.line][span.start : span.end]
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return Span(span.line, span.start + quoted, span.end - quoted)


def rename(index: TreeIndex, file: str, line: int, column: int, new: str) -> list[Edit]:
    """Return the edits that rename the ID under the cursor, with every requisite, extend and exclude that names it.

    A state without the argument ``name`` gets it, with the old ID as value: the state manages the same thing as before.
    Raise CannotRename with the reason.
    """
    renamable(index, file, line, column)
    subject = subject_at(index.files[file].facts, line, column)
    assert subject is not None
    if not new.strip() or "\n" in new:
        raise CannotRename("the new ID must be one line of text")
    taken = [other for other, one in index.declarations(new) if one.id == new]
    if taken:
        raise CannotRename(f"the ID '{new}' is already declared in {index.files[taken[0]].at.path}")
    declared = [(other, one) for other, one in _declarations_meant(index, file, subject) if one.id == subject.name]
    modules = {state.module for _, one in declared for state in one.states}
    edits = set()
    for other, one in declared:
        edits.add(_replaced(index, other, one.entry.key_span, new))
        edits.update(_kept_names(index, other, one))
    for other, each in index.uses("id", subject.name):
        if not each.module or not modules or each.module in modules:
            edits.add(_replaced(index, other, each.span, new))
    return sorted(edits)


def _replaced(index: TreeIndex, file: str, span: Span, new: str) -> Edit:
    text = index.files[file].facts.source.lines[span.line]
    old = text[span.start : span.end]
    if len(old) > 1 and old[0] == old[-1] and old[0] in "'\"":
        span = Span(span.line, span.start + 1, span.end - 1)
        written = new.replace("'", "''") if old[0] == "'" else new.replace("\\", "\\\\").replace('"', '\\"')
    elif (
        span.start
        and text[span.start - 1 : span.start] in "'\""
        and text[span.start - 1] == text[span.end : span.end + 1]
    ):
        written = (
            new.replace("'", "''") if text[span.start - 1] == "'" else new.replace("\\", "\\\\").replace('"', '\\"')
        )
    else:
        written = quoted(new)
    return Edit(file, (span.line, span.start), (span.line, span.end), written)


_PLAIN = re.compile(r"[A-Za-z_/.][\w ./+-]*(?<! )|[A-Za-z_/.]")
_SPECIAL = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n", "~", "include", "extend", "exclude"})


def quoted(text: str) -> str:
    """Return a text as a YAML scalar: with quotes if YAML would read something else without them."""
    if _PLAIN.fullmatch(text) and text.lower() not in _SPECIAL:
        return text
    return "'" + text.replace("'", "''") + "'"


def _kept_names(index: TreeIndex, file: str, one: Declaration) -> Iterator[Edit]:
    """Yield the edits that give each state of an ID the argument ``name``, if it took its name from the ID."""
    source = index.files[file].facts.source
    for state in one.states:
        if any(argument.key in ("name", "names") for argument in state.arguments):
            continue
        if state.entry is one.entry:
            start = state.entry.key_span.end
            end = len(source.lines[state.entry.line])
            text = f":\n  {state.full}:\n    - name: {quoted(one.id)}"
            yield Edit(file, (state.entry.line, start), (state.entry.line, end), text)
        elif state.entry.value:
            if state.entry.value == "[]":
                span = state.entry.value_span
                indent = " " * (state.entry.column + 2)
                text = f"\n{indent}- name: {quoted(one.id)}"
                # The blank before the brackets goes with them.
                yield Edit(file, (span.line, span.start - 1), (span.line, span.end), text)
        else:
            items = source.below(state.entry)
            dash = items[0].dash if items and items[0].dash >= 0 else state.entry.column + 2
            after = (state.function_entry or state.entry).line
            end = len(source.lines[after])
            yield Edit(file, (after, end), (after, end), f"\n{' ' * dash}- name: {quoted(one.id)}")
