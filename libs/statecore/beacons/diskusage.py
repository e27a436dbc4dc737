"""File systems that are fuller than a percentage."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from statecore.beacon_config import listed, own, percent
from statecore.context import Context

#: How the kernel writes spaces and their kin in /proc/mounts.
_ESCAPED = re.compile(r"\\([0-7]{3})")


def validate(ctx: Context, config: Any) -> tuple[bool, str]:
    """Mount point, or a regular expression that mount points match -> 63%, or a number."""
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


def beacon(ctx: Context, config: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``{"diskusage": percent, "mount": mount point}`` for each that is reached."""
    found = []
    for entry in own(config):
        for pattern, limit in entry.items():
            matches = re.compile(pattern if pattern.endswith("$") else f"{pattern}$").match
            for mount, place in _mounts(ctx):
                if matches(mount) and (used := _used(place)) is not None and used >= percent(limit):
                    found.append({"diskusage": used, "mount": mount})
    return found


def _mounts(ctx: Context) -> Iterator[tuple[str, Path]]:
    """Mount points of the host, each by its own name and as we reach it."""
    for line in Path("/proc/self/mounts").read_text("utf-8", "surrogateescape").splitlines():
        place = Path(_ESCAPED.sub(lambda match: chr(int(match[1], 8)), line.split()[1]))
        if place.is_relative_to(ctx.host.root):
            yield f"/{place.relative_to(ctx.host.root)}".replace("/.", "/") if ctx.host.mounted else str(place), place


def _used(place: Path) -> float | None:
    try:
        info = os.statvfs(place)
    except OSError:
        # Unmounted meanwhile, or not for us to see.
        return None
    used = info.f_blocks - info.f_bfree
    whole = used + info.f_bavail
    # One without blocks (proc) is not full.
    return round(100 * used / whole, 1) if whole else 0.0
