"""Jobs on other minions, and runners on the master, started by a minion: Salt's ``publish`` execution module.

The master's options ``peer`` and ``peer_run`` list the functions that each minion may start. A published function
cannot itself be of the ``publish`` module.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

import yaml

from statecore.model.context import Context
from statecore.model.errors import InvocationError

log = logging.getLogger(__name__)

#: Seconds between two requests for the returns.
_PAUSE = 0.3


def publish(
    ctx: Context,
    tgt: object,
    fun: str,
    arg: object = None,
    tgt_type: str = "glob",
    returner: str = "",
    timeout: float = 5,
    via_master: str | None = None,
) -> dict[str, object]:
    """Run a function on minions through the master and return a map of minion id to return value.

    The map holds the minions that returned within ``timeout`` seconds. It is empty when the master's option ``peer``
    does not allow the call. ``arg`` is one argument or a list of arguments; ``name=value`` is a keyword argument.

    CLI Example:

        salt web1 publish.publish '*' test.ping
        salt web1 publish.publish 'os:Debian' network.interfaces '' grain
        salt web1 publish.publish '*' test.kwarg arg="['cheese=spam', 'spam=cheese']"
    """
    found = _published(ctx, tgt, fun, arg, tgt_type, returner, timeout, "clean", via_master)
    return {minion: value.get("ret") for minion, value in found.items()}


def full_data(
    ctx: Context,
    tgt: object,
    fun: str,
    arg: object = None,
    tgt_type: str = "glob",
    returner: str = "",
    timeout: float = 5,
) -> dict[str, Mapping[str, object]]:
    """Run a function on minions and return a map of minion id to {"ret": return value, "out": outputter}. The arguments
    are those of ``publish.publish``.

    CLI Example:

        salt web1 publish.full_data '*' cmd.run 'ls -la /tmp'
    """
    return _published(ctx, tgt, fun, arg, tgt_type, returner, timeout, "full", None)


def runner(ctx: Context, fun: str, arg: object = None, timeout: float = 5) -> object:
    """Run a runner on the master and return its value. Return {} if the master's option ``peer_run`` does not
    allow it.

    CLI Example:

        salt web1 publish.runner manage.down
    """
    if ctx.opts.get("file_client") == "local":
        return "No access to master. If using salt-call with --local, please remove."
    load = {"fun": fun, "arg": _listed(arg), "tmo": timeout, "no_parse": ctx.opts.get("no_parse") or []}
    # Sent once only: a repeated request would run the runner twice.
    return ctx.minion.ask_master("minion_runner", load, once=True)


def _published(
    ctx: Context,
    tgt: object,
    fun: str,
    arg: object,
    tgt_type: str,
    returner: str,
    timeout: float | str,
    form: str,
    via_master: str | None,
) -> dict[str, Mapping[str, object]]:
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


def _returns(
    ctx: Context, jid: str, expected: set[str], seconds: float, via_master: str | None
) -> dict[str, Mapping[str, object]]:
    """Wait for the returns of a job and return a map of minion id to that minion's return (a map). Stop when all
    ``expected`` minions returned, or after ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while True:
        answer = ctx.minion.ask_master("pub_ret", {"jid": jid}, master=via_master)
        found = dict(answer) if isinstance(answer, Mapping) else {}
        if found.keys() >= expected or time.monotonic() > deadline:
            return found
        time.sleep(_PAUSE)


def _listed(arg: object) -> list[object]:
    """Return the arguments of a published function as a list. Text that begins with "[" is read as a YAML list."""
    if isinstance(arg, str) and arg.strip().startswith("["):
        try:
            arg = yaml.safe_load(arg)
        except (yaml.YAMLError, ValueError):
            return [arg]
    if arg is None or arg == "":
        return []
    return list(arg) if isinstance(arg, list | tuple) else [arg]
