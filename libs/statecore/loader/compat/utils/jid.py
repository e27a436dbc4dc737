"""``salt.utils.jid`` for users' modules: job ids (JIDs), which are times in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def gen_jid(opts: object = None) -> str:
    """Return a new JID: the current time in UTC with microseconds, as 20 digits. ``opts`` is ignored."""
    return f"{datetime.now(UTC):%Y%m%d%H%M%S%f}"


def is_jid(jid: object) -> bool:
    """Return whether the value is a JID: a text of 20 digits, optionally followed by ``_`` and a process id."""
    if not isinstance(jid, str) or not (len(jid) == 20 or (len(jid) > 21 and jid[20] == "_")):
        return False
    return jid[:20].isdecimal()


def jid_to_time(jid: object) -> str:
    """Return the time of a JID as text such as ``2026, Nov 21 12:00:00.000000``; "" if the value is not a JID."""
    text = str(jid)
    return f"{datetime.strptime(text[:20], '%Y%m%d%H%M%S%f'):%Y, %b %d %H:%M:%S.%f}" if is_jid(text) else ""
