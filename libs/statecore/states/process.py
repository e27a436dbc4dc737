"""Processes as states (Salt's ``process`` state)."""

from __future__ import annotations

from typing import Any

from statecore.context import Context
from statecore.errors import CommandError, InvocationError
from statecore.types import Outcome, Plan, Step


def absent(ctx: Context, name: str, user: str | None = None, signal: Any = None) -> Plan:
    """No process of the host has the text in its command line; those that have get a signal, TERM where none is named.

    user
        only this user's processes
    """
    own = {"user": user, "full": True}
    try:
        found = ctx.call("ps.pgrep", name, **own)
    except (CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    if not found:
        return Plan.unchanged("No matching processes running")

    def work() -> Outcome:
        try:
            killed = ctx.call("ps.pkill", name, **own, **({"signal": signal} if signal else {}))
        except (CommandError, InvocationError) as error:
            return Outcome(str(error), ok=False)
        if not killed:
            return Outcome("No matching processes running")
        return Outcome(f"Killed {len(killed['killed'])} processes", killed)

    return Plan.change(f"{len(found)} processes will be killed", [Step(f"kill {name}", work)])
