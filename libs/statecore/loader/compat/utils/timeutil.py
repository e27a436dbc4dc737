"""``salt.utils.timeutil`` for users' modules: times and durations."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_CLOCKS = ("%H%M", "%Hh%M", "%I%p", "%I:%M%p", "%I:%M %p")


def utcnow() -> datetime:
    """Return the current time in UTC as a datetime without a time zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def utcfromtimestamp(timestamp: float) -> datetime:
    """Return the time in UTC of a Unix timestamp as a datetime without a time zone."""
    return datetime.fromtimestamp(timestamp, UTC).replace(tzinfo=None)


def timestring_map(val: str | float | None) -> float | None:
    """Return the seconds of a duration such as ``90``, ``1.5h`` or ``2d``; None for None. Raise ValueError for other
    texts.
    """
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
    """Return the Unix timestamp of a future time: after the duration ``time_in``, or at the clock time ``time_at``;
    else None.

    ``time_in`` is a number of minutes, ``2h30`` or ``1:15``; ``time_at`` is a text such as ``22h30``, or a timestamp.
    Raise ValueError for other texts.
    """
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
    """Return a future time as text in the format ``out_fmt``, in local time. The arguments are those of
    ``get_timestamp_at``.
    """
    return time.strftime(out_fmt, time.localtime(get_timestamp_at(time_in, time_at)))
