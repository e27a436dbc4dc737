"""Resolve the references of ``require_in`` (and the other requisite_in) and of ``use`` over high data.

Source: docs/state-system.md#requisite-in, docs/state-system.md#use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from statecore.compile.draft import Draft, arguments, states
from statecore.model.errors import SlsFault
from statecore.model.types import High


def targets(references: object, high: High) -> Iterator[tuple[str, str]]:
    """Yield (state module, ID or name) for every reference in the value of a ``require_in``, ``use`` or similar.

    A reference ``sls: SLS`` yields all states of that SLS. A bare ID or name yields its first state. A bare text that
    is neither an ID nor a name yields nothing, as in Salt.
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


def ids_with_state(high: High, name: str, state: str) -> list[str]:
    """List of the IDs in the high data that have a state of the module ``state`` and are called ``name``.

    That is the ID ``name`` itself, or else every ID with the argument ``name: name``.
    """
    if name in high and state in high[name]:
        return [name]
    return [
        each
        for each, body in high.items()
        if isinstance(body, Mapping)
        and any(key == "name" and value == name for key, value in arguments(body.get(state)))
    ]


def dotted_reference_fault(draft: Draft, kind: str, target: tuple[str, str], name: str) -> SlsFault:
    """Return the SlsFault for a requisite of the ID ``name`` that refers to ``pkg.installed: ID`` instead of ``pkg:
    ID``.
    """
    state, other = target
    body = draft.high[name]
    text = (
        f"Invalid requisite in {kind}: {state} for {other}, in SLS '{body.get('__sls__')}'."
        f" Requisites must not contain dots, did you mean '{state.partition('.')[0]}'?"
    )
    return draft.fault(text, body, name)


def _states_of(sls: str, high: High) -> Iterator[tuple[str, str]]:
    for name, body in high.items():
        if body.get("__sls__") == sls:
            # A state that is not a list is reported by the pass ``shape.check``.
            yield from ((state, name) for state, run in states(body) if isinstance(run, list))


def _by_id_or_name(reference: object, high: High) -> tuple[str, str] | None:
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
