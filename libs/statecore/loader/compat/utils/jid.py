"""``salt.utils.jid``: job ids (JIDs), which are UTC timestamps."""

from __future__ import annotations

from datetime import UTC, datetime


def gen_jid(opts: object = None) -> str:
    """Return a JID for the current time in UTC, in microseconds."""
    return f"{datetime.now(UTC):%Y%m%d%H%M%S%f}"


def is_jid(jid: object) -> bool:
    """Return whether the value is a JID: 20 digits, optionally followed by ``_PID``."""
    if not isinstance(jid, str) or not (len(jid) == 20 or (len(jid) > 21 and jid[20] == "_")):
        return False
    return jid[:20].isdecimal()


def jid_to_time(jid: object) -> str:
    """Return a JID's time as ``2026, Nov 21 12:00:00.000000``; "" if the value is not a JID."""
    text = str(jid)
    return f"{datetime.strptime(text[:20], '%Y%m%d%H%M%S%f'):%Y, %b %d %H:%M:%S.%f}" if is_jid(text) else ""
