"""Pass: every state of every ID becomes a low chunk, one flat map of what it is called with (seed 001)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from statecore.compile.draft import Draft, arguments, disabled, states
from statecore.model.types import Low

#: Keys of a body that its chunks carry.
_ORIGIN = ("__sls__", "__env__", "__sls_included_from__")


def chunks(draft: Draft) -> Draft:
    """Chunks in order of declaration; ``names`` is still in them, ``disabled_requisites`` are not."""
    found = []
    for name, body in draft.high.items():
        if name.startswith("__"):
            continue
        origin = {key: body[key] for key in _ORIGIN if key in body}
        for state, run in states(body):
            functions = [item for item in run if isinstance(item, str)]
            # What a requisite_in says to a state module that the ID has not is nothing to be run.
            if functions:
                found.append(_chunk(name, state, run, origin, functions[0]))
    for key in disabled(draft.opts):
        for low in found:
            low.pop(key, None)
    return replace(draft, chunks=tuple(found))


def _chunk(name: str, state: str, run: list[Any], origin: Mapping[str, Any], function: str) -> Low:
    low: Low = {"state": state, "name": name, **origin, "__id__": name}
    for key, value in arguments(run):
        if key == "names":
            low.setdefault("names", []).extend(value)
        elif key == "name" and not isinstance(value, str):
            # Salt: a name that is no text is the ID.
            low["name"] = name
        elif key != "state":
            low[key] = value
    low["fun"] = function
    return low
