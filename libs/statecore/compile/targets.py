"""Whom a ``require_in`` or a ``use`` means: its references, resolved over high data (seed 003)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from statecore.compile.draft import Draft, arguments, states
from statecore.model.errors import SlsFault


def targets(references: Any, high: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(state module, ID or name) of every reference; an SLS is all its states, a bare ID or name its first state.

    What a bare text does not name is passed over, as Salt does.
    """
    listed = [{key: value} for key, value in references.items()] if isinstance(references, Mapping) else references
    for reference in listed if isinstance(listed, list) else [listed]:
        if isinstance(reference, Mapping):
            for key, value in reference.items():
                if key == "sls":
                    yield from _states_of(str(value), high)
                else:
                    yield str(key), str(value)
        else:
            found = _by_id_or_name(reference, high)
            if found is not None:
                yield found


def bearing(high: Mapping[str, Any], name: str, state: str) -> list[str]:
    """IDs that have this state and this ID, or else this name."""
    if name in high and state in high[name]:
        return [name]
    return [
        each
        for each, body in high.items()
        if isinstance(body, Mapping)
        and any(key == "name" and value == name for key, value in arguments(body.get(state)))
    ]


def dotted(draft: Draft, kind: str, target: tuple[str, str], name: str) -> SlsFault:
    """The fault of a reference of ``name`` that names a function where a state module belongs."""
    state, other = target
    body = draft.high[name]
    text = (
        f"Invalid requisite in {kind}: {state} for {other}, in SLS '{body.get('__sls__')}'."
        f" Requisites must not contain dots, did you mean '{state.partition('.')[0]}'?"
    )
    return draft.fault(text, body, name)


def _states_of(sls: str, high: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, body in high.items():
        if body.get("__sls__") == sls:
            # What is no list has a fault of its own.
            yield from ((state, name) for state, run in states(body) if isinstance(run, list))


def _by_id_or_name(reference: Any, high: Mapping[str, Any]) -> tuple[str, str] | None:
    if not isinstance(reference, str):
        return None
    body = high.get(reference)
    if body is not None:
        return next(((state, reference) for state, _ in states(body)), None)
    for name, other in high.items():
        for state, run in states(other):
            if any(key == "name" and value == reference for key, value in arguments(run)):
                return state, name
    return None
