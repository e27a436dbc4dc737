"""Beacon ``load``: fires an event when a load average of the host is outside its limits."""

from __future__ import annotations

import os
from collections.abc import Mapping

from statecore.model.context import Context
from statecore.system.scheduling.beacon_config import listed, merged

_AVERAGES = ("1m", "5m", "15m")
_VALID = (True, "Valid beacon configuration")


def validate(ctx: Context, config: object) -> tuple[bool, str]:
    """Return (True if the configuration of the beacon ``load`` is valid, comment). Its ``averages`` maps 1m, 5m or 15m
    to [lowest, highest] load; ``emitatstartup`` and ``onchangeonly`` are booleans.
    """
    if fault := listed(config, "load"):
        return False, fault
    whole = merged(config)
    for option in ("emitatstartup", "onchangeonly"):
        if not isinstance(whole.get(option, True), bool):
            return False, f"Configuration for load beacon option {option} must be a boolean."
    averages = whole.get("averages")
    if averages is None:
        return False, "Averages configuration is required for load beacon."
    if not isinstance(averages, Mapping) or not any(name in averages for name in _AVERAGES):
        return False, "Averages configuration for load beacon must contain 1m, 5m or 15m items."
    for name in _AVERAGES:
        bounds = averages.get(name, [0, 0])
        if not isinstance(bounds, list):
            return False, "Averages configuration for load beacon: 1m, 5m and 15m items must be a list of two items."
        if len(bounds) != 2:
            return False, "Configuration for load beacon: 1m, 5m and 15m items must be a list of two items."
        try:
            [float(bound) for bound in bounds]
        except (TypeError, ValueError):
            return False, f"Averages configuration for load beacon: {name} must be two numbers, not {bounds!r}."
    return _VALID


def beacon(ctx: Context, config: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return a list with one event that has all load averages if one of them is outside its limits; else an empty list.

    Option ``onchangeonly``: fire only at the check in which an average leaves its limits.
    """
    whole = merged(config)
    now = dict(zip(_AVERAGES, os.getloadavg(), strict=True))
    bounds = {name: (float(low), float(high)) for name, (low, high) in whole["averages"].items() if name in now}
    if not whole.get("onchangeonly", False):
        outside = any(not low <= now[name] <= high for name, (low, high) in bounds.items())
        return [dict(now)] if outside else []
    key = f"{whole.get('_beacon_name', 'load')}.last"
    last = ctx.scratch.get(key)
    ctx.scratch[key] = now
    if last is None:
        # As in Salt, the first check only stores the averages.
        return []
    crossed = any(
        (now[name] > high > last[name]) or (now[name] < low < last[name]) for name, (low, high) in bounds.items()
    )
    return [dict(now)] if crossed else []
