"""Job ids (JIDs): a UTC time to the microsecond, written as 20 digits. Source: docs/protocol.md#jids"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_FORMAT = "%Y%m%d%H%M%S%f"
_DIGITS = 20

#: Longest JID, characters: JIDs become parts of Redis keys and file names.
_MAX_CHARS = 200


def new_jid(now: float) -> str:
    """Return the JID of a time given in seconds since 1970."""
    return datetime.fromtimestamp(now, UTC).strftime(_FORMAT)


def next_jid(now: float, last: str) -> str:
    """Return the JID of ``now`` (seconds since 1970), or the JID after ``last`` if the clock has not passed it."""
    jid = new_jid(now)
    if not last or jid > last:
        return jid
    return (jid_time(last) + timedelta(microseconds=1)).strftime(_FORMAT)


def is_jid(value: object) -> bool:
    """Return whether ``value`` is a JID: 20 digits that form a time, optionally followed by ``_`` and a suffix."""
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
    """Return the UTC time in a JID. Raises ValueError if the text does not begin with 20 digits that form a time."""
    digits = jid[:_DIGITS]
    if len(digits) < _DIGITS or not (digits.isascii() and digits.isdecimal()):
        raise ValueError(f"{jid!r} does not begin with {_DIGITS} digits")
    # strptime is avoided: it loads locale data, and this function runs once for each job.
    month, day, hour, minute, second = (int(digits[at : at + 2]) for at in range(4, 14, 2))
    return datetime(int(digits[:4]), month, day, hour, minute, second, int(digits[14:]), tzinfo=UTC)
