"""A job's function through its executors (``module_executors``, Salt's executors)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import GeneratorType
from typing import Any

from statecore.loader import Loader
from statecore.loader.dunders import ModuleOpts
from statecore.model.context import Context
from statecore.model.errors import InvocationError, NotAvailable

#: What a job runs with when nobody says otherwise; nothing needs to be loaded for it.
DIRECT = ("direct_call",)


def executors_of(job: Mapping[str, Any], opts: Mapping[str, Any], *, own: bool) -> tuple[str, ...]:
    """Names, in order: the job's, else the option's. Raises InvocationError.

    ``own``: the minion runs a publication, where ``sudo_user`` puts sudo at the end; salt-call is what sudo starts.
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
    job: Mapping[str, Any],
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    ctx: Context,
    loader: Loader,
) -> Any:
    """What the first executor that returns something returns. ``job`` has ``fun``, and ``executor_opts`` if there are any.

    Raises InvocationError for an executor that is not there, before one runs.
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
        # As Salt hands them over: users' executors get options first, ours have the context.
        given = () if served.takes_ctx else (ModuleOpts(ctx),)
        answer = served.bound(execute, ctx)(*given, dict(job), function, list(args), dict(kwargs))
        if answer is not None:
            return answer
    return None


def in_whole(value: Any, ctx: Context, jid: str | None) -> Any:
    """What a function returned, where it is a generator all that it yields: maps as one map, anything else as a list.

    Of a job each part is an event as it comes, ``salt/job/<jid>/prog/<minion>/<number>``. Source: salt/minion.py.
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
