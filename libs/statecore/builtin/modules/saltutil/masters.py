"""Functions of ``saltutil`` that run jobs, runners and wheel functions on the master, for orchestrations.

On a minion they are requested from its master, as by the module ``publish``. The master's option ``peer`` must allow the
job, ``peer_run`` the runner or, by a row ``@wheel``, the wheel function. A refusal names the row that would allow it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import Master, MasterCall, MinionJob
from statecore.system.master_requests import returns_of_job

#: Further arguments of ``cmd`` -> fields of MinionJob.
_MORE = {"batch": "batch", "subset": "subset", "failhard": "failhard", "expect_minions": "expected"}

#: Seconds to wait for returns. A runner's request has it too, as Salt's minion sends it.
_TIMEOUT = 5

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

    On a minion the master's option ``peer`` must allow the job. Only an orchestration may use the further arguments
    batch, subset, failhard, expect_minions, ret_config, ret_kwargs.
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

    On a minion the master's option ``peer_run`` must allow the runner.
    """
    if ctx.master is None:
        words = _with_keywords(arg or (), {**(kwarg or {}), **_given(kwargs)})
        return _of_a_runner(ctx, name, words, full_return)
    (answer,) = _master(ctx).run([MasterCall(name, tuple(arg or ()), {**(kwarg or {}), **kwargs})])
    return answer if full_return else answer.get("return")


def wheel(ctx: Context, name: str, *args: object, **kwargs: object) -> object:
    """Run a wheel function on the master and return a map with ``return`` and ``success``.

    On a minion the master's option ``peer_run`` must allow it by a row such as ``{'@wheel': [key.list_all]}``.
    """
    if ctx.master is None:
        return _of_a_wheel(ctx, name, args, _given(kwargs))
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
    """Run a function on minions through this minion's own master. Return a map of minion id to a map with ret, retcode,
    jid and out. Raise CommandError if the master refuses.
    """
    _of_a_master(ctx)
    if unknown := sorted(_given(more)):
        raise InvocationError(f"not supported on a minion: {', '.join(unknown)}")
    words = _with_keywords([arg] if isinstance(arg, str) else arg, kwarg or {})
    seconds = _TIMEOUT if timeout is None else timeout
    return dict(returns_of_job(ctx, tgt, fun, words, tgt_type, ret, seconds, "full", explain=True))


def _of_a_runner(ctx: Context, name: str, words: Sequence[object], full_return: bool) -> object:
    """Run a runner through this minion's own master. Return its value, or a map with return, success and jid. Raise
    CommandError if the master refuses.
    """
    _of_a_master(ctx)
    load = {
        "fun": name,
        "arg": list(words),
        "tmo": _TIMEOUT,
        "no_parse": ctx.opts.get("no_parse") or [],
        "form": "full",
    }
    answer = ctx.minion.ask_master("minion_runner", load, once=True)
    if not isinstance(answer, Mapping) or answer.get("form") != "full":
        # A master of Salt's own: it sends the value alone, and an empty map if it refuses.
        return {"return": answer, "success": True} if full_return else answer
    _raise_refusal(answer)
    return {key: answer[key] for key in ("return", "success", "jid")} if full_return else answer["return"]


def _of_a_wheel(ctx: Context, name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
    """Run a wheel function through this minion's own master. Return a map with return and success. Raise CommandError if
    the master refuses.
    """
    _of_a_master(ctx)
    load = {"fun": name, "arg": list(args), "kwarg": dict(kwargs), "explain": True}
    answer = ctx.minion.ask_master("minion_wheel", load, once=True)
    if not isinstance(answer, Mapping) or not answer:
        raise CommandError(f"the master does not run wheel functions for minions, and did not run {name}: use salt-key")
    _raise_refusal(answer)
    return dict(answer)


def _raise_refusal(answer: Mapping[str, object]) -> None:
    if "refused" in answer:
        raise CommandError(f"The master refuses: {answer['refused']}")


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
