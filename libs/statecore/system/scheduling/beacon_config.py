"""The configuration of one beacon: a list of one-entry maps, as Salt takes it, in the forms that beacons look at it in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: Options that are for who runs beacons, not for the beacon.
HIDDEN = ("interval", "disable_during_state_run", "_beacon_name", "beacon_module", "enabled", "run_once")


def merged(config: Sequence[Any]) -> dict[str, Any]:
    """All entries in one map, the later over the earlier."""
    whole: dict[str, Any] = {}
    for entry in config:
        if isinstance(entry, Mapping):
            whole |= entry
    return whole


def own(config: Sequence[Any]) -> list[dict[str, Any]]:
    """The entries without the options that are not the beacon's."""
    entries = (
        {key: value for key, value in each.items() if key not in HIDDEN} for each in config if isinstance(each, Mapping)
    )
    return [entry for entry in entries if entry]


def listed(config: Any, name: str) -> str:
    """What is wrong with a configuration that is no list of maps; "" when it is one."""
    if not isinstance(config, list):
        return f"Configuration for {name} beacon must be a list."
    if not all(isinstance(entry, Mapping) for entry in config):
        return f"Configuration for {name} beacon must be a list of dictionaries."
    return ""


def percent(value: Any) -> float:
    """``63%``, ``63`` or ``"63"``. Raises ValueError that names it."""
    try:
        return float(value.rstrip("%") if isinstance(value, str) else value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{value!r} is no percentage") from error
