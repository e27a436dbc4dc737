"""Salt's ``process`` state: kills processes of the host."""

from __future__ import annotations

import os
from collections.abc import Iterator

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import Outcome, Plan, Step

_TERM = 15


def absent(ctx: Context, name: str, user: str | None = None, signal: object = None) -> Plan:
    """Kill the processes of the host whose command line contains ``name``. Nothing happens if there are none.

    This process and its parents are never killed, although the command that applies the state may contain the text.

    user
        only processes of this user
    signal
        signal to send; default TERM
    """
    try:
        found = _others(ctx, name, user)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if not found:
        return Plan.unchanged("No matching processes running")

    def work() -> Outcome:
        try:
            pids = _others(ctx, name, user)
            killed = [pid for pid in pids if ctx.call("ps.kill_pid", pid, signal or _TERM)]
        except (CommandError, InvocationError) as error:
            return Outcome(str(error), ok=False)
        if not killed:
            return Outcome("No matching processes running")
        return Outcome(f"Killed {len(killed)} processes", {"killed": killed})

    return Plan.change(f"{len(found)} processes will be killed", [Step(f"kill {name}", work)])


def _others(ctx: Context, name: str, user: str | None) -> list[int]:
    own = {os.getpid(), *_ancestors(ctx)}
    return [pid for pid in ctx.call("ps.pgrep", name, user=user, full=True) or () if pid not in own]


def _ancestors(ctx: Context) -> Iterator[int]:
    """Yield the process ids of this process's parents, as far as the host's /proc shows them."""
    pid = os.getppid()
    while pid > 1:
        yield pid
        try:
            pid = int(ctx.call("ps.proc_info", pid, ["ppid"])["ppid"])
        except CommandError:
            return
