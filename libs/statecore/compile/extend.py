"""Compiler pass: apply ``extend`` declarations to the IDs they name.

Requisites are appended to the ID's requisites, other arguments replace the ID's arguments.

Source: docs/state-system.md#extend.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from statecore.compile.draft import REQUISITES, Draft, Extension, states
from statecore.compile.targets import ids_with_state
from statecore.model.errors import SlsFault
from statecore.model.nearest import close_matches
from statecore.model.types import High


def extend(draft: Draft) -> Draft:
    """Compiler pass: apply the ``extend`` declarations to the high data. Return the new draft.

    Extends of an excluded SLS are ignored. An extend of an ID that is not in the high data is a fault.
    """
    return replace(extended(draft, draft.extends, strict=False), extends=())


def extended(draft: Draft, extensions: Iterable[Extension], *, strict: bool) -> Draft:
    """Return the draft with ``extensions`` (arguments to add to the states of an ID) applied to its high data.

    With ``strict`` (for requisite_in) the ID must have the state module that the extension names; without it, an ID
    that lacks the state module gets it. An unknown ID is a fault.
    """
    high: High = dict(draft.high)
    # Lists that were copied here are appended to in place: a thousand require_in of one state then cost a thousand
    # steps instead of a million.
    own: dict[int, list[object]] = {}
    faults: list[SlsFault] = []
    muted = excluded_slses(draft.excludes)
    for name, body in extensions:
        first = next((state for state, _ in states(body)), None)
        if first is None:
            continue
        target = _named(high, name, first, strict=strict)
        if target is None:
            faults.append(_unknown(draft, name, body, high))
            continue
        if body.get("__sls__") in muted:
            continue
        laid = dict(high[target])
        for state, run in states(body):
            laid[state] = _laid(laid[state], run, own) if state in laid and isinstance(run, list) else run
        high[target] = laid
    return replace(draft, high=high, faults=(*draft.faults, *faults))


def _named(high: High, name: str, state: str, *, strict: bool) -> str | None:
    """Return the ID in the high data that the ``name`` in an ``extend`` or requisite_in means: the ID of this name, or
    else the only ID with a state of the module ``state`` that is called so.

    With ``strict`` the ID of this name must have such a state too. None if no ID or several IDs match.
    """
    if name in high and not strict:
        return name
    found = ids_with_state(high, name, state)
    return found[0] if len(found) == 1 else None


def excluded_slses(excludes: Iterable[object]) -> frozenset[str]:
    """Set of the SLS references and globs in the entries of ``exclude`` declarations."""
    found = (entry.get("sls") if isinstance(entry, Mapping) else entry for entry in excludes)
    return frozenset(entry for entry in found if isinstance(entry, str) and entry)


def _laid(run: object, over: list[object], own: dict[int, list[object]]) -> list[object]:
    """Return a state's argument list with an extend's arguments merged into it: requisites are appended, other
    arguments replaced.
    """
    if not isinstance(run, list):
        return over
    laid = _owned(run, own)
    for item in over:
        places = [at for at, each in enumerate(laid) if _same(each, item)]
        for at in places:
            laid[at] = _merged(laid[at], item, own)
        if not places:
            laid.append(item)
    return laid


def _owned(values: list[object], own: dict[int, list[object]]) -> list[object]:

    if id(values) not in own:
        values = list(values)
        own[id(values)] = values
    return values


def _same(each: object, item: object) -> bool:
    if isinstance(each, str) and isinstance(item, str):
        return True
    if isinstance(each, dict) and isinstance(item, dict) and each and item:
        key, other = next(iter(each)), next(iter(item))
        # An extend's ``name`` replaces ``names``.
        return bool(key == other or (key == "names" and other == "name"))
    return False


def _merged(each: object, item: object, own: dict[int, list[object]]) -> object:
    if isinstance(item, dict) and isinstance(each, dict):
        key = next(iter(item))
        if key in REQUISITES and isinstance(each[key], list) and isinstance(item[key], list):
            references = _owned(each[key], own)
            references.extend(item[key])
            return {key: references}
    return item


def _unknown(draft: Draft, name: str, body: Mapping[str, object], high: Mapping[str, object]) -> SlsFault:
    saltenv, sls = body.get("__env__", "base"), body.get("__sls__", "base")
    text = (
        f"Cannot extend ID '{name}' in '{saltenv}:{sls}'. It is not part of the high state.\n"
        "This is likely due to a missing include statement or an incorrectly typed ID.\n"
        f"Ensure that a state with an ID of '{name}' is available\nin environment '{saltenv}' and to SLS '{sls}'"
    )
    near = close_matches(name, [str(each) for each in high], n=1)
    keys = (str(body["__from__"]),) if "__from__" in body else (name,)
    return draft.fault(text, body, *keys, hint=f"the nearest ID is '{near[0]}'" if near else "")
