"""``salt.utils.jid``: ids of jobs, which are moments."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def gen_jid(opts: Any = None) -> str:
    """An id of now, in UTC, to the microsecond."""
    return f"{datetime.now(UTC):%Y%m%d%H%M%S%f}"


def is_jid(jid: Any) -> bool:
    """Whether this is the id of a job: 20 digits, and maybe ``_PID``."""
    if not isinstance(jid, str) or not (len(jid) == 20 or (len(jid) > 21 and jid[20] == "_")):
        return False
    return jid[:20].isdecimal()


def jid_to_time(jid: Any) -> str:
    """``2026, Nov 21 12:00:00.000000``; "" for what is no id."""
    text = str(jid)
    return f"{datetime.strptime(text[:20], '%Y%m%d%H%M%S%f'):%Y, %b %d %H:%M:%S.%f}" if is_jid(text) else ""
