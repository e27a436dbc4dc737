"""Reads the configuration of one beacon: a list of one-entry maps, as in Salt.

Source: docs/execution.md#beacons
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: Options that are for the loop that runs beacons. The beacon itself does not get them.
HIDDEN = ("interval", "disable_during_state_run", "_beacon_name", "beacon_module", "enabled", "run_once")


def merged(config: object) -> dict[str, Any]:
    """Return all entries of a beacon's configuration in one map, later entries over earlier ones."""
    whole: dict[str, Any] = {}
    for entry in _entries(config):
        whole |= entry
    return whole


def own(config: object) -> list[dict[str, object]]:
    """List of the entries of a beacon's configuration without the options (``HIDDEN``) of the loop that runs beacons."""
    entries = ({key: value for key, value in each.items() if key not in HIDDEN} for each in _entries(config))
    return [entry for entry in entries if entry]


def _entries(config: object) -> Iterator[Mapping[str, object]]:
    yield from (each for each in (config if isinstance(config, list | tuple) else ()) if isinstance(each, Mapping))


def listed(config: object, name: str) -> str:
    """Return the error message for a configuration of the beacon ``name`` that is not a list of maps; "" if it is one."""
    if not isinstance(config, list):
        return f"Configuration for {name} beacon must be a list."
    if not all(isinstance(entry, Mapping) for entry in config):
        return f"Configuration for {name} beacon must be a list of dictionaries."
    return ""


def percent(value: object) -> float:
    """Return the number in a percentage of a beacon's configuration: ``63%``, ``63`` or ``"63"``. Raises ValueError."""
    try:
        return float(value if isinstance(value, int | float) else str(value).rstrip("%"))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{value!r} is not a percentage") from error
