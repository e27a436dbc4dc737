"""Requests by which a minion publishes jobs on other minions through its master, for the modules ``publish`` and
``saltutil``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from statecore.model import yaml
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError

log = logging.getLogger(__name__)

#: Seconds between two requests for the returns.
_PAUSE = 0.3


def returns_of_job(
    ctx: Context,
    tgt: object,
    fun: str,
    arg: object,
    tgt_type: str,
    returner: str,
    timeout: float | str,
    form: str,
    via_master: str | None = None,
    *,
    explain: bool = False,
) -> dict[str, Mapping[str, object]]:
    """Publish a job on other minions through the minion's master, and wait for it. Return {minion id: return}, each
    return a map with ret and out; {} if the master refuses.

    ``form``: the form of the returns that the master sends, "clean" or "full". ``via_master``: the address of one
    master of several. ``explain``: raise CommandError if the master refuses, and return retcode and jid too.
    """
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
        "arg": listed(arg),
        "tgt": tgt,
        "tgt_type": tgt_type,
        "ret": returner,
        "tmo": timeout,
        "form": form,
        "no_parse": ctx.opts.get("no_parse") or [],
    }
    if explain:
        load["explain"] = True
    job = ctx.minion.ask_master("minion_pub", load, master=via_master)
    if explain and isinstance(job, Mapping) and not job.keys() >= {"jid", "minions"}:
        why = job.get("refused") or f"its option peer does not let this minion call {fun} there"
        raise CommandError(f"The master refuses: {why}")
    if not isinstance(job, Mapping) or not job.get("minions"):
        return {}
    return _returns(ctx, str(job["jid"]), {str(minion) for minion in job["minions"]}, seconds, via_master, explain)


def _returns(
    ctx: Context, jid: str, expected: set[str], seconds: float, via_master: str | None, explain: bool
) -> dict[str, Mapping[str, object]]:
    """Wait for the returns of a job and return a map of minion id to that minion's return (a map). Stop when all
    ``expected`` minions returned, or after ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while True:
        answer = ctx.minion.ask_master(
            "pub_ret", {"jid": jid, **({"form": "full"} if explain else {})}, master=via_master
        )
        found = dict(answer) if isinstance(answer, Mapping) else {}
        if found.keys() >= expected or time.monotonic() > deadline:
            return found
        time.sleep(_PAUSE)


def listed(arg: object) -> list[object]:
    """Return the arguments of a published function as a list. Text that begins with "[" is read as a YAML list."""
    if isinstance(arg, str) and arg.strip().startswith("["):
        try:
            arg = yaml.load(arg)
        except yaml.YamlFault:
            return [arg]
    if arg is None or arg == "":
        return []
    return list(arg) if isinstance(arg, list | tuple) else [arg]
