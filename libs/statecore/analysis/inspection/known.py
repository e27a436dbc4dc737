"""Look up state functions and execution functions, on this host or on a host where their modules are usable."""

from __future__ import annotations

from statecore.analysis import functions
from statecore.model.errors import NotAvailable
from statecore.model.nearest import close_matches
from statecore.runtime.state_runs.state_system import RunParts


def state_function(parts: RunParts, full: str) -> functions.Known:
    """Look up a state function such as ``file.managed``. Return a Known: whether the function exists, its parameters;
    else the reason why it cannot be used, or the most similar name.

    A built-in module that is not usable on this host counts as existing.
    """
    loader, ctx = parts.loader, parts.run.ctx
    try:
        served, function = loader.function("states", full, ctx)
        return functions.Known(served.parameters(function))
    except NotAvailable as missing:
        reason = missing.reason
    module, _, name = full.partition(".")
    if reason and any(not source.native and source.stem == module for source in loader.sources("states")):
        return functions.Known(exists=False, reason=reason)
    built_in = loader.built_in_parameters("states", module)
    if name in built_in:
        return functions.Known(built_in[name])
    near = close_matches(full, [f"{module}.{each}" for each in built_in], n=1, cutoff=0.7)
    return functions.Known(exists=False, nearest=near[0] if near else loader.nearest("states", full, ctx))


def reacts(parts: RunParts, state: str) -> bool:
    """Return whether a state module has a mod_watch function, on this host or on a host where the module is usable."""
    loader, name = parts.loader, f"{state}.mod_watch"
    return loader.has("states", name, parts.run.ctx) or "mod_watch" in loader.built_in_parameters("states", state)


def salt_function(parts: RunParts, name: str) -> bool:
    """Return whether an execution function of this name exists.

    True for every name in a module that exists but is not usable on this host: another host may have the function.
    """
    loader, module = parts.loader, name.partition(".")[0]
    return loader.has("modules", name, parts.run.ctx) or (
        loader.known("modules", module) and not _usable(parts, module)
    )


def nearest_function(parts: RunParts, name: str) -> str:
    """Return the name of the execution function that is most similar to ``name``; "" if none is similar."""
    return parts.loader.nearest("modules", name, parts.run.ctx)


def _usable(parts: RunParts, module: str) -> bool:
    try:
        parts.loader.module("modules", module, parts.run.ctx)
    except NotAvailable:
        return False
    return True
