"""Applying and showing states (Salt's ``state`` module). The work is done by the state system; here are its verbs.

Exit codes (``ctx.scratch["retcode"]``, Salt's): 0, 1 the tree does not compile, 2 a state failed, 5 the pillar has errors.
One state run at a time: a second is refused unless ``concurrent=True``, or waits for its turn with ``queue=True``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from statecore.context import Context
from statecore.errors import InvocationError

ALIASES = {"apply": "apply_"}
OUTPUTTERS = dict.fromkeys(
    ("apply", "sls", "sls_id", "highstate", "high", "single", "test", "top", "template_str"), "highstate"
)

#: What a call may say about its run; everything else is not the state system's.
_OPTIONS = (
    *("saltenv", "pillarenv", "pillar", "exclude", "whitelist", "failhard", "force", "state_events"),
    *("sync_mods", "orchestration_jid"),
)

#: Seconds between looks at the jobs while a queued run waits.
_PATIENCE = 0.5


def apply_(ctx: Context, mods: str | Sequence[str] | None = None, **kwargs: Any) -> Any:
    """Applies SLS files, or the whole top file (highstate) without any.

    ``test=True`` shows what would be done; ``pillar={...}`` overrides pillar; also saltenv, pillarenv, exclude, queue,
    concurrent. Returns the running dictionary, or a list of errors.

    CLI Example:

        salt '*' state.apply web,db test=True
    """
    return sls(ctx, mods, **kwargs) if mods else highstate(ctx, **kwargs)


def sls(
    ctx: Context,
    mods: str | Sequence[str],
    test: bool | None = None,
    exclude: Any = None,
    queue: bool | int | None = None,
    **kwargs: Any,
) -> Any:
    """Applies SLS files: names separated by commas, or a list.

    CLI Example:

        salt '*' state.sls core,edit.vim
    """
    if (conflict := _conflict(ctx, queue, kwargs)) is not None:
        return conflict
    result = ctx.state_system.sls(_split(mods), _options(ctx, test, {**kwargs, "exclude": exclude}))
    return _shown(result, kwargs)


def highstate(ctx: Context, test: bool | None = None, queue: bool | int | None = None, **kwargs: Any) -> Any:
    """Applies what the top file gives this minion; ``whitelist`` limits it to some SLS files.

    CLI Example:

        salt '*' state.highstate exclude="[{'sls': 'web'}]"
    """
    if (conflict := _conflict(ctx, queue, kwargs)) is not None:
        return conflict
    return _shown(ctx.state_system.highstate(_options(ctx, test, kwargs)), kwargs)


def test(ctx: Context, *args: Any, **kwargs: Any) -> Any:
    """``state.apply`` with ``test=True``."""
    return apply_(ctx, *args, **{**kwargs, "test": True})


def high(
    ctx: Context, data: Mapping[str, Any], test: bool | None = None, queue: bool | int | None = None, **kwargs: Any
) -> Any:
    """Applies literal high data.

    CLI Example:

        salt '*' state.high '{"vim": {"pkg": ["installed"]}}'
    """
    if (conflict := _conflict(ctx, queue, kwargs)) is not None:
        return conflict
    return ctx.state_system.high(data, _options(ctx, test, kwargs))


def low(
    ctx: Context, data: Mapping[str, Any], queue: bool | int | None = None, test: bool | None = None, **kwargs: Any
) -> Any:
    """Calls one low chunk: state, fun, name and arguments.

    CLI Example:

        salt '*' state.low '{"state": "pkg", "fun": "installed", "name": "vi"}'
    """
    if (conflict := _conflict(ctx, queue, kwargs)) is not None:
        return conflict
    return ctx.state_system.low(data, _options(ctx, test, kwargs))


def single(
    ctx: Context, fun: str, name: str, test: bool | None = None, queue: bool | int | None = None, **kwargs: Any
) -> Any:
    """Calls one state function.

    CLI Example:

        salt '*' state.single pkg.installed name=vim
    """
    if (conflict := _conflict(ctx, queue, kwargs)) is not None:
        return conflict
    state, _, function = fun.partition(".")
    if not function:
        ctx.scratch["retcode"] = 1
        return "Invalid function passed"
    arguments = {key: value for key, value in kwargs.items() if key not in _OPTIONS and not key.startswith("__pub_")}
    chunk = {**arguments, "state": state, "fun": function, "name": name, "__id__": name}
    return ctx.state_system.low(chunk, {**_options(ctx, test, kwargs), "tagged": True})


def sls_id(
    ctx: Context,
    id_: str,
    mods: str | Sequence[str],
    test: bool | None = None,
    queue: bool | int | None = None,
    **kwargs: Any,
) -> Any:
    """Applies one ID of SLS files, with what it requires. Raises InvocationError when the files do not have it."""
    if (conflict := _conflict(ctx, queue, kwargs)) is not None:
        return conflict
    options = _options(ctx, test, kwargs)
    return ctx.state_system.sls(_split(mods), {**options, "only_id": id_})


def top(ctx: Context, topfn: str, test: bool | None = None, queue: bool | int | None = None, **kwargs: Any) -> Any:
    """Applies what another top file gives this minion."""
    if (conflict := _conflict(ctx, queue, kwargs)) is not None:
        return conflict
    return ctx.state_system.highstate({**_options(ctx, test, kwargs), "state_top": topfn})


def show_top(ctx: Context, queue: bool | int | None = None, **kwargs: Any) -> Any:
    """Environment -> SLS files that the top file gives this minion."""
    return _verdict(ctx, ctx.state_system.show_top(_options(ctx, None, kwargs)))


def show_highstate(ctx: Context, queue: bool | int | None = None, **kwargs: Any) -> Any:
    """The high data of the top file's SLS files."""
    return _verdict(ctx, ctx.state_system.show_high(None, _options(ctx, None, kwargs)))


def show_sls(
    ctx: Context,
    mods: str | Sequence[str],
    test: bool | None = None,
    queue: bool | int | None = None,
    **kwargs: Any,
) -> Any:
    """The high data of SLS files."""
    return _verdict(ctx, ctx.state_system.show_high(_split(mods), _options(ctx, test, kwargs)))


def show_lowstate(ctx: Context, queue: bool | int | None = None, **kwargs: Any) -> Any:
    """The low chunks of the top file's SLS files, in order of evaluation."""
    return _low_verdict(ctx, ctx.state_system.show_low(None, _options(ctx, None, kwargs)))


def show_low_sls(
    ctx: Context,
    mods: str | Sequence[str],
    test: bool | None = None,
    queue: bool | int | None = None,
    **kwargs: Any,
) -> Any:
    """The low chunks of SLS files, in order of evaluation."""
    return _low_verdict(ctx, ctx.state_system.show_low(_split(mods), _options(ctx, test, kwargs)))


def show_states(ctx: Context, queue: bool | int | None = None, **kwargs: Any) -> Any:
    """The SLS files that would be applied, in order, includes among them."""
    chunks = ctx.state_system.show_low(None, _options(ctx, None, kwargs))
    if any(not isinstance(chunk, Mapping) for chunk in chunks):
        return _low_verdict(ctx, chunks)
    return list(dict.fromkeys(chunk["__sls__"] for chunk in chunks))


def sls_exists(
    ctx: Context,
    mods: str | Sequence[str],
    test: bool | None = None,
    queue: bool | int | None = None,
    **kwargs: Any,
) -> bool:
    """Whether these SLS files exist and render."""
    return isinstance(ctx.state_system.show_high(_split(mods), _options(ctx, test, kwargs)), dict)


def id_exists(
    ctx: Context,
    ids: str | Sequence[str],
    mods: str | Sequence[str],
    test: bool | None = None,
    queue: bool | int | None = None,
    **kwargs: Any,
) -> bool:
    """Whether SLS files have all of these IDs."""
    high_data = ctx.state_system.show_high(_split(mods), _options(ctx, test, kwargs))
    return isinstance(high_data, dict) and set(_split(ids)) <= set(high_data)


# What looks at the tree more closely lives in ``state_tree``, which is loaded when somebody asks.


def check(ctx: Context, mods: str | Sequence[str] | None = None, **kwargs: Any) -> Any:
    """All that is wrong or odd in the state tree, with file, line and column (``state_tree.check``)."""
    return ctx.call("state_tree.check", mods, **kwargs)


def plan(ctx: Context, mods: str | Sequence[str] | None = None, **kwargs: Any) -> Any:
    """What a run would change, with the diffs of whole files (``state_tree.plan``)."""
    return ctx.call("state_tree.plan", mods, **kwargs)


def graph(ctx: Context, mods: str | Sequence[str] | None = None, **kwargs: Any) -> Any:
    """The states of a run in their order, and their requisites (``state_tree.graph``); ``format``: mermaid, dot, svg, json."""
    return ctx.call("state_tree.graph", mods, **kwargs)


def explain(ctx: Context, mods: str | Sequence[str], id_: str, **kwargs: Any) -> Any:
    """Why the states of an ID run when they do, and where everything that they have comes from (``state_tree.explain``)."""
    return ctx.call("state_tree.explain", mods, id_, **kwargs)


def running(ctx: Context, concurrent: bool = False) -> list[str]:
    """A sentence for each state run in progress, this one left out."""
    if concurrent:
        return []
    return [
        f'The function "{job["fun"]}" is running as PID {job["pid"]} and was started at {_started(str(job["jid"]))}'
        f" with jid {job['jid']}"
        for job in _others(ctx)
    ]


def _others(ctx: Context) -> list[dict[str, Any]]:
    return [
        job
        for job in ctx.jobs.running()
        if str(job.get("fun", "")).startswith("state.") and int(job.get("pid", 0)) != os.getpid()
    ]


def _conflict(ctx: Context, queue: bool | int | None, kwargs: Mapping[str, Any]) -> list[str] | None:
    """None when this run may begin; waits for its turn when it is to be queued, else refuses with the reasons."""
    if kwargs.get("concurrent"):
        return None
    if queue is None:
        queue = bool(ctx.opts.get("state_queue", False))
    own = _own_jid(ctx)
    while queue and any(_before(job, own) for job in _others(ctx)):
        time.sleep(_PATIENCE)
    if queue:
        return None
    reasons = running(ctx)
    if not reasons:
        return None
    ctx.scratch["retcode"] = 1
    return reasons


def _own_jid(ctx: Context) -> str:
    return next((str(job["jid"]) for job in ctx.jobs.running() if int(job.get("pid", 0)) == os.getpid()), "")


def _before(job: Mapping[str, Any], jid: str) -> bool:
    """Whether the job's turn is before ours: job ids are times, so the earlier one goes first and none waits for ever."""
    return not jid or str(job["jid"]) < jid


def _started(jid: str) -> str:
    """The time a job id stands for, as Salt writes it; "" for an id that is no time."""
    try:
        return datetime.strptime(jid[:20], "%Y%m%d%H%M%S%f").strftime("%Y, %b %d %H:%M:%S.%f")
    except ValueError:
        return ""


def _options(ctx: Context, test: bool | None, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """What the call says about its run. Raises InvocationError for a pillar that is not a map."""
    options = {key: kwargs[key] for key in _OPTIONS if kwargs.get(key) is not None}
    if not isinstance(options.get("pillar", {}), Mapping):
        raise InvocationError("Pillar data must be formatted as a dictionary, unless pillar_enc is specified.")
    options["test"] = bool(ctx.opts.get("test", False)) if test is None else bool(test)
    return options


def _shown(result: Any, kwargs: Mapping[str, Any]) -> Any:
    """With ``terse=True`` only what failed or changed."""
    if not kwargs.get("terse") or not isinstance(result, dict):
        return result
    return {tag: entry for tag, entry in result.items() if not entry["result"] or entry["changes"]}


def _verdict(ctx: Context, result: Any) -> Any:
    if isinstance(result, list):
        ctx.scratch.setdefault("retcode", 1)
        ctx.scratch["retcode"] = ctx.scratch["retcode"] or 1
    return result


def _low_verdict(ctx: Context, chunks: list[Any]) -> list[Any]:
    if any(not isinstance(chunk, Mapping) for chunk in chunks):
        ctx.scratch["retcode"] = ctx.scratch.get("retcode") or 1
    return chunks


def _split(names: str | int | Sequence[str]) -> list[str]:
    if isinstance(names, str | int):
        return [name.strip() for name in str(names).split(",")]
    return [str(name) for name in names]
