"""Beacon ``ps``: fires an event for each listed process of the host that runs, or that does not run."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.system.hostfiles import processes
from statecore.system.scheduling.beacon_config import listed, merged


def validate(ctx: Context, config: object) -> tuple[bool, str]:
    """Return (True if the configuration of the beacon ``ps`` is valid, comment). ``processes`` maps each process name
    to ``running`` or ``stopped``.
    """
    if fault := listed(config, "ps"):
        return False, fault
    whole = merged(config)
    if "processes" not in whole:
        return False, "Configuration for ps beacon requires processes."
    if not isinstance(whole["processes"], Mapping):
        return False, "Processes for ps beacon must be a dictionary."
    return True, "Valid beacon configuration"


def beacon(ctx: Context, config: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return a list of events ``{process name: "Running"}`` or ``{process name: "Stopped"}``, one for each process that
    has the status that the configuration names.
    """
    running = {each.name for each in processes.all_of(ctx.host)}
    found: list[dict[str, object]] = []
    for name, wanted in merged(config)["processes"].items():
        if wanted == "running":
            found += [{name: "Running"}] if name in running else []
        elif name not in running:
            found.append({name: "Stopped" if wanted == "stopped" else False})
    return found
