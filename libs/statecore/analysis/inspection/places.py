"""Look up the file, line and column of chunks and arguments, and turn faults and remarks into findings."""

from __future__ import annotations

import re
from collections.abc import Mapping

from statecore.analysis import templates
from statecore.analysis.finding import Finding, Remark
from statecore.analysis.inspection.compilation import RuledFault
from statecore.compile.draft import Draft
from statecore.model.errors import Mark
from statecore.render import SlsTree

#: Rules that an SLS compiled alone may break: another SLS of the run may declare the missing ID.
ACROSS = frozenset({"extend", "requisite-to-nothing"})

#: Number of lines below a requisite that are searched for the name in it.
_NEAR = 30

#: Matches the missing ID in a fault's message: ``[require: (pkg: nginx)]`` or ``ID 'nginx'``.
LACKING = re.compile(r"\[\w+: \((\w+): (.+?)\)\]|ID '(.+?)'")


def fault_finding(what: RuledFault) -> Finding:
    """Return an error of the compiler as a Finding, the form in which ``statecore check`` reports problems."""
    fault = what.fault
    mark = fault.mark
    if mark is not None and mark.line and not mark.column:
        mark = mark._replace(column=1)
    return Finding(what.rule, fault.message, mark, fault.sls, fault.id, fault.excerpt, fault.hint)


def remark_finding(remark: Remark, draft: Draft) -> Finding:
    """Return a problem of a low chunk of ``draft`` as a Finding, with its file, line and excerpt looked up."""
    mark = place_of(draft, remark.origin, remark.keys)
    excerpt = draft.tree.excerpt(mark) if draft.tree is not None else ""
    sls = str(remark.origin.get("__sls__", ""))
    return Finding(remark.rule, remark.message, mark, sls, remark.keys[0], excerpt, remark.hint)


def source_line(tree: SlsTree, low: Mapping[str, object], keys: tuple[str, ...]) -> str:
    """Return the text of the line in the SLS file that has the path ``keys`` (ID, state module, argument) of a low chunk; ""
    if the line is not known.
    """
    sls, saltenv = str(low.get("__sls__", "")), str(low.get("__env__", "base"))
    mark = tree.locate(sls, saltenv, *keys)
    if mark is None or not mark.line:
        return ""
    lines = tree.source(sls, saltenv).text.splitlines()
    return lines[mark.line - 1] if mark.line <= len(lines) else ""


def keys_of(low: Mapping[str, object], *more: str) -> tuple[str, ...]:
    """Return the path of keys (ID, state module) of a low chunk in its SLS file, followed by the keys ``more``."""
    return (str(low["__id__"]), str(low["state"]), *more)


def mark_of(draft: Draft, low: Mapping[str, object], kind: str) -> Mark | None:
    """Return the Mark (file and line, column 0) of the requisites of one kind (``kind``, such as "require") in a low
    chunk's SLS file.

    If the file does not have them, the Mark of the state or of the ID is returned. None without a state tree, or if
    the SLS was not read.
    """
    mark = place_of(draft, low, keys_of(low, kind))
    return mark._replace(column=0) if mark is not None else None


def place_of(draft: Draft, origin: Mapping[str, object], keys: tuple[str, ...]) -> Mark | None:
    """Return the Mark (file, line, column) of the path ``keys`` (ID, state module, argument) of a low chunk in an SLS
    file.

    It is searched in the SLS that declares the ID, else in an SLS that extends it. If neither contains the whole path,
    the Mark of the ID itself is returned. None without a state tree, or if the SLS was not read.
    """
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


def pinpointed(what: RuledFault, draft: Draft) -> RuledFault:
    """Return a fault about a missing ID with a more exact position: the line below the requisite's line that contains
    the ID. Other faults are returned unchanged.
    """
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
            return RuledFault(what.rule, what.fault._replace(mark=place, excerpt=tree.excerpt(place)))
    return what


def spot_finding(spot: templates.Spot, file: str, text: str, sls: str) -> Finding:
    """Return the Finding of ``statecore check`` for a Spot, a problem with one word of a template. ``file`` is the
    template's name for messages, ``text`` its text.
    """
    lines = text.splitlines()
    line = lines[spot.line - 1] if 0 < spot.line <= len(lines) else ""
    found = re.search(rf"(?<![\w.]){re.escape(spot.word)}(?!\w)", line) if spot.word else None
    column = (found.start() if found else max(line.find(spot.word), 0)) + 1
    shown = f"{line}    <======================" if line else ""
    return Finding(spot.rule, spot.message, Mark(file, spot.line, column), sls, "", shown, spot.hint)
