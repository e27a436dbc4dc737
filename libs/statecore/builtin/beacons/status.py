"""Beacon ``status``: fires one event at each check, with values that functions of the execution module ``status``
return.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.scheduling.beacon_config import own

_ALL = {name: ["all"] for name in ("loadavg", "cpustats", "meminfo", "vmstats", "time")}


def validate(ctx: Context, config: object) -> tuple[bool, str]:
    """Return (True if the configuration of the beacon ``status`` is valid, comment). It maps functions of the execution
    module ``status`` to lists of wanted items, or to ``all``.
    """
    if not isinstance(config, list):
        return False, "Configuration for status beacon must be a list."
    functions = [name for entry in own(config) for name in entry]
    unknown = [name for name in functions if f"status.{name}" not in ctx.functions]
    if unknown:
        return False, f"Configuration for status beacon: there is no status.{unknown[0]}."
    return True, "Valid beacon configuration"


def beacon(ctx: Context, config: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return a list with one event ``{"data": {function of the module status: {item: value}}}``. The event's tag is the
    time in UTC.
    """
    data: dict[str, object] = {}
    for entry in own(config) or [{**_ALL}]:
        for name, wanted in entry.items():
            try:
                data[name] = _items(ctx.call(f"status.{name}"), wanted if isinstance(wanted, list) else [wanted])
            except CommandError:
                data[name] = {}
    return [{"tag": datetime.now(UTC).replace(tzinfo=None).isoformat(), "data": data}]


def _items(data: Any, wanted: list[Any]) -> object:
    if "all" in wanted:
        return data
    try:
        return {item: data[item] if isinstance(data, dict) else data[int(item)] for item in wanted}
    except (KeyError, IndexError, TypeError, ValueError) as error:
        return f"Status beacon is incorrectly configured: {error}"
