"""Jobs on other minions, and runners on the master, started by a minion: Salt's ``publish`` execution module.

The master's options ``peer`` and ``peer_run`` list the functions that each minion may start. A published function
cannot itself be of the ``publish`` module.
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.system.master_requests import listed, returns_of_job


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
    found = returns_of_job(ctx, tgt, fun, arg, tgt_type, returner, timeout, "clean", via_master)
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
    return returns_of_job(ctx, tgt, fun, arg, tgt_type, returner, timeout, "full", None)


def runner(ctx: Context, fun: str, arg: object = None, timeout: float = 5) -> object:
    """Run a runner on the master and return its value. Return {} if the master's option ``peer_run`` does not
    allow it.

    CLI Example:

        salt web1 publish.runner manage.down
    """
    if ctx.opts.get("file_client") == "local":
        return "No access to master. If using salt-call with --local, please remove."
    load = {"fun": fun, "arg": listed(arg), "tmo": timeout, "no_parse": ctx.opts.get("no_parse") or []}
    # Sent once only: a repeated request would run the runner twice.
    return ctx.minion.ask_master("minion_runner", load, once=True)
