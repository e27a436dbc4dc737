"""The publish request of ``salt``, and the message that no minion matched."""

from __future__ import annotations

import os
import sys

from saltern.cli import report
from saltern.cli.context import CommandContext
from saltern.cli.request import SaltRequest
from saltern.kit.command.command_line import Exit
from saltern.kit.command.output.flags import Printer
from saltern.kit.config.master import ClientOptions
from saltern.kit.jobs.returns import NO_MATCH
from saltern.kit.links.answers import PublishAnswer
from saltern.kit.links.control import CONTROL_PATIENCE, ControlClient
from saltern.kit.process.tracing import Span


def publish_job(
    request: SaltRequest,
    control: ControlClient,
    options: ClientOptions,
    context: CommandContext,
    span: Span,
    tgt: object,
    tgt_type: str,
    fun: object,
    arg: list[object],
    jid: str = "",
) -> PublishAnswer:
    """Publish a job and return the master's answer. ``jid``: the job's JID; empty: the master names the job."""
    # Internal jobs (a ping before a batch) have no returner.
    own = fun == request.fun
    return control.call(
        "publish",
        timeout=CONTROL_PATIENCE,
        tgt=tgt,
        tgt_type=tgt_type,
        fun=fun,
        arg=arg,
        kwargs=request.kwargs if own else {key: value for key, value in request.kwargs.items() if key == "delimiter"},
        ret=request.flags.returner if own else "",
        user=context.user(options),
        request_id=os.urandom(16).hex(),
        **({"jid": jid} if jid else {}),
        **(_delivery(request) if own else {"no_replay": True}),
        **span.marked({}),
    )


def _delivery(request: SaltRequest) -> dict[str, object]:
    """Return the fields of the publish request that concern minions that are away.

    They are ``when_back`` (seconds) or ``no_replay``; the map is empty if neither option was given.
    """
    flags = request.flags
    return {"when_back": flags.when_back} if flags.when_back else {"no_replay": True} if flags.no_replay else {}


def no_match(printer: Printer, request: SaltRequest) -> int:
    """Print that no minion matched the target, and return the exit code of ``salt``."""
    printer.say(NO_MATCH)
    if request.tgt_type == "glob" and "," in request.tgt:
        sys.stderr.write(f"'{request.tgt}' is a glob; a list of ids is: salt -L {request.tgt}\n")
    sys.stderr.write(f"{report.NO_RETURN}\n")
    return Exit.NO_RETURN
