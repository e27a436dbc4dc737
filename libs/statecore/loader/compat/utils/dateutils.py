"""``salt.utils.dateutils`` for users' modules: times and durations."""

from __future__ import annotations

import datetime


def date_cast(date: datetime.datetime | float | str | None) -> datetime.datetime:
    """Return a datetime in local time, from a datetime, from seconds since 1970 (number or text), or for None the
    current time.

    Raise RuntimeError for other values.
    """
    if date is None:
        return datetime.datetime.now()
    if isinstance(date, datetime.datetime):
        return date
    try:
        return datetime.datetime.fromtimestamp(float(date))
    except (TypeError, ValueError, OverflowError, OSError):
        raise RuntimeError(f"Unable to parse {date}. Consider installing timelib") from None


def strftime(date: datetime.datetime | float | str | None = None, format: str = "%Y-%m-%d") -> str:
    """Return a time as text in the given format. ``date`` is a datetime, seconds since 1970 (number or text), or None
    for now.
    """
    return date_cast(date).strftime(format)


def total_seconds(td: datetime.timedelta) -> float:
    """Return the seconds of a timedelta."""
    return td.total_seconds()
