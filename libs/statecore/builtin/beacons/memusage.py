"""More memory in use than a percentage."""

from __future__ import annotations

from typing import Any

from statecore.model.context import Context
from statecore.system.scheduling.beacon_config import listed, merged, percent


def validate(ctx: Context, config: Any) -> tuple[bool, str]:
    """``percent``: 63%, or a number."""
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


def beacon(ctx: Context, config: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``{"memusage": percent}`` while it is reached: what is not available, of all there is."""
    info = ctx.call("status.meminfo")
    total, available = (int(info[name]["value"]) for name in ("MemTotal", "MemAvailable"))
    used = round(100 * (total - available) / total, 1)
    return [{"memusage": used}] if used >= percent(merged(config)["percent"]) else []
