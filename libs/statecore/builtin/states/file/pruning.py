"""Directories that hold nothing go; and what only Windows has."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from statecore.builtin.states.file.places import Refused, place_of, step
from statecore.model.context import Context
from statecore.model.errors import HostError
from statecore.model.types import Outcome, Plan

#: Seconds.
_DAY = 86400


def pruned(
    ctx: Context, name: str, recurse: bool = False, ignore_errors: bool = False, older_than: float | None = None
) -> Plan:
    """No such directory, if it holds nothing; what holds something stays, and fails.

    recurse
        directories below that hold nothing but such go, too
    ignore_errors
        those that hold something are no failure; means ``recurse``
    older_than
        days that a directory has not been changed for; a younger one stays
    """
    recurse = recurse or ignore_errors
    try:
        place = place_of(ctx, name, follow=False)
        if not place.is_dir():
            return Plan.unchanged(f"Directory {name} is not present")
        top = name.rstrip("/") or "/"
        going = _going(place, top, recurse, time.time() - older_than * _DAY if older_than else None)
    except (Refused, HostError) as error:
        return Plan.failed(str(error))
    if not going and ignore_errors:
        return Plan.unchanged(f"Directory {name} holds nothing that may be removed")
    if top not in going and not ignore_errors:
        return Plan.failed(f"Failed to remove directory {name}: it is not empty, or too young")
    changes = {"deleted": sorted(going) if recurse else name}

    def work() -> Outcome:
        told = ctx.call("file.rmdir", name, recurse=recurse, verbose=True, older_than=older_than)
        gone = {"deleted": sorted(told["deleted"]) if recurse else name} if told["deleted"] else {}
        if told["result"] or (ignore_errors and told["deleted"]):
            said = f"Recursively removed empty directories under {name}" if recurse else f"Removed directory {name}"
            return Outcome(said, gone)
        why = "".join(f"\n{path}: {reason}" for path, reason in told["errors"])
        return Outcome(f"Failed to remove directory {name}{why}", gone, ok=False)

    return Plan.change(f"Directory {name} is set for removal", (step(f"prune {name}", work),), changes)


def shortcut(ctx: Context, name: str, target: str, **kwargs: Any) -> Plan:
    """Windows has shortcuts; what a managed host has are links (``file.symlink``)."""
    return Plan.failed("Shortcuts are only supported on Windows")


def _going(place: Path, path: str, recurse: bool, before: float | None) -> list[str]:
    """Directories that would be removed, the deepest first."""
    found: list[str] = []
    left = False
    for entry in sorted(place.iterdir()):
        if not recurse or entry.is_symlink() or not entry.is_dir():
            left = True
            continue
        inner = f"{path.rstrip('/')}/{entry.name}"
        below = _going(entry, inner, recurse, before)
        found += below
        left = left or inner not in below
    # What goes out of a directory makes it young.
    young = before is not None and (bool(found) or place.stat().st_mtime >= before)
    return found if left or young else [*found, path]
