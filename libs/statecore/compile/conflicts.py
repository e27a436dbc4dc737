"""Compiler pass: join the rendered SLS files into one map of IDs, each with its SLS and saltenv.

An ID that two SLS files declare is a fault.

Source: docs/state-system.md#high-data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter

from statecore.compile.draft import Draft, Extension, Part
from statecore.compile.exclude import well_formed
from statecore.model.errors import SlsFault
from statecore.model.types import High


def join(draft: Draft) -> Draft:
    """Compiler pass: join the high data, extends and excludes of all rendered SLS files. Return the new draft.

    Each ID gets ``__sls__``, ``__env__`` and ``__sls_included_from__``. The extends are in the order in which the SLS
    files were opened: an SLS before those it includes. So the extends of an included SLS are applied after those of its
    includer.
    """
    high: High = {}
    extends: list[Extension] = []
    excludes: list[object] = []
    faults: list[SlsFault] = []
    for part in sorted(draft.parts, key=attrgetter("begun")):
        origin = {"__sls__": part.rendered.sls, "__env__": part.rendered.saltenv}
        for name, body in part.rendered.high.items():
            known = high.get(name)
            if known is not None:
                faults.append(_conflict(draft, name, known, origin))
            high[name] = _with_origin(body, origin, part)
        extends += _extensions(draft, part, origin, faults)
        excludes += _excluded(draft, part, origin, faults)
    return replace(draft, high=high, extends=tuple(extends), excludes=tuple(excludes), faults=(*draft.faults, *faults))


def _with_origin(body: object, origin: Mapping[str, str], part: Part) -> object:
    if isinstance(body, str) and "." in body:
        body = {body: []}
    if not isinstance(body, dict):
        body = {"__malformed__": body}
    body_with_origin = {**body, **origin}
    if not body.keys().isdisjoint(origin):
        body_with_origin |= {key: body[key] for key in origin if isinstance(body.get(key), str)}
    if part.included_from:
        body_with_origin["__sls_included_from__"] = list(part.included_from)
    return body_with_origin


def _extensions(draft: Draft, part: Part, origin: Mapping[str, str], faults: list[SlsFault]) -> list[Extension]:
    sls, extend = part.rendered.sls, part.rendered.extend
    if not isinstance(extend, dict):
        faults.append(draft.fault(f"Extension value in SLS '{sls}' is not a dictionary", origin, "extend"))
        return []
    found = []
    for name, body in extend.items():
        if isinstance(body, dict):
            found.append(Extension(str(name), {**body, **origin}))
        else:
            text = f"Extension name '{name}' in SLS '{sls}' is not a dictionary"
            faults.append(draft.fault(text, origin, "extend", str(name)))
    return found


def _excluded(draft: Draft, part: Part, origin: Mapping[str, str], faults: list[SlsFault]) -> list[object]:
    if not isinstance(part.rendered.exclude, list | tuple):
        text = f"Exclude Declaration in SLS {part.rendered.sls} is not formed as a list"
        faults.append(draft.fault(text, origin, "exclude"))
        return []
    sound = []
    for entry in part.rendered.exclude:
        if well_formed(entry):
            sound.append(entry)
        else:
            text = f"An exclude of SLS '{part.rendered.sls}' is not an SLS, sls: SLS or id: ID"
            faults.append(draft.fault(text, origin, "exclude", hint=f"it is {entry!r}"))
    return sound


def _conflict(draft: Draft, name: str, known: Mapping[str, object], origin: Mapping[str, str]) -> SlsFault:
    text = (
        "Detected conflicting IDs, SLS IDs need to be globally unique.\n"
        f"    The conflicting ID is '{name}' and is found in SLS '{known['__env__']}:{known['__sls__']}'"
        f" and SLS '{origin['__env__']}:{origin['__sls__']}'"
    )
    first = draft.fault("", known, str(name)).mark
    return draft.fault(text, origin, str(name), hint=f"it is declared first at {first}" if first is not None else "")
