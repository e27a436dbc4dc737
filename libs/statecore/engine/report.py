"""Entries of the running dictionary, with Salt's keys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from statecore.model.types import RunningEntry


def ran(
    low: Mapping[str, Any], outcome: Mapping[str, Any], number: int, started: datetime, took: timedelta
) -> RunningEntry:
    """The entry of a state that was called. ``started`` is local time; duration is in milliseconds, to the microsecond."""
    return {
        **outcome,
        "__sls__": low.get("__sls__"),
        "__run_num__": number,
        "start_time": started.time().isoformat(),
        "duration": milliseconds(took),
        "__id__": low["__id__"],
    }


def left_out(low: Mapping[str, Any], result: bool, comment: str, number: int, now: datetime) -> RunningEntry:
    """The entry of a state that its requisites kept from running."""
    return {
        "changes": {},
        "result": result,
        "duration": 0.0,
        "start_time": now.time().isoformat(),
        "comment": comment,
        "__state_ran__": False,
        "__run_num__": number,
        "__sls__": low.get("__sls__"),
        "__id__": low["__id__"],
        "name": low["name"],
    }


def milliseconds(delta: timedelta) -> float:
    """A duration as Salt shows it."""
    return ((delta.days * 86400 + delta.seconds) * 1_000_000 + delta.microseconds) / 1000.0


def requisite_name(low: Mapping[str, Any]) -> str:
    """How a failed requisite is named in a comment: SLS and ID."""
    return f"{low.get('__sls__')}.{low['__id__']}"


def text(comment: Any) -> str:
    """A comment as one string; a list's items become lines."""
    if isinstance(comment, list | tuple):
        return "\n".join(str(line) for line in comment)
    return str(comment) if comment is not None else ""
