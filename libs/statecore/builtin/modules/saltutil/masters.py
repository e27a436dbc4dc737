"""Functions of ``saltutil`` that run jobs, runners and wheel functions on the master, for orchestrations.

On a minion, jobs and runners are requested from its master as by the module ``publish``: the master's options ``peer``
and ``peer_run`` must allow them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import Master, MasterCall, MinionJob

#: Further arguments of ``cmd`` -> fields of MinionJob.
_MORE = {"batch": "batch", "subset": "subset", "failhard": "failhard", "expect_minions": "expected"}

_NOBODY = "this function needs a master: call it in an SLS for salt-run state.orchestrate"

#: Arguments that are sent to the minions with the publication.
_PASSED_ON = ("ret_config", "ret_kwargs")


def cmd(
    ctx: Context,
    tgt: str | Sequence[str],
    fun: str,
    arg: Sequence[object] = (),
    timeout: float | None = None,
    tgt_type: str = "glob",
    ret: str = "",
    kwarg: Mapping[str, object] | None = None,
    ssh: bool = False,
    **kwargs: Any,
) -> dict[str, object]:
    """Run a function on minions and return a map of minion id to a map with ret, retcode and jid.

    On a minion, return a map of minion id to a map with ret and out, as ``publish.full_data`` does. Only an
    orchestration may use the further arguments batch, subset, failhard, expect_minions, ret_config, ret_kwargs.
    """
    if ctx.master is None:
        return _of_minions(ctx, tgt, fun, arg, timeout, tgt_type, ret, kwarg, kwargs)
    unknown = sorted(set(kwargs) - set(_MORE) - set(_PASSED_ON) - {"_cmd_meta"})
    if ssh or unknown:
        raise InvocationError(f"not supported: {', '.join(unknown) or 'ssh'}")
    passed_on = {key: kwargs[key] for key in _PASSED_ON if kwargs.get(key)}
    more = {own: kwargs[key] for key, own in _MORE.items() if kwargs.get(key) is not None}
    more |= {"batch": str(more["batch"])} if "batch" in more else {}
    job = MinionJob(tgt, fun, tgt_type, tuple(arg), dict(kwarg or {}), ret, passed_on, timeout, **more)
    return dict(_master(ctx).ask(job, {"type": "function", "tgt": tgt, "name": fun}))


def cmd_iter(
    ctx: Context,
    tgt: str | Sequence[str],
    fun: str,
    arg: Sequence[object] = (),
    timeout: float | None = None,
    tgt_type: str = "glob",
    ret: str = "",
    kwarg: Mapping[str, object] | None = None,
    ssh: bool = False,
    **kwargs: object,
) -> list[dict[str, object]]:
    """Run a function on minions as ``saltutil.cmd`` does. Return a list with one map {minion id: map with ret, retcode
    and jid} for each minion.
    """
    returns = cmd(ctx, tgt, fun, arg, timeout, tgt_type, ret, kwarg, ssh, **kwargs)
    return [{minion: answer} for minion, answer in returns.items()]


def runner(
    ctx: Context,
    name: str,
    arg: Sequence[object] | None = None,
    kwarg: Mapping[str, object] | None = None,
    full_return: bool = False,
    **kwargs: object,
) -> object:
    """Run a runner on the master and return its value. With ``full_return``, return a map with ``return``, ``success``
    and ``jid``.

    On a minion it works as ``publish.runner``, and ``full_return`` is an error.
    """
    if ctx.master is None:
        _of_a_master(ctx)
        if full_return:
            raise InvocationError(
                "full_return works only in orchestrations: a minion gets only the value that the runner returned"
            )
        return ctx.call("publish.runner", name, _with_keywords(arg or (), {**(kwarg or {}), **_given(kwargs)}))
    (answer,) = _master(ctx).run([MasterCall(name, tuple(arg or ()), {**(kwarg or {}), **kwargs})])
    return answer if full_return else answer.get("return")


def wheel(ctx: Context, name: str, *args: object, **kwargs: object) -> object:
    """Run a wheel function on the master and return a map with ``return`` and ``success``. Raise CommandError unless an
    orchestration calls it.
    """
    if ctx.master is None:
        raise CommandError(
            "wheel functions change the master, and no minion may ask for them, on the master's machine neither: "
            "call it in an SLS for salt-run state.orchestrate, by the reactor, or use salt-key"
        )
    return _master(ctx).wheel(MasterCall(name, args, kwargs))


def _of_minions(
    ctx: Context,
    tgt: str | Sequence[str],
    fun: str,
    arg: Sequence[object],
    timeout: float | None,
    tgt_type: str,
    ret: str,
    kwarg: Mapping[str, object] | None,
    more: Mapping[str, object],
) -> dict[str, object]:
    """Run a function on minions through this minion's own master. Return a map of minion id to a map with ret and
    out.
    """
    _of_a_master(ctx)
    if unknown := sorted(_given(more)):
        raise InvocationError(f"not supported on a minion: {', '.join(unknown)}")
    seconds = {} if timeout is None else {"timeout": timeout}
    words = _with_keywords([arg] if isinstance(arg, str) else arg, kwarg or {})
    returns: dict[str, object] = ctx.call("publish.full_data", tgt, fun, words, tgt_type, ret, **seconds)
    return returns


def _given(kwargs: Mapping[str, object]) -> dict[str, object]:
    """Return the keyword arguments of a call without those that a publication adds (``__pub_...``)."""
    return {name: value for name, value in kwargs.items() if not name.startswith("__")}


def _with_keywords(arg: Sequence[object], kwarg: Mapping[str, object]) -> list[object]:
    return [*arg, *([{**kwarg, "__kwarg__": True}] if kwarg else [])]


def _of_a_master(ctx: Context) -> None:
    if ctx.opts.get("file_client") == "local":
        raise CommandError(_NOBODY)


def _master(ctx: Context) -> Master:
    if ctx.master is None:
        raise CommandError(_NOBODY)
    return ctx.master
