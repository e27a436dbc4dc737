"""Pass: ``require_in`` and its kin are turned round: the state they name gets the requisite (seed 003)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from statecore.compile.draft import REQUISITES_IN, Draft, Extension, disabled, states
from statecore.compile.extend import extended
from statecore.errors import SlsFault


def turn(draft: Draft) -> Draft:
    """High data in which every ``X_in`` has become an ``X`` of its target. Faults: dots in references, unknown targets."""
    off = disabled(draft.opts)
    extensions: list[Extension] = []
    faults: list[SlsFault] = []
    for name, body in draft.high.items():
        for state, run in states(body):
            for key, references in _declared(run):
                if key in off:
                    continue
                for target_state, target in _targets(references, draft):
                    if "." in target_state:
                        faults.append(_dotted(draft, key, target_state, target, name, body))
                        target_state = target_state.partition(".")[0]
                    own = {target_state: [{REQUISITES_IN[key]: [{state: name}]}], **_origin(body), "__from__": name}
                    extensions.append(Extension(target, own))
    return extended(draft.with_faults(faults), extensions, strict=True)


def _declared(run: Any) -> Iterator[tuple[str, Any]]:
    for item in run if isinstance(run, list) else ():
        if isinstance(item, Mapping) and item:
            key = next(iter(item))
            if key in REQUISITES_IN:
                yield key, item[key]


def _targets(references: Any, draft: Draft) -> Iterator[tuple[str, str]]:
    """(state module, ID or name) of every reference; an SLS is all its states. A bare ID is its first state."""
    listed = [{key: value} for key, value in references.items()] if isinstance(references, Mapping) else references
    for reference in listed if isinstance(listed, list) else [listed]:
        if isinstance(reference, Mapping):
            for key, value in reference.items():
                if key == "sls":
                    yield from _states_of(str(value), draft)
                else:
                    yield str(key), str(value)
        else:
            found = _by_id_or_name(str(reference), draft)
            if found is not None:
                yield found


def _states_of(sls: str, draft: Draft) -> Iterator[tuple[str, str]]:
    for name, body in draft.high.items():
        if body.get("__sls__") == sls:
            for state, _ in states(body):
                yield state, name


def _by_id_or_name(reference: str, draft: Draft) -> tuple[str, str] | None:
    body = draft.high.get(reference)
    if body is not None:
        return next(((state, reference) for state, _ in states(body)), None)
    for name, other in draft.high.items():
        for state, run in states(other):
            for item in run if isinstance(run, list) else ():
                if isinstance(item, Mapping) and item.get("name") == reference:
                    return state, name
    return None


def _origin(body: Mapping[str, Any]) -> dict[str, Any]:
    return {key: body[key] for key in ("__sls__", "__env__") if key in body}


def _dotted(draft: Draft, key: str, state: str, target: str, name: str, body: Mapping[str, Any]) -> SlsFault:
    text = (
        f"Invalid requisite in {REQUISITES_IN[key]}: {state} for {target}, in SLS '{body.get('__sls__')}'."
        f" Requisites must not contain dots, did you mean '{state.partition('.')[0]}'?"
    )
    return draft.fault(text, body, name)
