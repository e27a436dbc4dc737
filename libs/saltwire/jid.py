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
        datetime.strptime(value[:_DIGITS], _FORMAT)
    except ValueError:
        return False
    return all(char.isalnum() or char in "_-." for char in value)


def jid_time(jid: str) -> datetime:
    """The moment of a JID, in UTC. Raises ValueError for what is none."""
    return datetime.strptime(jid[:_DIGITS], _FORMAT).replace(tzinfo=UTC)
