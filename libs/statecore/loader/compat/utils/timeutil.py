"""``salt.utils.timeutil``."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_CLOCKS = ("%H%M", "%Hh%M", "%I%p", "%I:%M%p", "%I:%M %p")


def utcnow() -> datetime:
    """Return the current UTC time, without a time zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def utcfromtimestamp(timestamp: float) -> datetime:
    """Return the UTC time of a Unix timestamp, without a time zone."""
    return datetime.fromtimestamp(timestamp, UTC).replace(tzinfo=None)


def timestring_map(val: str | float | None) -> float | None:
    """Return the seconds of ``90``, ``1.5h`` or ``2d``; None for None. Raise ValueError."""
    if val is None:
        return None
    try:
        return float(val)
    except (TypeError, ValueError):
        pass
    if not isinstance(val, str):
        raise ValueError("Expected integer, float or time string")
    if not re.match(r"^\d+(?:\.\d+)?[smhd]$", val):
        raise ValueError(f"Invalid time string format: {val}")
    return float(val[:-1]) * _SECONDS[val[-1]]


def get_timestamp_at(time_in: object = None, time_at: str | float | None = None) -> float | None:
    """Return the timestamp after a duration (minutes, ``2h30``, ``1:15``) or at a time (``22h30``). Raise ValueError."""
    if time_in:
        hours, _, minutes = str(time_in).replace("h", ":").replace("m", "").rpartition(":")
        moment = utcnow() + timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        return time.mktime(moment.timetuple())
    if not time_at:
        return None
    if isinstance(time_at, int | float):
        return time_at
    for clock in _CLOCKS:
        try:
            return time.mktime(datetime.strptime(time_at, clock).timetuple())
        except ValueError:
            continue
    raise ValueError(f"{time_at} does not match any of the accepted formats: {', '.join(_CLOCKS)}")


def get_time_at(time_in: object = None, time_at: str | float | None = None, out_fmt: str = "%Y-%m-%dT%H:%M:%S") -> str:
    """``get_timestamp_at`` in a format, in local time."""
    return time.strftime(out_fmt, time.localtime(get_timestamp_at(time_in, time_at)))
