"""Pass: short declarations are written out: ``pkg.installed: [...]`` is ``pkg: [..., installed]`` (seed 003)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from statecore.compile.draft import Draft, Extension
from statecore.errors import SlsFault
from statecore.types import High


def expand(draft: Draft) -> Draft:
    """Bodies and extends whose keys are state modules. A key with a dot moves behind those without, as Salt orders them."""
    faults: list[SlsFault] = []
    high: High = {}
    for name, body in draft.high.items():
        if isinstance(body, str) and "." in body:
            body = {body: []}
        if not isinstance(body, dict) or "__malformed__" in body:
            faults.append(_malformed(draft, name, body))
            continue
        high[name] = _expanded(draft, name, body, faults)
    extends = tuple(Extension(each.id, _expanded(draft, each.id, each.body, None)) for each in draft.extends)
    return replace(draft, high=high, extends=extends, faults=(*draft.faults, *faults))


def _expanded(draft: Draft, name: str, body: Mapping[str, Any], faults: list[SlsFault] | None) -> dict[str, Any]:
    """``faults`` is None for an extend, where the same module may come twice."""
    seen = {key for key, run in body.items() if "." not in key and isinstance(run, list)}
    plain: dict[str, Any] = {}
    dotted: dict[str, Any] = {}
    for key, run in body.items():
        if key.startswith("_") or "." not in key or not isinstance(run, list):
            plain[key] = run
            continue
        state, _, fun = key.partition(".")
        if state in seen and faults is not None:
            text = f"ID '{name}' in SLS '{body.get('__sls__')}' contains multiple state declarations of the same type"
            hint = f"give one of the '{state}' states an ID of its own"
            faults.append(draft.fault(text, body, str(name), key, hint=hint))
            continue
        seen.add(state)
        dotted[state] = [*run, fun]
    return plain | dotted


def _malformed(draft: Draft, name: str, body: Any) -> SlsFault:
    origin = body if isinstance(body, dict) else {}
    return draft.fault(
        f"ID {name} in SLS {origin.get('__sls__')} is not a dictionary",
        origin,
        str(name),
        hint="an ID holds states (pkg.installed: ...), or is one short declaration (pkg.installed)",
    )
