"""Entries of the running dictionary, with Salt's keys.

Source: docs/state-system.md#running-dictionary
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from statecore.model import redaction
from statecore.model.types import RunningEntry


def ran(
    low: Mapping[str, object], outcome: Mapping[str, object], number: int, started: datetime, took: timedelta
) -> RunningEntry:
    """Return the running dictionary's entry for a state that was called.

    ``started`` is local time. The entry's ``duration`` is milliseconds with three decimals.
    """
    return {
        **outcome,
        "__sls__": low.get("__sls__"),
        "__run_num__": number,
        "start_time": started.time().isoformat(),
        "duration": milliseconds(took),
        "__id__": redaction.shown_id(low),
    }


def left_out(low: Mapping[str, object], result: bool, comment: str, number: int, now: datetime) -> RunningEntry:
    """Return the running dictionary's entry for a state that was not called because a requisite was not met."""
    return {
        "changes": {},
        "result": result,
        "duration": 0.0,
        "start_time": now.time().isoformat(),
        "comment": comment,
        "__state_ran__": False,
        "__run_num__": number,
        "__sls__": low.get("__sls__"),
        "__id__": redaction.shown_id(low),
        "name": redaction.shown_name(low),
    }


def milliseconds(delta: timedelta) -> float:
    """Return a timedelta as a number of milliseconds with three decimals."""
    return ((delta.days * 86400 + delta.seconds) * 1_000_000 + delta.microseconds) / 1000.0


def requisite_name(low: Mapping[str, object]) -> str:
    """Return "SLS.ID" of a chunk, for comments about failed requisites."""
    return f"{low.get('__sls__')}.{redaction.shown_id(low)}"


def text(comment: object) -> str:
    """Return a comment as one text: items of a list become lines, None becomes ""."""
    if isinstance(comment, list | tuple):
        return "\n".join(str(line) for line in comment)
    return str(comment) if comment is not None else ""
