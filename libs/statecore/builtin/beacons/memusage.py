"""Beacon ``memusage``: fires an event when the used memory of the host reaches a percentage."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.system.scheduling.beacon_config import listed, merged, percent


def validate(ctx: Context, config: object) -> tuple[bool, str]:
    """Return (True if the configuration of the beacon ``memusage`` is valid, comment). ``percent`` is a limit such as
    ``63%``.
    """
    if fault := listed(config, "memusage"):
        return False, fault
    whole = merged(config)
    if "percent" not in whole:
        return False, "Configuration for memusage beacon requires percent."
    try:
        percent(whole["percent"])
    except ValueError as error:
        return False, f"Configuration for memusage beacon: percent: {error}"
    return True, "Valid beacon configuration"


def beacon(ctx: Context, config: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return a list with the event ``{"memusage": percent}`` if the used memory (total minus available) reaches the
    configured limit; else an empty list.
    """
    info = ctx.call("status.meminfo")
    total, available = (int(info[name]["value"]) for name in ("MemTotal", "MemAvailable"))
    used = round(100 * (total - available) / total, 1)
    return [{"memusage": used}] if used >= percent(merged(config)["percent"]) else []
