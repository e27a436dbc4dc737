"""Jobs on other minions, and runners, asked for by a minion (Salt's ``publish`` module).

The master's options ``peer`` and ``peer_run`` say who may ask for what. A published function cannot publish.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

import yaml

from statecore.model.context import Context
from statecore.model.errors import InvocationError

log = logging.getLogger(__name__)

#: Seconds between two looks at what came back.
_PAUSE = 0.3


def publish(
    ctx: Context,
    tgt: Any,
    fun: str,
    arg: Any = None,
    tgt_type: str = "glob",
    returner: str = "",
    timeout: float = 5,
    via_master: str | None = None,
) -> dict[str, Any]:
    """Runs a function on minions: {minion: what it returned}, of those that returned within ``timeout`` seconds. ``{}`` where the
    master does not let this minion. ``arg`` is an argument or a list of them; ``name=value`` is one by name.

    CLI Example:

        salt web1 publish.publish '*' test.ping
        salt web1 publish.publish 'os:Debian' network.interfaces '' grain
        salt web1 publish.publish '*' test.kwarg arg="['cheese=spam', 'spam=cheese']"
    """
    found = _published(ctx, tgt, fun, arg, tgt_type, returner, timeout, "clean", via_master)
    return {minion: value.get("ret") for minion, value in found.items()}


def full_data(
    ctx: Context, tgt: Any, fun: str, arg: Any = None, tgt_type: str = "glob", returner: str = "", timeout: float = 5
) -> dict[str, Any]:
    """The same, with more than the value: {minion: {"ret": value, "out": outputter}}.

    CLI Example:

        salt web1 publish.full_data '*' cmd.run 'ls -la /tmp'
    """
    return _published(ctx, tgt, fun, arg, tgt_type, returner, timeout, "full", None)


def runner(ctx: Context, fun: str, arg: Any = None, timeout: float = 5) -> Any:
    """Runs a runner on the master; what it returned, ``{}`` where the master does not let this minion.

    CLI Example:

        salt web1 publish.runner manage.down
    """
    if ctx.opts.get("file_client") == "local":
        return "No access to master. If using salt-call with --local, please remove."
    load = {"fun": fun, "arg": _listed(arg), "tmo": timeout, "no_parse": ctx.opts.get("no_parse") or []}
    # A runner that is asked for twice would run twice.
    return ctx.minion.ask_master("minion_runner", load, once=True)


def _published(
    ctx: Context,
    tgt: Any,
    fun: str,
    arg: Any,
    tgt_type: str,
    returner: str,
    timeout: Any,
    form: str,
    via_master: str | None,
) -> dict[str, Any]:
    if ctx.opts.get("file_client") == "local":
        log.error("publish.* needs a master, and there is none; no command was sent")
        return {}
    if fun.startswith("publish."):
        log.info("%s cannot be published: minions would command each other in circles", fun)
        return {}
    try:
        seconds = float(timeout)
    except (TypeError, ValueError) as error:
        raise InvocationError(f"timeout is a number of seconds, not {timeout!r}") from error
    load = {
        "fun": fun,
        "arg": _listed(arg),
        "tgt": tgt,
        "tgt_type": tgt_type,
        "ret": returner,
        "tmo": timeout,
        "form": form,
        "no_parse": ctx.opts.get("no_parse") or [],
    }
    job = ctx.minion.ask_master("minion_pub", load, master=via_master)
    if not isinstance(job, Mapping) or not job.get("minions"):
        return {}
    return _returns(ctx, str(job["jid"]), {str(minion) for minion in job["minions"]}, seconds, via_master)


def _returns(ctx: Context, jid: str, expected: set[str], seconds: float, via_master: str | None) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    while True:
        answer = ctx.minion.ask_master("pub_ret", {"jid": jid}, master=via_master)
        found = dict(answer) if isinstance(answer, Mapping) else {}
        if found.keys() >= expected or time.monotonic() > deadline:
            return found
        time.sleep(_PAUSE)


def _listed(arg: Any) -> list[Any]:
    """Arguments as a list; a text may be one, as YAML writes it."""
    if isinstance(arg, str) and arg.strip().startswith("["):
        try:
            arg = yaml.safe_load(arg)
        except (yaml.YAMLError, ValueError):
            return [arg]
    if arg is None or arg == "":
        return []
    return list(arg) if isinstance(arg, list | tuple) else [arg]
