"""Three passes: number the states without ``order``, make low chunks of high data, expand ``names``.

Source: docs/state-system.md#order, docs/state-system.md#low-chunks, docs/state-system.md#names.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace

from statecore.compile.draft import Draft, arguments, disabled, states
from statecore.model.types import High, Low

#: Keys of an ID that are copied to its low chunks.
_ORIGIN = ("__sls__", "__env__", "__sls_included_from__")


def make_chunks(draft: Draft) -> Draft:
    """Compiler pass: make one low chunk of each state in the high data, in order of declaration. Return the new draft.

    The argument ``names`` is not yet expanded. Requisites that ``disabled_requisites`` disables are removed.
    """
    found = []
    for name, body in draft.high.items():
        if name.startswith("__"):
            continue
        origin = {key: body[key] for key in _ORIGIN if key in body}
        for state, run in states(body):
            if not isinstance(run, list):
                continue
            functions = [item for item in run if isinstance(item, str)]
            # A requisite_in can name a state module that the ID does not have. Such a module has no function and is not
            # run.
            if functions:
                found.append(_chunk(name, state, run, origin, functions[0]))
    for key in disabled(draft.opts):
        for low in found:
            low.pop(key, None)
    return replace(draft, chunks=tuple(found))


def _chunk(name: str, state: str, run: list[object], origin: Mapping[str, object], function: str) -> Low:
    low: Low = {"state": state, "name": name, **origin, "__id__": name}
    for key, value in arguments(run):
        if key == "names":
            low.setdefault("names", []).extend(value)
        elif key == "name" and not isinstance(value, str):
            # As in Salt, a name that is not a string is replaced by the ID.
            low["name"] = name
        elif key != "state":
            low[key] = value
    low["fun"] = function
    return low


def expand_names(draft: Draft) -> Draft:
    """Compiler pass: replace each low chunk with ``names`` by one chunk for each name. Return the new draft.

    ``name_order`` numbers these chunks, so that sorting keeps their order.
    """
    return replace(draft, chunks=tuple(each for low in draft.chunks for each in _each(low)))


def _each(low: Low) -> Iterator[Low]:
    names = low.pop("names", None)
    if not names:
        yield low
        return
    unique: list[object] = []
    for name in names:
        if name not in unique:
            unique.append(name)
    for position, entry in enumerate(unique, 1):
        chunk = copy.deepcopy(low)
        name, overrides = next(iter(entry.items())) if isinstance(entry, Mapping) else (entry, ())
        chunk["name"] = name if isinstance(name, str) else str(name)
        for override in [overrides] if isinstance(overrides, Mapping) else overrides:
            chunk.update(override)
        chunk["name_order"] = position
        yield chunk


#: Automatic ``order`` of the first state, as in Salt.
FIRST = 10000


def number_states(draft: Draft) -> Draft:
    """Compiler pass: give each state without ``order`` the next number from 10000 on. Return the new draft.

    Nothing changes if the option ``state_auto_order`` is False.
    """
    if not draft.opts.get("state_auto_order", True):
        return draft
    following = FIRST
    high: High = dict(draft.high)
    # The parts are in order of evaluation, the IDs of ``high`` are not.
    for name in (name for part in draft.parts for name in part.rendered.high if name in high):
        numbered: dict[str, object] = {}
        for state, run in draft.high[name].items():
            if (
                not state.startswith("_")
                and isinstance(run, list)
                and "order" not in [argument for argument, _ in arguments(run)]
            ):
                run = [*run, {"order": following}]
                following += 1
            numbered[state] = run
        high[name] = numbered
    return replace(draft, high=high)
