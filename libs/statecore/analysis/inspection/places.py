"""Where things are written: places of chunks and their arguments, and findings made of what was told of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from statecore.analysis import templates
from statecore.analysis.finding import Finding, Remark
from statecore.analysis.inspection.compilation import Told
from statecore.compile.draft import Draft
from statecore.model.errors import Mark
from statecore.render import SlsTree

#: Rules that an SLS by itself may break without harm, when something else of its run brings what it lacks.
ACROSS = frozenset({"extend", "requisite-to-nothing"})

#: Lines below a requisite in which the names that it lists are looked for.
_NEAR = 30

#: What a fault of these names: ``[require: (pkg: nginx)]``, ``ID 'nginx'``.
LACKING = re.compile(r"\[\w+: \((\w+): (.+?)\)\]|ID '(.+?)'")


def told(what: Told) -> Finding:
    """A fault of the compiler."""
    fault = what.fault
    mark = fault.mark
    if mark is not None and mark.line and not mark.column:
        mark = mark._replace(column=1)
    return Finding(what.rule, fault.message, mark, fault.sls, fault.id, fault.excerpt, fault.hint)


def remarked(remark: Remark, draft: Draft) -> Finding:
    """What an analysis says of a chunk of a draft."""
    mark = place_of(draft, remark.origin, remark.keys)
    excerpt = draft.tree.excerpt(mark) if draft.tree is not None else ""
    sls = str(remark.origin.get("__sls__", ""))
    return Finding(remark.rule, remark.message, mark, sls, remark.keys[0], excerpt, remark.hint)


def source_line(tree: SlsTree, low: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """The line of the file at a path of keys of a chunk, "" when it is not found."""
    sls, saltenv = str(low.get("__sls__", "")), str(low.get("__env__", "base"))
    mark = tree.locate(sls, saltenv, *keys)
    if mark is None or not mark.line:
        return ""
    lines = tree.source(sls, saltenv).text.splitlines()
    return lines[mark.line - 1] if mark.line <= len(lines) else ""


def keys_of(low: Mapping[str, Any], *more: str) -> tuple[str, ...]:
    """Path of keys of a chunk's state, or of something in it."""
    return (str(low["__id__"]), str(low["state"]), *more)


def mark_of(draft: Draft, low: Mapping[str, Any], kind: str) -> Mark | None:
    """The line of an argument of a chunk."""
    mark = place_of(draft, low, keys_of(low, kind))
    return mark._replace(column=0) if mark is not None else None


def place_of(draft: Draft, origin: Mapping[str, Any], keys: tuple[str, ...]) -> Mark | None:
    """Where a path of keys is written: in the SLS of the ID, else in one that extends the ID, else the ID itself."""
    tree = draft.tree
    if tree is None:
        return None
    own = str(origin.get("__sls__", "")), str(origin.get("__env__", "base"))
    mark = tree.locate(*own, *keys)
    if len(keys) > 2 and mark == tree.locate(*own, *keys[:-1]):
        for part in draft.parts:
            where = part.rendered.sls, part.rendered.saltenv
            if keys[0] in (part.rendered.extend or ()) and where != own:
                other = tree.locate(*where, *keys)
                if other != tree.locate(*where, *keys[:-1]):
                    return other
    return mark


def pinpointed(what: Told, draft: Draft) -> Told:
    """A reference to nothing at the line of the name itself, which stands below the requisite."""
    lacking = LACKING.search(what.fault.message)
    mark, tree = what.fault.mark, draft.tree
    if what.rule not in ACROSS or not lacking or not lacking[2] or mark is None or not mark.line or tree is None:
        return what
    own = next((part.rendered for part in draft.parts if part.rendered.sls == what.fault.sls), None)
    if own is None:
        return what
    lines = tree.source(own.sls, own.saltenv).text.splitlines()
    for number, line in enumerate(lines[mark.line - 1 : mark.line + _NEAR], mark.line):
        found = re.search(rf"(?<![\w.-]){re.escape(lacking[2])}(?![\w-])", line)
        if found:
            place = mark._replace(line=number, column=found.start() + 1)
            return Told(what.rule, what.fault._replace(mark=place, excerpt=tree.excerpt(place)))
    return what


def spotted(spot: templates.Spot, file: str, text: str, sls: str) -> Finding:
    """Something about a word of a template."""
    lines = text.splitlines()
    line = lines[spot.line - 1] if 0 < spot.line <= len(lines) else ""
    found = re.search(rf"(?<![\w.]){re.escape(spot.word)}(?!\w)", line) if spot.word else None
    column = (found.start() if found else max(line.find(spot.word), 0)) + 1
    shown = f"{line}    <======================" if line else ""
    return Finding(spot.rule, spot.message, Mark(file, spot.line, column), sls, "", shown, spot.hint)
