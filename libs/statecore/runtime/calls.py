"""Execution functions called as jobs: whatever happens comes back as a value, with Salt's exit code and words.

Contract: protocol section 7.3.
"""

from __future__ import annotations

import inspect
import logging
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from statecore.loader import Loader, Served
from statecore.loader.arguments import accepted, unknown
from statecore.loader.compat.exceptions import CommandNotFoundError
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError, NotAvailable, StatecoreError
from statecore.model.named_tuple import NamedTuple
from statecore.runtime.execution import executed, executors_of, in_whole
from statecore.runtime.ports import LoaderCatalog

log = logging.getLogger(__name__)

#: What may still be called while ``minion_blackout`` is set in pillar or grains, besides its whitelist.
_BLACKOUT_PASS = "saltutil.refresh_pillar"

_GENERIC_FAILURE = 1


class FunctionCall(NamedTuple):
    """A function and what it is called with."""

    fun: str
    args: Sequence[Any]
    #: May hold the publication's ``__pub_*``, which reach only functions that take any keyword.
    kwargs: Mapping[str, Any]
    #: The publication, where there is one: it may name executors.
    job: Mapping[str, Any] | None


class Returned(NamedTuple):
    """What a job returns (protocol section 7.3)."""

    value: Any
    retcode: int
    success: bool
    #: Outputter that shows it; None leaves the choice to the caller.
    out: str | None = None


def returned(
    call: FunctionCall,
    ctx: Context,
    loader: Loader,
    catalog: LoaderCatalog,
    restraints: Iterable[Mapping[str, Any]],
    *,
    trusted: bool = False,
) -> Returned:
    """Calls it. ``restraints``: pillar and grains that may hold a ``minion_blackout``. ``trusted``: the minion asks by itself,
    ``whitelist_modules`` does not count."""
    fun = call.fun
    ctx.scratch["retcode"] = 0
    # Pillar that an operator asks for is masked; states and templates reach it through other functions.
    ctx.scratch["pillar.mask"] = fun.startswith("pillar.")
    # What an operator types runs through a shell; what a template or a module calls does not, unless it says so.
    ctx.scratch["cmd.shell"] = fun.startswith("cmd.")
    try:
        if not trusted and not ctx.may(fun):
            raise NotAvailable(fun)
        served, function = loader.function("modules", fun, ctx)
    except NotAvailable as missing:
        return _failed(_missing(fun, missing, catalog))
    try:
        _refuse_in_blackout(fun, restraints)
        return _called(call, served, function, ctx, loader)
    except CommandNotFoundError as error:
        return _failed(f"Command required for '{fun}' not found: {error}")
    except CommandError as error:
        log.error("A command in '%s' had a problem: %s", fun, error)
        return _failed(f"ERROR: {error}")
    except StatecoreError as error:
        log.error("Problem executing '%s': %s", fun, error)
        return _failed(f"ERROR executing '{fun}': {error}")
    except Exception as error:
        log.exception("Unexpected exception in %s", fun)
        return _failed(f"The minion function caused an exception: {type(error).__name__}: {error}")


def _called(call: FunctionCall, served: Served, function: str, ctx: Context, loader: Loader) -> Returned:
    job = call.job or {}
    parameters = served.parameters(function)
    keywords = accepted(parameters, call.kwargs, native=served.native)
    if wrong := unknown(parameters, keywords):
        raise InvocationError(f"The following keyword arguments are not valid: {', '.join(wrong)}")
    own = served.functions[function]
    if fault := served.misfit(function, own.__name__, call.args, keywords):
        return _failed(
            f"Passed invalid arguments to {call.fun}: {fault}\n\n{textwrap.indent(inspect.getdoc(own) or '', '    ')}"
        )
    executors = executors_of(job, ctx.opts, own="jid" in job)
    data = {**job, "fun": call.fun}
    value = executed(executors, data, served.bound(function, ctx), call.args, keywords, ctx, loader)
    value = in_whole(value, ctx, str(data["jid"]) if "jid" in data else None)
    retcode = int(ctx.scratch.get("retcode") or 0)
    if not retcode and isinstance(value, Mapping) and not all(value.get(key, True) for key in ("result", "success")):
        retcode = _GENERIC_FAILURE
    return Returned(value, retcode, retcode == 0, served.outputters.get(function))


def _missing(fun: str, missing: NotAvailable, catalog: LoaderCatalog) -> Any:
    """The sentence for a function that is not there; with the documentation of those whose names begin like it."""
    sentence = str(missing)
    docs = {name: catalog.doc(name) for name in catalog.names() if name.startswith(fun)}
    return {**docs, fun: sentence} if docs else sentence


def _refuse_in_blackout(fun: str, restraints: Iterable[Mapping[str, Any]]) -> None:
    for source in restraints:
        if source.get("minion_blackout") and fun != _BLACKOUT_PASS:
            if fun in source.get("minion_blackout_whitelist", ()):
                continue
            raise InvocationError(
                "Minion in blackout mode. Set 'minion_blackout' to False in pillar or grains to resume operations."
                f" Only {_BLACKOUT_PASS} allowed in blackout mode."
            )


def _failed(value: Any) -> Returned:
    return Returned(value, _GENERIC_FAILURE, success=False, out="nested")
