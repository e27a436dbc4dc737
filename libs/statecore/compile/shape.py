"""Pass: high data must have the shape of the seeds before it is refined; each departure is a fault in Salt's words."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from statecore.compile.draft import REQUISITES, Draft, states
from statecore.errors import SlsFault


def check(draft: Draft) -> Draft:
    """The same draft, with a fault for everything that is not a list of one function and arguments."""
    return draft.with_faults([fault for name, body in draft.high.items() for fault in _of_id(draft, name, body)])


def _of_id(draft: Draft, name: Any, body: Mapping[str, Any]) -> Iterator[SlsFault]:
    sls = body.get("__sls__")
    if not isinstance(name, str):
        text = f"ID '{name}' in SLS '{sls}' is not formed as a string, but is type {type(name).__name__}."
        yield draft.fault(f"{text} It may need to be quoted.", body, str(name))
    for state, run in states(body):
        if run is None:
            yield draft.fault(
                f"ID '{name}' in SLS '{sls}' contains a short declaration ({state}) with a trailing colon."
                " When not passing any arguments to a state, the colon must be omitted.",
                body,
                name,
                state,
            )
        elif not isinstance(run, list):
            yield draft.fault(f"State '{name}' in SLS '{sls}' is not formed as a list", body, name, state)
        else:
            yield from _of_functions(draft, name, body, state, run)
            for item in run:
                if isinstance(item, Mapping):
                    yield from _of_argument(draft, name, body, state, item)


def _of_functions(draft: Draft, name: str, body: Mapping[str, Any], state: str, run: list[Any]) -> Iterator[SlsFault]:
    sls = body.get("__sls__")
    functions = [item for item in run if isinstance(item, str)]
    for function in functions:
        if " " in function.strip():
            yield draft.fault(
                f'The function "{function}" in state "{name}" in SLS "{sls}" has whitespace, a function with'
                ' whitespace is not supported, perhaps this is an argument that is missing a ":"',
                body,
                name,
                state,
                function,
            )
    if not functions:
        yield draft.fault(f"No function declared in state '{name}' in SLS '{sls}'", body, name, state)
    elif len(functions) > 1:
        # The function of a short declaration was put last; Salt names it first.
        yield draft.fault(
            f"Too many functions declared in state '{name}' in SLS '{sls}'. Please choose one of the following: "
            + ", ".join(functions),
            body,
            name,
            state,
        )


def _of_argument(
    draft: Draft, name: str, body: Mapping[str, Any], state: str, item: Mapping[str, Any]
) -> Iterator[SlsFault]:
    sls = body.get("__sls__")
    key = next(iter(item), None)
    if key is None:
        return
    if key == "names" and not isinstance(item[key], list):
        text = f"The 'names' argument in state '{name}' in SLS '{sls}' needs to be formed as a list"
        yield draft.fault(text, body, name, state, key)
    if key not in REQUISITES:
        return
    if not isinstance(item[key], list):
        text = f"The {key} statement in state '{name}' in SLS '{sls}' needs to be formed as a list"
        yield draft.fault(text, body, name, state, key, hint=f"write '- {key}:' and under it '- module: ID'")
        return
    if len(item) != 1:
        text = f"Multiple dictionaries defined in argument of state '{name}' in SLS '{sls}'"
        yield draft.fault(text, body, name, state, key)
    for reference in item[key]:
        yield from _of_reference(draft, name, body, state, key, reference)


def _of_reference(
    draft: Draft, name: str, body: Mapping[str, Any], state: str, key: str, reference: Any
) -> Iterator[SlsFault]:
    sls = body.get("__sls__")
    if isinstance(reference, str):
        return
    if not isinstance(reference, Mapping) or len(reference) != 1:
        text = (
            f"Requisite declaration {reference} in state {name} in SLS {sls} is not formed as a single key dictionary"
        )
        yield draft.fault(text, body, name, state, key)
        return
    module, value = next((str(module), value) for module, value in reference.items())
    if "." in module:
        yield draft.fault(
            f"Invalid requisite type '{module}' in state '{name}', in SLS '{sls}'. Requisite types must not contain"
            f" dots, did you mean '{module.partition('.')[0]}'?",
            body,
            name,
            state,
            key,
            module,
        )
    if not isinstance(value, Hashable):
        text = f'Illegal requisite "{value}" in SLS "{sls}", please check your syntax.\n'
        yield draft.fault(text, body, name, state, key, module)
    elif value is not None and not isinstance(value, str):
        text = f"Requisite [{key}: {module}] in state [{name}] in SLS [{sls}] must have a string as the value"
        yield draft.fault(text, body, name, state, key, module, hint=f"write '{value}' in quotes")
