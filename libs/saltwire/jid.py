"""Job ids: UTC time to the microsecond as twenty digits (protocol section 11.1)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_FORMAT = "%Y%m%d%H%M%S%f"
_DIGITS = 20

#: Longest JID: it becomes part of keys and file names.
_MAX_CHARS = 200


def new_jid(now: float) -> str:
    """The JID of a moment (seconds since 1970)."""
    return datetime.fromtimestamp(now, UTC).strftime(_FORMAT)


def next_jid(now: float, last: str) -> str:
    """The JID of now, or the one after ``last`` when the clock has not moved past it."""
    jid = new_jid(now)
    if not last or jid > last:
        return jid
    return (jid_time(last) + timedelta(microseconds=1)).strftime(_FORMAT)


def is_jid(value: object) -> bool:
    """Twenty digits that are a time, or those with ``_`` and more behind them."""
    if not isinstance(value, str) or not _DIGITS <= len(value) <= _MAX_CHARS or not value.isascii():
        return False
    if not value[:_DIGITS].isdecimal():
        return False
    if len(value) > _DIGITS and (value[_DIGITS] != "_" or len(value) == _DIGITS + 1):
        return False
    try:
        jid_time(value)
    except ValueError:
        return False
    return all(char.isalnum() or char in "_-." for char in value)


def jid_time(jid: str) -> datetime:
    """The moment of a JID, in UTC. Raises ValueError for what is none."""
    digits = jid[:_DIGITS]
    if len(digits) < _DIGITS or not (digits.isascii() and digits.isdecimal()):
        raise ValueError(f"{jid!r} does not begin with {_DIGITS} digits")
    # Not strptime, which loads calendars of all languages: each role asks this of each job.
    month, day, hour, minute, second = (int(digits[at : at + 2]) for at in range(4, 14, 2))
    return datetime(int(digits[:4]), month, day, hour, minute, second, int(digits[14:]), tzinfo=UTC)
