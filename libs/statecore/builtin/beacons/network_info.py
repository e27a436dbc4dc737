"""Beacon ``network_info``: fires an event when a counter of a network interface reaches a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from statecore.model.context import Context
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import processes
from statecore.system.scheduling.beacon_config import listed, merged

#: Counter -> its column in /proc/net/dev, counted from 0 after the interface.
_COLUMNS: Mapping[str, int] = {
    "bytes_sent": 8,
    "bytes_recv": 0,
    "packets_sent": 9,
    "packets_recv": 1,
    "errin": 2,
    "errout": 10,
    "dropin": 3,
    "dropout": 11,
}

_REACHED: Mapping[str, Callable[[int, int], bool]] = {
    "equal": lambda value, wanted: value == wanted,
    "greater": lambda value, wanted: value > wanted,
}


def validate(ctx: Context, config: object) -> tuple[bool, str]:
    """Return (True if the configuration of the beacon ``network_info`` is valid, comment). ``interfaces`` maps each
    interface to ``type`` ("equal" or "greater") and to one limit for each counter name.
    """
    if fault := listed(config, "network_info"):
        return False, fault
    interfaces = merged(config).get("interfaces", {})
    if not isinstance(interfaces, Mapping) or not all(isinstance(one, Mapping) for one in interfaces.values()):
        return False, "Configuration for network_info beacon must be a list of dictionaries."
    for options in interfaces.values():
        if not any(name in ("type", *_COLUMNS) for name in options):
            return False, "Invalid configuration item in Beacon configuration."
        if options.get("type", "equal") not in _REACHED:
            return False, f"Configuration for network_info beacon: type is equal or greater, not {options['type']!r}."
        for name in _COLUMNS:
            if not str(options.get(name, 0)).isdecimal():
                return False, f"Configuration for network_info beacon: {name} must be a number, not {options[name]!r}."
    return True, "Valid beacon configuration"


def beacon(ctx: Context, config: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return a list of events ``{"interface": name, "network_info": {counter: number}}``, one for each network
    interface of which one counter reaches its limit.
    """
    counters = _counters(ctx)
    found = []
    for name, options in merged(config).get("interfaces", {}).items():
        reached = _REACHED[options.get("type", "equal")]
        if name in counters and any(
            reached(counters[name][counter], int(options[counter])) for counter in _COLUMNS if counter in options
        ):
            found.append({"interface": name, "network_info": counters[name]})
    return found


def _counters(ctx: Context) -> dict[str, dict[str, int]]:
    table = processes.text(ctx.host, f"{processes.network(ctx.host)}/dev")
    rows = (line.partition(":") for line in lines_of(table)[2:])
    return {
        name.strip(): {counter: int(values.split()[column]) for counter, column in _COLUMNS.items()}
        for name, _, values in rows
    }
