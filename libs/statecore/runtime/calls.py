"""Execution functions called as jobs: every result and every error becomes a return with Salt's exit code and Salt's
error message.

Source: docs/execution.md#return-codes
"""

from __future__ import annotations

import inspect
import logging
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import GeneratorType
from typing import TYPE_CHECKING, NamedTuple

from statecore.loader import LoadedModule, Loader
from statecore.loader.arguments import accepted, unknown
from statecore.loader.compat.exceptions import CommandNotFoundError
from statecore.loader.dunders import ModuleOpts
from statecore.loader.further_keywords import near_miss
from statecore.model.context import Context
from statecore.model.errors import (
    CallFailed,
    CommandError,
    InvocationError,
    NotAvailable,
    StatecoreError,
    place_in_module,
)
from statecore.model.lazy import lazy_module
from statecore.model.nearest import close_matches
from statecore.model.redaction import shown_arguments
from statecore.runtime.ports import LoaderCatalog

if TYPE_CHECKING:
    from statecore.model import log_text
else:
    log_text = lazy_module("statecore.model.log_text")

log = logging.getLogger(__name__)

#: Function that a minion still runs in blackout mode, besides those of ``minion_blackout_whitelist``.
_BLACKOUT_PASS = "saltutil.refresh_pillar"

_GENERIC_FAILURE = 1


class FunctionCall(NamedTuple):
    """A call of an execution function (``test.echo``): its name, its arguments and the publication that asked for it."""

    fun: str
    args: Sequence[object]
    #: May hold the publication's ``__pub_*`` arguments: only functions that take any keyword get them.
    kwargs: Mapping[str, object]
    #: The publication, or None: it may name executors.
    job: Mapping[str, object] | None


class Returned(NamedTuple):
    """Return of a job: the function's value, the exit code, and whether the job succeeded."""

    value: object
    retcode: int
    success: bool
    #: Name of the outputter; None leaves the choice to the caller.
    out: str | None = None
    #: If the call raised an error: the message that ``salt-call`` writes to stderr instead of a return.
    error: str | None = None


def returned(
    call: FunctionCall,
    ctx: Context,
    loader: Loader,
    catalog: LoaderCatalog,
    restraints: Iterable[Mapping[str, object]],
    *,
    trusted: bool = False,
) -> Returned:
    """Call an execution function as a job and return its value, exit code and success. Errors become values; none is
    raised.

    ``restraints`` are pillar and grains, which may hold a ``minion_blackout``. ``trusted``: the minion itself calls, so
    ``whitelist_modules`` does not apply.
    """
    fun = call.fun
    if log.isEnabledFor(logging.DEBUG):
        log.debug("Executing function %s with the arguments %s", fun, _arguments_text(call))
    ctx.scratch["retcode"] = 0
    # Pillar in a return to an operator is masked. States and templates read pillar through other functions.
    ctx.scratch["pillar.mask"] = fun.startswith("pillar.")
    # A command from an operator runs in a shell. One from a template or a module needs python_shell=True for that.
    ctx.scratch["cmd.shell"] = fun.startswith("cmd.")
    try:
        if not trusted and (not ctx.may(fun) or fun.rpartition(".")[2].startswith("_")):
            raise NotAvailable(fun)
        served, function = loader.function("modules", fun, ctx)
    except NotAvailable as missing:
        return _failed(_missing(fun, missing, catalog, loader.near(fun, ctx)))
    try:
        _refuse_in_blackout(fun, restraints)
        return _called(call, served, function, ctx, loader)
    except CommandNotFoundError as error:
        sentence = f"Command required for '{fun}' not found: {error}"
        return _failed(sentence, sentence)
    except CallFailed as failed:
        log.error("'%s' failed: %s", fun, failed)
        return Returned(failed.value, _GENERIC_FAILURE, success=False)
    except CommandError as error:
        log.error("A command in '%s' had a problem: %s", fun, error)
        return _failed(f"ERROR: {error}", f"Error running '{fun}': {error}")
    except StatecoreError as error:
        log.error("Problem executing '%s': %s", fun, error)
        return _failed(f"ERROR executing '{fun}': {error}", f"ERROR executing '{fun}': {error}")
    except Exception as error:
        log.exception("Unexpected exception in %s", fun)
        sentence = f"The minion function caused an exception: {type(error).__name__}: {error}{place_in_module(error)}"
        return _failed(sentence, sentence)


def _arguments_text(call: FunctionCall) -> str:
    """Return the arguments of a function's call as one line for the log, without secrets and without the arguments
    ``__pub_*`` of the publication.
    """
    keywords = {name: value for name, value in call.kwargs.items() if not name.startswith("__")}
    shown = shown_arguments(call.fun, [*call.args, *([keywords] if keywords else [])])
    return log_text.clipped(repr(shown))


def _called(call: FunctionCall, served: LoadedModule, function: str, ctx: Context, loader: Loader) -> Returned:
    job = call.job or {}
    parameters = served.parameters(function)
    keywords = accepted(parameters, call.kwargs, native=served.native)
    if wrong := unknown(parameters, keywords):
        hints = _hints([one.partition("=")[0] for one in wrong], parameters.named)
        raise InvocationError(f"The following keyword arguments are not valid: {', '.join(wrong)}{hints}")
    if served.native and (miss := near_miss(served.source.stem, function, parameters, keywords)):
        raise InvocationError(f"'{miss[0]}' is no argument of {call.fun}. Did you mean '{miss[1]}'? Nothing was done.")
    own = served.functions[function]
    if fault := served.misfit(function, own.__name__, call.args, keywords):
        usage = textwrap.indent(inspect.getdoc(own) or "", "    ")
        return _failed(
            f"Passed invalid arguments to {call.fun}: {fault}\n\n{usage}",
            f"Passed invalid arguments: {fault}.\n\nUsage:\n\n{usage}\n",
        )
    executors = executors_of(job, ctx.opts, own="jid" in job)
    data = {**job, "fun": call.fun}
    value = executed(executors, data, served.bound(function, ctx), call.args, keywords, ctx, loader)
    value = in_whole(value, ctx, str(data["jid"]) if "jid" in data else None)
    retcode = int(ctx.scratch.get("retcode") or 0)
    if not retcode and isinstance(value, Mapping) and not all(value.get(key, True) for key in ("result", "success")):
        retcode = _GENERIC_FAILURE
    return Returned(value, retcode, retcode == 0, served.outputters.get(function))


def _hints(wrong: Iterable[str], names: Iterable[str]) -> str:
    """Return one sentence ". Did you mean 'a' instead of 'b'?" for each name in ``wrong`` (b) that is similar to one
    of ``names`` (a), all in one text.
    """
    near = [(name, found[0]) for name in wrong if (found := close_matches(name, names, n=1))]
    return "".join(f". Did you mean '{one}' instead of '{name}'?" for name, one in near)


def _missing(fun: str, missing: NotAvailable, catalog: LoaderCatalog, near: str) -> object:

    sentence = str(missing) + (f" Did you mean '{near}'?" if near and not missing.reason else "")
    docs = {name: catalog.doc(name) for name in catalog.names() if name.startswith(fun)}
    return {**docs, fun: sentence} if docs else sentence


def _refuse_in_blackout(fun: str, restraints: Iterable[Mapping[str, object]]) -> None:
    for source in restraints:
        if source.get("minion_blackout") and fun != _BLACKOUT_PASS:
            allowed = source.get("minion_blackout_whitelist", ())
            if isinstance(allowed, str | list | tuple | Mapping) and fun in allowed:
                continue
            raise InvocationError(
                "Minion in blackout mode. Set 'minion_blackout' to False in pillar or grains to resume operations."
                f" Only {_BLACKOUT_PASS} allowed in blackout mode."
            )


def _failed(value: object, error: str | None = None) -> Returned:
    return Returned(value, _GENERIC_FAILURE, success=False, out="nested", error=error)


#: Default executors of a job: the function is called directly, no executor module is loaded.
DIRECT = ("direct_call",)


def executors_of(job: Mapping[str, object], opts: Mapping[str, object], *, own: bool) -> tuple[str, ...]:
    """Return the names of a job's executors in order: those of the job, else those of the option ``module_executors``.

    ``own``: the minion runs a publication, so the option ``sudo_user`` appends the executor sudo. (sudo starts
    salt-call, which must not start sudo again.) Raises InvocationError for anything but a text or a list of texts.
    """
    named = job.get("module_executors") or opts.get("module_executors") or list(DIRECT)
    names = [named] if isinstance(named, str) else named
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InvocationError(
            f"Wrong executors specification: {named}. String or non-empty list expected (module_executors)"
        )
    if own and opts.get("sudo_user") and names[-1] != "sudo":
        names = [*names[:-1], "sudo"]
    return tuple(names)


def executed(
    names: Sequence[str],
    job: Mapping[str, object],
    function: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    ctx: Context,
    loader: Loader,
) -> object:
    """Call ``function`` through the executors ``names`` of a job, and return the first result that is not None.

    ``job`` is the job's load: it holds ``fun``, and may hold ``executor_opts``. Raise InvocationError for an unknown
    executor before any executor runs.
    """
    if tuple(names) == DIRECT:
        return function(*args, **kwargs)
    found = []
    for name in names:
        try:
            found.append(loader.function("executors", f"{name}.execute", ctx))
        except NotAvailable as missing:
            reason = f": {missing.reason}" if missing.reason else ""
            raise InvocationError(f"Executor '{name}' is not available{reason}") from None
    for served, execute in found:
        # As in Salt users' executors get the options as first argument; built-in ones have the context.
        given = () if served.takes_ctx else (ModuleOpts(ctx),)
        answer = served.bound(execute, ctx)(*given, dict(job), function, list(args), dict(kwargs))
        if answer is not None:
            return answer
    return None


def in_whole(value: object, ctx: Context, jid: str | None) -> object:
    """Return a function's value; if it is a generator, all its parts: joined into one map if all are maps, else as a
    list.

    In a job (``jid`` is not None) each part is fired as the event ``salt/job/<jid>/prog/<minion>/<number>``. Salt:
    salt/minion.py, _thread_return
    """
    if not isinstance(value, GeneratorType):
        return value
    parts = []
    for number, part in enumerate(value):
        parts.append(part)
        if jid:
            ctx.events.fire(f"salt/job/{jid}/prog/{ctx.opts.get('id', '')}/{number}", {"return": part})
    if parts and not all(isinstance(part, Mapping) for part in parts):
        return parts
    return {name: item for part in parts for name, item in part.items()}
