"""Findings of ``check`` as an editor shows them: with the range of the word, and judged with the whole tree in view. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from statecore.analysis.finding import Finding
from statecore.analysis.inspection.places import LACKING
from statecore.analysis.sls_text.lines import Span
from statecore.lsp.catalogue import Catalogue
from statecore.lsp.index import Place, TreeIndex, reference
from statecore.model.errors import Mark
from statecore.model.nearest import close_matches

#: Rules about IDs that another SLS of the same run may declare.
_ACROSS = frozenset({"requisite-to-nothing", "extend"})

_FUNCTION = re.compile(r"there is no (?:state )?function '(\w+)\.")
_WORD = re.compile(r"[^\s:,\[\]{}'\"#|()]+")

#: Words of each message about something that is left out because the tree is not trusted.
NOT_HERE = "is not run for an untrusted tree"

#: Rule of such a finding.
NOT_RENDERED = "not-rendered"


class Diagnostic(NamedTuple):
    """One finding at its place: severity ("error", "warning", "note"), rule, message and hint."""

    span: Span
    severity: str
    rule: str
    message: str
    hint: str = ""
    #: Place in another file that the finding is really about; None for this one.
    related: Place | None = None


def diagnostics(
    found: Sequence[Mapping[str, object]], index: TreeIndex, catalogue: Catalogue, file: str
) -> list[Diagnostic]:
    """Return the findings of a file as the editor shows them. ``found`` are findings as ``Finding.as_data`` makes them."""
    shown = (_judged(one, index, catalogue, file) for one in found)
    return sorted({one for one in shown if one is not None}, key=lambda one: one[:4])


def of_untrusted(found: Finding, catalogue: Catalogue) -> Finding | None:
    """Return a finding about an untrusted tree, whose code was not run: as it is, as a note that a part was not rendered, or
    None for a function of a user's module that was not loaded.
    """
    if function := _FUNCTION.search(found.message):
        kind = "states" if found.rule == "unknown-function" else "modules"
        if catalogue.is_users(kind, function[1]):
            return None
    if NOT_HERE in found.message:
        said = found.message.partition(" failed: ")[2] or found.message
        return replace(found, rule=NOT_RENDERED, message=f"not rendered: {said}")
    return found


def _judged(one: Mapping[str, object], index: TreeIndex, catalogue: Catalogue, file: str) -> Diagnostic | None:
    judged = of_untrusted(Finding.from_data(one), catalogue)
    if judged is None:
        return None
    rule, message, hint, severity = judged.rule, judged.message, judged.hint, judged.level.value
    mark = judged.mark or Mark("")
    named = mark.file or file
    place = _span(index, named, mark.line, mark.column)
    if rule in _ACROSS and named == file:
        rule, severity, message, hint = _across(index, file, rule, severity, message, hint)
    if named != file:
        at = index.known[named].path if named in index.known else named
        message, related = f"{at}:{place.line + 1}: {message}", Place(named, place)
        return Diagnostic(_include_of(index, file, named), severity, rule, message, hint, related)
    return Diagnostic(place, severity, rule, message, hint)


def _span(index: TreeIndex, file: str, line: int, column: int) -> Span:
    """Return the word at a place of ``check`` (from 1; 0 is unknown), else the whole line without its indentation."""
    indexed = index.files.get(file)
    lines = indexed.facts.source.lines if indexed else []
    number = max(line - 1, 0)
    if number >= len(lines):
        return Span(max(len(lines) - 1, 0), 0, 0)
    text = lines[number]
    if column > 1 or (column == 1 and text[:1].strip()):
        word = _WORD.match(text, column - 1)
        if word is not None:
            return Span(number, word.start(), word.end())
    stripped = len(text) - len(text.lstrip())
    return Span(number, stripped, len(text.rstrip())) if text.strip() else Span(number, 0, 0)


def _across(
    index: TreeIndex, file: str, rule: str, severity: str, message: str, hint: str
) -> tuple[str, str, str, str]:
    """Return (rule, severity, message, hint) of a finding about an ID that other files of the tree may declare."""
    lacking = LACKING.search(message)
    wanted = (lacking[2] or lacking[3] or "") if lacking else ""
    env = index.place_of(file).env
    declared = sorted(
        {
            reference(index.files[other].at.path)
            for other, _ in index.declarations(wanted)
            if index.files[other].at.env == env and other != file
        }
    )
    if declared:
        text = f"'{wanted}' is declared in '{declared[0]}', which this SLS does not include"
        return "needs-other-sls", "warning", text, f"include '{declared[0]}'"
    if wanted and not hint:
        known = index.declared_in()
        near = close_matches(wanted, list(known), n=1)
        hint = f"the nearest of the tree is '{near[0]}' in '{known[near[0]][0]}'" if near else ""
    return rule, severity, message, hint


def _include_of(index: TreeIndex, file: str, other: str) -> Span:
    """Return the place of the include through which another file came in; the first line if none is found."""
    indexed = index.files.get(file)
    for sls, span in indexed.facts.includes if indexed else ():
        direct = index.sls_file(sls, indexed.at) if indexed else None
        if direct is not None and (direct == other or other in index.includes_of(direct)):
            return span
    for one in _imports(index, file):
        if one.file == other:
            return one.span
    return Span(0, 0, 0)


def _imports(index: TreeIndex, file: str) -> Iterator[Place]:
    indexed = index.files.get(file)
    if indexed is None:
        return
    for one in indexed.facts.imports:
        found = index.tree_file(one.path.removeprefix("salt://"), indexed.at)
        if found is not None:
            yield Place(found, indexed.facts.source.span(one.start, one.end))
