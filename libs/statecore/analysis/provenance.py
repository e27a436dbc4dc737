"""Trace each argument and requisite of one ID to the SLS that wrote it, by comparing the ID before and after each
compiler pass.

A normal run records none of this. Extends are applied one at a time, so that each can be compared with the values
before it. The effects of ``require_in`` and its kind, and of ``use``, are found by comparing the ID before and after
the pass. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from statecore.analysis.requisites import written
from statecore.compile import HALTS, PASSES, Pass, declarations, exclude, extend, requisites
from statecore.compile.draft import REQUISITES, REQUISITES_IN, Draft, Extension, arguments, states
from statecore.compile.extend import extended
from statecore.model.types import High


class Origin(NamedTuple):
    """The place where a value was written: SLS, saltenv, path of keys, and the kind of declaration (such as ``extend``)."""

    #: ``declared``, ``extend``, ``require_in`` and the other ``*_in``, ``use``, ``use_in``, ``names``.
    how: str
    sls: str
    saltenv: str
    #: Path of keys in the SLS: ID, state module, argument.
    keys: tuple[str, ...]


class Override(NamedTuple):
    """A value of a state's argument that a later declaration replaced, and the SLS that wrote it."""

    value: object
    origin: Origin


@dataclass(slots=True)
class Argument:
    """One argument of a state of the explained ID: its value, the SLS that wrote it, and the values that it replaced."""

    state: str
    name: str
    value: object
    origin: Origin
    #: The replaced values, oldest first.
    before: list[Override] = field(default_factory=list)


class RequisiteOrigin(NamedTuple):
    """One reference of a requisite of the explained ID, and the SLS that wrote it."""

    state: str
    kind: str
    reference: object
    origin: Origin


@dataclass(slots=True)
class History:
    """All that the compiler passes did to one ID: its arguments, requisites, extends and its exclude."""

    id: str
    #: SLS and environment that declare the ID.
    sls: str
    saltenv: str
    arguments: dict[tuple[str, str], Argument] = field(default_factory=dict)
    wanted: list[RequisiteOrigin] = field(default_factory=list)
    #: SLS and environment of each extend of the ID.
    extended_by: list[Origin] = field(default_factory=list)
    #: The exclude entry that removed the ID or its SLS, and its origin; None if the ID is in the run.
    excluded_by: object = None
    excluded_at: Origin | None = None


class Followed(NamedTuple):
    """A compiled state run, and what each compiler pass changed in one ID (``history``); None if the run does not declare
    the ID.
    """

    draft: Draft
    history: History | None


def followed(draft: Draft, wanted: str) -> Followed:
    """Compile a state run, given as a draft with options, tree and SLS references. Return the compiled draft, and the
    history of the ID ``wanted``: what each compiler pass did to it.

    Errors are in ``faults`` of the returned draft.
    """
    history: History | None = None
    for step in PASSES:
        before = draft
        draft = step(before)
        if step is declarations.expand and wanted in draft.high:
            history = _declared(wanted, draft.high[wanted])
        if history is not None:
            _FOLLOW.get(step, _nothing)(history, before, draft)
        if draft.faults and step in HALTS:
            break
    return Followed(draft, history)


def _declared(wanted: str, body: Mapping[str, object]) -> History:
    history = History(wanted, str(body.get("__sls__", "")), str(body.get("__env__", "base")))
    for state, run in states(body):
        for name, value in arguments(run):
            origin = Origin("declared", history.sls, history.saltenv, (wanted, state, str(name)))
            _take(history, state, str(name), value, origin)
    return history


def _take(history: History, state: str, name: str, value: object, origin: Origin) -> None:

    if name in REQUISITES:
        listed = value if isinstance(value, list) else [value]
        history.wanted += [RequisiteOrigin(state, name, reference, origin) for reference in listed]
        return
    known = history.arguments.get((state, name))
    before = [*known.before, Override(known.value, known.origin)] if known is not None else []
    history.arguments[state, name] = Argument(state, name, value, origin, before)


def _nothing(history: History, before: Draft, after: Draft) -> None:
    return


def _extended(history: History, before: Draft, after: Draft) -> None:
    draft = before
    for one in before.extends:
        laid = extended(draft, [one], strict=False)
        if laid.high.get(history.id) != draft.high.get(history.id):
            _laid(history, one)
        draft = replace(laid, faults=())


def _laid(history: History, one: Extension) -> None:
    sls, saltenv = str(one.body.get("__sls__", "")), str(one.body.get("__env__", "base"))
    history.extended_by.append(Origin("extend", sls, saltenv, (one.id,)))
    for state, run in states(one.body):
        for name, value in arguments(run):
            _take(history, state, str(name), value, Origin("extend", sls, saltenv, (one.id, state, str(name))))


def _inverted(history: History, before: Draft, after: Draft) -> None:
    """Add to ``history`` the references that other states gave the ID with ``require_in`` or a similar requisite.

    Their origin is the state that declares them. ``before`` and ``after`` are the drafts around the compiler pass.
    """
    for state, run in states(after.high.get(history.id, {})):
        old = dict(arguments(before.high[history.id].get(state)))
        for kind, value in arguments(run):
            if kind not in REQUISITES or not isinstance(value, list):
                continue
            known = old.get(kind)
            for reference in value[len(known) if isinstance(known, list) else 0 :]:
                history.wanted.append(
                    RequisiteOrigin(state, str(kind), reference, _declarer(before.high, str(kind), reference))
                )


def _declarer(high: High, kind: str, reference: object) -> Origin:
    state, name = next(written(reference))
    body = high.get(name, {})
    how = next((each for each, meant in REQUISITES_IN.items() if meant == kind), f"{kind}_in")
    return Origin(how, str(body.get("__sls__", "")), str(body.get("__env__", "base")), (str(name), str(state), how))


def _borrowed(history: History, before: Draft, after: Draft) -> None:
    for state, run in states(after.high.get(history.id, {})):
        old = {name for name, _ in arguments(before.high[history.id].get(state))}
        for name, value in arguments(run):
            if name not in old:
                origin = _lender(before.high, history, state, str(name), value)
                _take(history, state, str(name), value, origin)


def _lender(high: High, history: History, state: str, name: str, value: object) -> Origin:
    for how, lender_state, lender in _lenders(high, history, state):
        body = high.get(lender, {})
        if (name, value) in list(arguments(body.get(lender_state))):
            return Origin(
                how, str(body.get("__sls__", "")), str(body.get("__env__", "base")), (lender, lender_state, name)
            )
    return Origin("use", history.sls, history.saltenv, (history.id, state, "use"))


def _lenders(high: High, history: History, state: str) -> Iterator[tuple[str, str, str]]:
    for key, value in arguments(high[history.id].get(state)):
        if key == "use":
            yield from (("use", other_state, _id_of(high, other_state, other)) for other_state, other in _pairs(value))
    for other, body in high.items():
        for other_state, run in states(body):
            for key, value in arguments(run):
                if key == "use_in" and any(_id_of(high, *pair) == history.id for pair in _pairs(value)):
                    yield "use_in", other_state, other


def _pairs(value: object) -> Iterator[tuple[str, str]]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, Mapping):
            yield from ((str(key).partition(".")[0], str(name)) for key, name in item.items())


def _id_of(high: High, state: str, name: str) -> str:
    """Return the ID that a reference means: the name itself, or the ID of a state with this ``name`` argument."""
    if name in high:
        return name
    return next((each for each, body in high.items() if ("name", name) in list(arguments(body.get(state)))), name)


def _excluded(history: History, before: Draft, after: Draft) -> None:
    if history.id in before.high and history.id not in after.high:
        for part in before.parts:
            for entry in part.rendered.exclude if isinstance(part.rendered.exclude, list) else ():
                one = replace(before, excludes=(entry,))
                if history.id not in exclude.exclude(one).high:
                    value = next(iter(entry.values())) if isinstance(entry, Mapping) else entry
                    history.excluded_by = entry
                    key = next(iter(entry)) if isinstance(entry, Mapping) else str(value)
                    keys = ("exclude", str(key))
                    history.excluded_at = Origin("exclude", part.rendered.sls, part.rendered.saltenv, keys)
                    return


#: Pass -> the function that records in the history what the pass did to the ID.
_FOLLOW: Mapping[Pass, Callable[[History, Draft, Draft], None]] = {
    extend.extend: _extended,
    requisites.invert_requisite_in: _inverted,
    requisites.apply_use: _borrowed,
    exclude.exclude: _excluded,
}


def include_chain(draft: Draft, sls: str) -> Sequence[tuple[str, str, str, str]]:
    """Return the includes that brought an SLS into the run, nearest first.

    Each row is (including SLS, its environment, the entry of its include list, included SLS).
    """
    parts = {part.rendered.sls: part for part in draft.parts}
    chain, child = [], sls
    for includer in parts[sls].included_from if sls in parts else ():
        rendered = parts[includer].rendered
        entry = next((each for each in rendered.include or () if _means(each, child)), child)
        text = next(iter(entry)) if isinstance(entry, Mapping) else str(entry)
        chain.append((includer, rendered.saltenv, str(text), child))
        child = includer
    return chain


def _means(entry: object, sls: str) -> bool:
    wanted = str(next(iter(entry.values())) if isinstance(entry, Mapping) else entry)
    relative = wanted.lstrip(".")
    if wanted != relative:
        return sls == relative or sls.endswith(f".{relative}") or not relative
    head, star, _ = wanted.partition("*")
    return sls.startswith(head) if star else sls == wanted
