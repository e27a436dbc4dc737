"""Checks before a state run begins: pillar errors, nothing to apply, unknown IDs, malformed low chunks and templates."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from statecore.compile import Compiled
from statecore.loader import Loader
from statecore.model.context import Context
from statecore.model.errors import InvocationError, NotAvailable
from statecore.model.nearest import close_matches
from statecore.model.types import High, Running
from statecore.runtime.contexts import RunContext

log = logging.getLogger(__name__)

#: Salt's exit codes.
COMPILE_ERROR, STATE_FAILED, PILLAR_ERROR = 1, 2, 5

#: Salt's tag of the failed entry of a highstate without states.
_NO_STATES = "no_|-states_|-states_|-None"


def pillar_errors(run: RunContext, options: Mapping[str, object]) -> list[str]:
    """List of the error texts that stop a run because of its pillar; [] if the pillar has no errors or ``force`` is set.

    Errors set the exit code of the job to 5.
    """
    errors = run.ctx.pillar.get("_errors")
    if not errors or options.get("force"):
        return []
    run.ctx.scratch["retcode"] = PILLAR_ERROR
    lines = ["Pillar failed to render with the following messages:", *errors]
    log.error("%s", "\n".join(map(str, lines)))
    return lines


def not_compiled(ctx: Context, errors: list[str]) -> list[str]:
    """Log the errors of a run that cannot be compiled, set the exit code of the job to 1, and return the errors."""
    ctx.scratch["retcode"] = COMPILE_ERROR
    for error in errors:
        log.error("%s", error)
    return errors


def nothing(ctx: Context, comment: str) -> Running:
    """Return the running dictionary of a highstate without states: one failed entry with this comment, as in Salt.

    Sets the exit code of the job to 2.
    """
    ctx.scratch["retcode"] = STATE_FAILED
    log.error("%s", comment)
    entry = {"result": False, "comment": comment, "name": "No States", "changes": {}, "__run_num__": 0}
    return {_NO_STATES: entry}


def must_have(state_id: str, compiled: Compiled, ctx: Context) -> None:
    """Raise InvocationError unless the compiled run has a state with this ID (``state.sls_id``)."""
    known = {str(low["__id__"]) for low in compiled.chunks}
    if state_id not in known:
        files = ",".join(dict.fromkeys(str(low["__sls__"]) for low in compiled.chunks))
        near = close_matches(state_id, known, n=1)
        hint = f". Did you mean '{near[0]}'?" if near else ""
        raise InvocationError(
            f"No matches for ID '{state_id}' found in SLS '{files}' within saltenv '{ctx.saltenv}'{hint}"
        )


_NEEDED = ("state", "fun", "name")


def faults_of_chunk(data: Mapping[str, object], loader: Loader, ctx: Context) -> list[str]:
    """List of Salt's error texts for a low chunk given to ``state.low``; [] if the chunk can be called."""
    return list(_malformed(data)) or list(_uncallable(data, loader, ctx))


def _malformed(data: Mapping[str, object]) -> Iterator[str]:
    yield from (f'Missing "{key}" data' for key in _NEEDED if key not in data)
    for key in ("state", "fun"):
        if not isinstance(data.get(key, ""), str):
            yield f'"{key}" is not formed as a string, but is a {type(data[key]).__name__}'
    name = data.get("name")
    if name and not isinstance(name, str):
        yield f"ID '{name}' is not formed as a string, but is a {type(name).__name__}"
    umask = data.get("umask")
    if umask is not None:
        try:
            int(str(umask), 8)
        except ValueError:
            yield f"Invalid umask: {umask}"


def _uncallable(data: Mapping[str, object], loader: Loader, ctx: Context) -> Iterator[str]:
    full = f"{data['state']}.{data['fun']}"
    try:
        served, function = loader.function("states", full, ctx)
    except NotAvailable as error:
        yield f"Specified state '{full}' was not found"
        if error.reason:
            yield f"Reason: {error.reason}"
        return
    for name in served.parameters(function).required:
        if name not in data:
            yield f"Missing parameter {name} for state {full}"


#: Name of the template in errors, in place of a file name.
NAME = "<template-str>"

_NOT_HERE = ("include", "exclude", "extend", "extends")


def faults(data: Mapping[object, object]) -> list[str]:
    """List of Salt's error texts for the data that a template of ``state.template_str`` rendered to; [] for well-formed high
    data.
    """
    for word in _NOT_HERE:
        if word in data:
            return [f"The '{word}' declaration found on '{NAME}' is invalid when rendering single templates"]
    return [fault for name, body in data.items() for fault in _of_id(name, body)]


def _of_id(name: object, body: object) -> Iterator[str]:
    if not isinstance(body, Mapping):
        if not isinstance(body, str) or "." not in body:
            yield f"ID {name} in template {NAME} is not a dictionary"
        return
    seen: set[str] = set()
    for key in sorted(map(str, body)):
        module = key.partition(".")[0]
        if body.get(key) is None:
            yield (
                f"ID '{name}' in template {NAME} contains a short declaration ({key}) with a trailing colon."
                " When not passing any arguments to a state, the colon must be omitted."
            )
        elif module in seen:
            yield f"ID '{name}' in template '{NAME}' contains multiple state declarations of the same type"
        seen.add(module)


def high_of(data: Mapping[object, object]) -> High:
    """Convert the map that a template rendered to into high data for the compiler: IDs become text, bodies are copied."""
    return {str(name): dict(body) if isinstance(body, Mapping) else body for name, body in data.items()}
