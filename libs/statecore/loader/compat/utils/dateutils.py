"""``salt.utils.dateutils``."""

from __future__ import annotations

import datetime


def date_cast(date: datetime.datetime | float | str | None) -> datetime.datetime:
    """A local time of a datetime, seconds (number or text), or None for now. Raises RuntimeError."""
    if date is None:
        return datetime.datetime.now()
    if isinstance(date, datetime.datetime):
        return date
    try:
        return datetime.datetime.fromtimestamp(float(date))
    except (TypeError, ValueError, OverflowError, OSError):
        raise RuntimeError(f"Unable to parse {date}. Consider installing timelib") from None


def strftime(date: datetime.datetime | float | str | None = None, format: str = "%Y-%m-%d") -> str:
    """A time in a format."""
    return date_cast(date).strftime(format)


def total_seconds(td: datetime.timedelta) -> float:
    """Seconds of a duration."""
    return td.total_seconds()
