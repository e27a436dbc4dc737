"""Processes that run, or do not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from statecore.beacon_config import listed, merged
from statecore.context import Context

#: The kernel keeps so many bytes of a name.
_CUT = 15


def validate(ctx: Context, config: Any) -> tuple[bool, str]:
    """``processes``: name -> running or stopped."""
    if fault := listed(config, "ps"):
        return False, fault
    whole = merged(config)
    if "processes" not in whole:
        return False, "Configuration for ps beacon requires processes."
    if not isinstance(whole["processes"], Mapping):
        return False, "Processes for ps beacon must be a dictionary."
    return True, "Valid beacon configuration"


def beacon(ctx: Context, config: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``{name: "Running"}`` of each that is to be told while it runs, ``{name: "Stopped"}`` while it does not."""
    running = _names()
    found: list[dict[str, Any]] = []
    for name, wanted in merged(config)["processes"].items():
        if wanted == "running":
            found += [{name: "Running"}] if name in running else []
        elif name not in running:
            found.append({name: "Stopped" if wanted == "stopped" else False})
    return found


def _names() -> set[str]:
    names = set()
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            name = (directory / "comm").read_text("utf-8", "replace").rstrip("\n")
            if len(name) == _CUT:
                words = (directory / "cmdline").read_bytes().split(b"\0")
                whole = Path(words[0].decode("utf-8", "replace")).name
                name = whole if whole.startswith(name) else name
        except OSError:
            # It has ended meanwhile.
            continue
        names.add(name)
    return names
