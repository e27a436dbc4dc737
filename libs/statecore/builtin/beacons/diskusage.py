"""Beacon ``diskusage``: fires an event for each file system of the host whose used share reaches a percentage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from statecore.host.rooted_path import file_system
from statecore.model.context import Context
from statecore.system.hostfiles import mount_table
from statecore.system.scheduling.beacon_config import listed, own, percent


def validate(ctx: Context, config: object) -> tuple[bool, str]:
    """Return (True if the configuration of the beacon ``diskusage`` is valid, comment). A configuration is a list of
    maps from mount point, or regular expression for mount points, to a percentage such as ``63%``.
    """
    if fault := listed(config, "diskusage"):
        return False, fault
    for entry in own(config):
        for mount, limit in entry.items():
            try:
                re.compile(mount)
                percent(limit)
            except (ValueError, TypeError, re.error) as error:
                return False, f"Configuration for diskusage beacon: {mount}: {error}"
    return True, "Valid beacon configuration"


def beacon(ctx: Context, config: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return a list of events ``{"diskusage": percent, "mount": mount point}``, one for each file system that reaches
    its limit.
    """
    found = []
    for entry in own(config):
        for pattern, limit in entry.items():
            matches = re.compile(pattern if pattern.endswith("$") else f"{pattern}$").match
            for mount, place in _mounts(ctx):
                if matches(mount) and (used := _used(place)) is not None and used >= percent(limit):
                    found.append({"diskusage": used, "mount": mount})
    return found


def _mounts(ctx: Context) -> Iterator[tuple[str, Path]]:
    """Yield (mount point as the host names it, real path for this process) of each file system of the host."""
    for mounted in mount_table.parse(ctx.host.mount_table()).values():
        yield mounted.point, ctx.host.path(mounted.point)


def _used(place: Path) -> float | None:
    try:
        info = file_system(place)
    except OSError:
        # The file system was unmounted meanwhile, or must not be inspected.
        return None
    used = info.f_blocks - info.f_bfree
    whole = used + info.f_bavail
    # A file system without blocks, such as proc, is never full.
    return round(100 * used / whole, 1) if whole else 0.0
