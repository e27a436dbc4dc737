"""Compiler pass: expand short declarations: ``pkg.installed: [...]`` becomes ``pkg: [..., installed]``.

Source: docs/state-system.md#short-declarations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from statecore.compile.draft import Draft, Extension, states
from statecore.model.errors import SlsFault
from statecore.model.types import High


def expand(draft: Draft) -> Draft:
    """Compiler pass: expand ``pkg.installed: [...]`` to ``pkg: [..., installed]`` in high data and extends. Return the
    new draft.

    State modules that come from a short declaration are placed after those of long declarations, as in Salt. Faults:
    an ID that is not a map of states, and a state of an extend that is not a list. (Extends are applied before the
    pass ``shape.check`` would see them.)
    """
    faults: list[SlsFault] = []
    high: High = {}
    for name, body in draft.high.items():
        if isinstance(body, str) and "." in body:
            body = {body: []}
        if not isinstance(body, dict) or "__malformed__" in body:
            faults.append(_malformed(draft, name, body))
            continue
        high[name] = _expanded(draft, (name,), body, faults)
    extends = tuple(
        Extension(each.id, _expanded(draft, ("extend", each.id), each.body, faults)) for each in draft.extends
    )
    return replace(draft, high=high, extends=extends, faults=(*draft.faults, *faults))


def _expanded(
    draft: Draft, keys: tuple[str, ...], body: Mapping[str, object], faults: list[SlsFault]
) -> dict[str, object]:
    """Return the states of one ID (a map of state module to argument list) with short declarations expanded.

    ``keys`` is (ID,), or ("extend", ID). In an extend the same state module may occur twice. Malformed states are left
    out or kept as they are, and added to ``faults``.
    """
    name, extending = keys[-1], len(keys) > 1
    plain: dict[str, object] = {}
    dotted: dict[str, object] = {}
    for key, run in body.items():
        if not isinstance(key, str):
            text = f"State '{key}' of ID '{name}' in SLS '{body.get('__sls__')}' is not formed as a string, but is type"
            faults.append(draft.fault(f"{text} {type(key).__name__}.", body, *keys, key))
            continue
        if extending and not key.startswith("_") and not isinstance(run, list):
            text = f"State '{name}' in SLS '{body.get('__sls__')}' is not formed as a list"
            faults.append(draft.fault(text, body, *keys, key))
            continue
        if key.startswith("_") or "." not in key or not isinstance(run, list):
            plain[key] = run
            continue
        state, _, fun = key.partition(".")
        if not extending and (state in dotted or isinstance(body.get(state), list)):
            text = f"ID '{name}' in SLS '{body.get('__sls__')}' contains multiple state declarations of the same type"
            hint = f"give one of the '{state}' states an ID of its own"
            faults.append(draft.fault(text, body, name, key, hint=hint))
            continue
        dotted[state] = [*run, fun]
    whole = plain | dotted
    if extending and not any(states(whole)) and len(whole) == len(body):
        faults.append(draft.fault(f"Extension '{name}' in SLS '{body.get('__sls__')}' has no state", body, *keys))
    return whole


def _malformed(draft: Draft, name: str, body: object) -> SlsFault:
    origin = body if isinstance(body, dict) else {}
    return draft.fault(
        f"ID {name} in SLS {origin.get('__sls__')} is not a dictionary",
        origin,
        str(name),
        hint="an ID holds states (pkg.installed: ...), or is one short declaration (pkg.installed)",
    )
