"""Functions of ``state`` that apply states."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from statecore.builtin.modules.state import arguments
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError, NotAvailable
from statecore.runtime.state_runs import disabled_states, state_queue

log = logging.getLogger(__name__)

_COMPILE_ERROR = 1


def apply(ctx: Context, mods: str | Sequence[str] | None = None, **kwargs: Any) -> object:
    """Apply SLS files, or without any all SLS files that the top file assigns (highstate).

    test
        True: show the changes without making them
    pillar
        map whose values override those of the pillar
    exclude
        SLS files to leave out: names or globs, separated by commas or as a list, which may also hold ``{'sls': name}``
        and ``{'id': name}``
    saltenv, pillarenv
        saltenv of the SLS files, pillarenv of the pillar
    queue
        True: wait for the end of other state runs; a number: wait only if fewer runs are before this one. Otherwise a
        second run is refused
    concurrent
        True: run at the same time as other state runs
    localconfig
        a YAML file on the minion with options for this run
    sync_mods
        kinds of users' modules to fetch first (``all``), with SLS files
    mock
        True: call no state functions, which shows the order of the run
    state_events
        True: fire an event after each state
    failhard
        True: stop at the first state that fails
    force
        True: run in spite of errors in the pillar
    terse
        True: return only failed and changed states
    cache, cache_name
        True: use the stored high data of the last run with the name ``cache_name``

    Return the running dictionary, or a list of errors.

    CLI Example:

        salt '*' state.apply web,db test=True
    """
    return sls(ctx, mods, **kwargs) if mods else highstate(ctx, **kwargs)


def test(ctx: Context, mods: str | Sequence[str] | None = None, **kwargs: object) -> object:  # noqa: PT028 - no test, but Salt's name
    """Test SLS files or the highstate, as ``state.apply`` with ``test=True``. Return the running dictionary (state tag
    to the state's return), or a list of errors.

    CLI Example:

        salt '*' state.test web
    """
    return apply(ctx, mods, **{**kwargs, "test": True})


def sls(
    ctx: Context,
    mods: str | Sequence[str],
    test: object = None,
    exclude: object = None,
    queue: bool | int | None = None,
    sync_mods: object = None,
    state_events: bool | None = None,
    **kwargs: object,
) -> object:
    """Apply SLS files: names separated by commas, or a list. Return the running dictionary (state tag to the state's
    return), or a list of errors. The arguments are those of ``state.apply``.

    CLI Example:

        salt '*' state.sls core,edit.vim
    """
    names = arguments.split(mods)
    kinds = arguments.module_kinds(sync_mods)
    options = arguments.options(ctx, test, {**kwargs, "exclude": exclude, "state_events": state_events})
    with state_queue.taken(ctx, queue, kwargs.get("concurrent")) as refused:
        if refused := refused or disabled_states.sls_refusals(_disabled(ctx), names):
            ctx.scratch["retcode"] = _COMPILE_ERROR
            return refused
        _sync(ctx, kinds, options)
        return _returned(ctx, ctx.state_system.sls(names, options), kwargs)


def highstate(
    ctx: Context,
    test: object = None,
    queue: bool | int | None = None,
    state_events: bool | None = None,
    **kwargs: object,
) -> object:
    """Apply the SLS files that the top file assigns to this minion. ``whitelist`` limits them. Return the running
    dictionary (state tag to the state's return), or a list of errors. The arguments are those of ``state.apply``.

    CLI Example:

        salt '*' state.highstate exclude="[{'sls': 'web'}]"
    """
    if "highstate" in _disabled(ctx):
        return {
            "name": "Salt highstate run is disabled. To re-enable, run state.enable highstate",
            "result": "False",
            "comment": "Disabled",
        }
    options = arguments.options(ctx, test, {**kwargs, "state_events": state_events})
    with state_queue.taken(ctx, queue, kwargs.get("concurrent")) as refused:
        return refused or _returned(ctx, ctx.state_system.highstate(options), kwargs)


def top(ctx: Context, topfn: str, test: object = None, queue: bool | int | None = None, **kwargs: object) -> object:
    """Apply the SLS files that another top file, ``topfn``, assigns to this minion. Return the running dictionary
    (state tag to the state's return), or a list of errors. The arguments are those of ``state.apply``.

    CLI Example:

        salt '*' state.top reverse_top.sls
    """
    if not isinstance(topfn, str) or not topfn:
        raise InvocationError(f"'topfn' must be the name of a top file such as other_top.sls, not {topfn!r}")
    options = arguments.options(ctx, test, kwargs)
    with state_queue.taken(ctx, queue, kwargs.get("concurrent")) as refused:
        return refused or ctx.state_system.highstate({**options, "state_top": topfn})


def sls_id(
    ctx: Context,
    id_: str,
    mods: str | Sequence[str],
    test: object = None,
    queue: bool | int | None = None,
    state_events: bool | None = None,
    **kwargs: object,
) -> object:
    """Apply one ID of SLS files, with its requisites. Return the running dictionary (state tag to the state's return),
    or a list of errors. Raise InvocationError if the files do not have the ID.

    CLI Example:

        salt '*' state.sls_id my_state my_sls
    """
    if not isinstance(id_, str | int | float):
        raise InvocationError(f"'id_' must be the ID of a state, not {id_!r}")
    names = arguments.split(mods)
    options = arguments.options(ctx, test, {**kwargs, "state_events": state_events})
    with state_queue.taken(ctx, queue, kwargs.get("concurrent")) as refused:
        return refused or ctx.state_system.sls(names, {**options, "only_id": str(id_)})


def high(
    ctx: Context, data: Mapping[str, object], test: object = None, queue: bool | int | None = None, **kwargs: object
) -> object:
    """Apply high data. Return the running dictionary (state tag to the state's return), or a list of errors.

    CLI Example:

        salt '*' state.high '{"vim": {"pkg": ["installed"]}}'
    """
    options = arguments.options(ctx, test, kwargs)
    if not isinstance(data, Mapping):
        ctx.scratch["retcode"] = _COMPILE_ERROR
        return ["High data is not a dictionary and is invalid"]
    with state_queue.taken(ctx, queue, kwargs.get("concurrent")) as refused:
        return refused or ctx.state_system.high(data, options)


def low(ctx: Context, data: Mapping[str, object], queue: bool | int | None = None, **kwargs: object) -> object:
    """Apply one low chunk: a map of state, fun, name and arguments. Return the state's return (a map with name, result,
    changes and comment), or a list of errors.

    CLI Example:

        salt '*' state.low '{"state": "pkg", "fun": "installed", "name": "vi"}'
    """
    options = arguments.options(ctx, kwargs.get("test"), kwargs)
    if not isinstance(data, Mapping):
        raise InvocationError(f"'data' must be a map with state, fun and name, not the {type(data).__name__} {data!r}")
    with state_queue.taken(ctx, queue, kwargs.get("concurrent")) as refused:
        return refused or ctx.state_system.low(data, options)


def single(
    ctx: Context, fun: str, name: str, test: object = None, queue: bool | int | None = None, **kwargs: object
) -> object:
    """Apply one state function such as ``pkg.installed``. Return the running dictionary (state tag to the state's
    return), or a list of errors.

    CLI Example:

        salt '*' state.single pkg.installed name=vim
    """
    options = arguments.options(ctx, test, kwargs, own=False)
    state, _, function = str(fun).partition(".")
    if not function:
        ctx.scratch["retcode"] = _COMPILE_ERROR
        return "Invalid function passed"
    own = _for_the_state(ctx, str(fun), kwargs)
    chunk = {**own, "state": state, "fun": function, "name": name, "__id__": name}
    with state_queue.taken(ctx, queue, kwargs.get("concurrent")) as refused:
        return refused or ctx.state_system.low(chunk, {**options, "tagged": True})


def template(ctx: Context, tem: str, queue: bool | int | None = None, **kwargs: object) -> object:
    """Apply an SLS file of the minion, given by its path with or without ``.sls``. Return the running dictionary (state
    tag to the state's return), or a list of errors.

    CLI Example:

        salt '*' state.template '/srv/local/web'
    """
    options = arguments.options(ctx, kwargs.get("test"), kwargs)
    if not isinstance(tem, str) or not tem:
        raise InvocationError(f"'tem' must be the path of an SLS file on the minion, not {tem!r}")
    with state_queue.taken(ctx, queue, kwargs.get("concurrent")) as refused:
        return refused or ctx.state_system.template(tem, options)


def template_str(
    ctx: Context, tem: str | Mapping[str, object], queue: bool | int | None = None, **kwargs: object
) -> object:
    """Apply an SLS file that is given as text, or as its rendered data (the command line reads YAML). Return the
    running dictionary (state tag to the state's return), or a list of errors.

    CLI Example:

        salt '*' state.template_str '{vim: {pkg: [installed]}}'
    """
    options = arguments.options(ctx, kwargs.get("test"), kwargs)
    if isinstance(tem, Mapping):
        tem = f"#!json\n{json.dumps(tem, default=str)}"
    if not isinstance(tem, str):
        raise InvocationError(f"'tem' must be the text of an SLS file, not the {type(tem).__name__} {tem!r}")
    with state_queue.taken(ctx, queue, kwargs.get("concurrent")) as refused:
        if refused:
            return refused
        return ctx.state_system.template_str(tem, options)


def running(ctx: Context, concurrent: bool = False) -> list[str]:
    """Return a list with a sentence for each state run of this minion in progress or in the queue, except this one.

    CLI Example:

        salt '*' state.running
    """
    return [] if concurrent else [entry.sentence() for entry in state_queue.others(ctx)]


def _for_the_state(ctx: Context, function: str, kwargs: Mapping[str, object]) -> dict[str, object]:
    """Return those keywords of ``state.single`` that are arguments of the state function, as a map. A keyword such
    as ``force`` is an option of the run, unless the state function has an argument of this name (``file.copy``).
    """
    doubtful = _OF_THE_RUN & kwargs.keys()
    named: object = ()
    if doubtful:
        try:
            named = (ctx.catalog.argspec(function, "states") or {}).get("args") or ()
        except NotAvailable:
            # The run says that there is no such function.
            named = ()
    only_run = doubtful - frozenset(named if isinstance(named, list) else ())
    return {key: value for key, value in kwargs.items() if key not in only_run and not key.startswith("__pub_")}


#: Keywords of state.single that are options of the run, and arguments of the state only if its function names them.
_OF_THE_RUN = frozenset(
    (
        *("saltenv", "pillarenv", "pillar", "pillar_enc", "localconfig", "concurrent", "force", "state_events"),
        *("failhard", "cache", "cache_name", "mock", "exclude", "whitelist", "orchestration_jid", "terse"),
    )
)


def _disabled(ctx: Context) -> list[str]:
    return disabled_states.rows(ctx.call("grains.get", disabled_states.GRAIN))


def _sync(ctx: Context, kinds: Sequence[str], options: Mapping[str, object]) -> None:
    """Fetch users' modules of these kinds before a state run. As in Salt, an unknown kind only gives a warning in the
    log.
    """
    saltenv = options.get("saltenv") or ctx.opts.get("saltenv") or "base"
    for kind in kinds:
        try:
            ctx.call(f"saltutil.sync_{kind}", saltenv=saltenv)
        except NotAvailable:
            log.warning("Invalid custom module type '%s', ignoring", kind)
        except CommandError as error:
            raise CommandError(f"sync_mods={kind}: {error}") from error


def _returned(ctx: Context, result: object, keywords: Mapping[str, object]) -> object:
    """Return the running dictionary of a state run; with the keyword ``terse`` only its failed and changed states. A
    list of errors is returned unchanged.
    """
    if not isinstance(result, dict) or not arguments.terse(ctx, keywords):
        return result
    return {tag: entry for tag, entry in result.items() if not entry["result"] or entry["changes"]}
