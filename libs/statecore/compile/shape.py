"""Compiler pass: check the form of high data before it is compiled further.

Each state must be a list of one function and its arguments, each requisite a list of references. Every departure is a
fault with the text of Salt's error message.

Source: docs/state-system.md#high-data.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterator, Mapping

from statecore.compile.draft import REQUISITES, REQUISITES_IN, Draft, states
from statecore.model.errors import SlsFault

log = logging.getLogger(__name__)

#: Arguments with references that other passes invert or resolve. Their value may be a map instead of a list.
_BACKWARD = frozenset(REQUISITES_IN) | {"listen_in", "use", "use_in"}

#: Arguments that do nothing if their value is a text, as in Salt.
_LENT = ("use", "use_in")

#: All arguments whose value is references.
_REFERRING = REQUISITES | _BACKWARD

#: Arguments that give a chunk's ID, SLS and saltenv.
_ORIGIN = ("__id__", "__sls__", "__env__")

#: Arguments whose value must have a certain form.
_FORMED = _REFERRING | {"names", *_ORIGIN}


def check(draft: Draft) -> Draft:
    """Compiler pass: add a fault for every state that is not a list of one function and its arguments. Return the new
    draft.
    """
    doubtful = [(name, body) for name, body in draft.high.items() if not _sound(name, body)]
    return draft.with_faults([fault for name, body in doubtful for fault in _of_id(draft, name, body)])


def _sound(name: object, body: Mapping[str, object]) -> bool:
    """Return True if an ID's states are certainly well formed. This quick check spares nearly all IDs the detailed one."""
    if not isinstance(name, str):
        return False
    for _, run in states(body):
        if not isinstance(run, list):
            return False
        functions = 0
        for item in run:
            if isinstance(item, str):
                functions += 1
                if " " in item:
                    return False
            elif isinstance(item, dict) and not (_plain(item) or _refers_plainly(item)):
                return False
        if functions != 1:
            return False
    return True


def _of_id(draft: Draft, name: object, body: Mapping[str, object]) -> Iterator[SlsFault]:
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
            yield from _of_functions(draft, str(name), body, state, run)
            for item in run:
                if isinstance(item, Mapping) and not _plain(item):
                    yield from _of_argument(draft, str(name), body, state, item)


def _of_functions(
    draft: Draft, name: str, body: Mapping[str, object], state: str, run: list[object]
) -> Iterator[SlsFault]:
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
        # Salt lists the function of a short declaration first; here it was appended last.
        yield draft.fault(
            f"Too many functions declared in state '{name}' in SLS '{sls}'. Please choose one of the following: "
            + ", ".join(functions),
            body,
            name,
            state,
        )


def _plain(item: Mapping[object, object]) -> bool:
    """Return True if one item of a state's argument list is a map with one argument whose value the compiler does not
    check.
    """
    if len(item) != 1:
        return False
    (key,) = item
    return isinstance(key, str) and key not in _FORMED


def _refers_plainly(item: Mapping[object, object]) -> bool:
    """Return True if one item of a state's argument list is a requisite in its simple form: a list of maps, each of one
    state module to one ID. Such an item needs no detailed check.
    """
    if len(item) != 1:
        return False
    ((key, references),) = item.items()
    if key not in _REFERRING or not isinstance(references, list):
        return False
    for reference in references:
        if not isinstance(reference, dict) or len(reference) != 1:
            return False
        ((module, value),) = reference.items()
        if not isinstance(module, str) or "." in module or not isinstance(value, str):
            return False
    return True


def _of_argument(
    draft: Draft, name: str, body: Mapping[str, object], state: str, item: Mapping[object, object]
) -> Iterator[SlsFault]:
    sls = body.get("__sls__")
    key = next(iter(item), None)
    for each, value in item.items():
        if not isinstance(each, str):
            text = f"Argument '{each}' of state '{name}' in SLS '{sls}' is not formed as a string, but is type"
            yield draft.fault(f"{text} {type(each).__name__}.", body, name, state, each)
        elif each in _ORIGIN and not isinstance(value, str):
            text = f"The {each} argument of state '{name}' in SLS '{sls}' must have a string as the value"
            yield draft.fault(text, body, name, state, each)
        elif each in _BACKWARD and each != key:
            yield draft.fault(_several(name, sls), body, name, state, each)
    if key == "names":
        yield from _of_names(draft, name, body, state, item[key])
    if key not in _REFERRING:
        return
    if key in _LENT and isinstance(item[key], str):
        log.warning("%s: %r of state '%s' is a text, so it does nothing: write a list", sls, key, name)
        return
    if not isinstance(item[key], list) and not (key in _BACKWARD and isinstance(item[key], Mapping)):
        text = f"The {key} statement in state '{name}' in SLS '{sls}' needs to be formed as a list"
        yield draft.fault(text, body, name, state, key, hint=f"write '- {key}:' and under it '- module: ID'")
        return
    if len(item) != 1:
        yield draft.fault(_several(name, sls), body, name, state, key)
    references = item[key]
    if isinstance(references, Mapping):
        references = [{module: value} for module, value in references.items()]
    for reference in references if isinstance(references, list) else ():
        yield from _of_reference(draft, name, body, state, key, reference)


def _several(name: str, sls: object) -> str:
    return f"Multiple dictionaries defined in argument of state '{name}' in SLS '{sls}'"


def _of_names(draft: Draft, name: str, body: Mapping[str, object], state: str, names: object) -> Iterator[SlsFault]:
    sls = body.get("__sls__")
    if not isinstance(names, list):
        text = f"The 'names' argument in state '{name}' in SLS '{sls}' needs to be formed as a list"
        yield draft.fault(text, body, name, state, "names")
        return
    for entry in names:
        own, overrides = next(iter(entry.items())) if isinstance(entry, Mapping) and len(entry) == 1 else (entry, [])
        if isinstance(own, bool) or not isinstance(own, str | int | float):
            text = f"Name {entry} of state '{name}' in SLS '{sls}' is not a string, or one with a list of arguments"
            yield draft.fault(text, body, name, state, "names")
            continue
        for override in overrides if isinstance(overrides, list) else [overrides]:
            if isinstance(override, Mapping):
                yield from _of_argument(draft, name, body, state, override)
            else:
                text = f"Name {own} of state '{name}' in SLS '{sls}' overrides with what is not a list of arguments"
                yield draft.fault(text, body, name, state, "names", hint=f"it is {override!r}")


def _of_reference(
    draft: Draft, name: str, body: Mapping[str, object], state: str, key: str, reference: object
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
    if "." in module and key not in _BACKWARD:
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
