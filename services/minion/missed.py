"""When the minion asks our master for jobs that it may have missed: after each way in which it can have been deaf for a while.

Decided without I/O. A fleet that loses its master comes back at once: each minion waits for a moment of its own, and asks once,
however many reasons there were meanwhile. A stock master is never asked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from saltwire.jid import is_jid, jid_time

#: The request. Masters that do not say at the sign-in that they know it never see it.
COMMAND = "_missed"

#: Seconds that a new connection has at least until its subscription has arrived at the publisher.
_SETTLED = 0.3

#: Jobs need not have come in the order of their JIDs: so much before the last that was seen is asked for, too.
_SLACK = timedelta(seconds=60)


@dataclass
class Missed:
    """Times are seconds of one monotonic clock."""

    #: Seconds over which a fleet spreads its questions (option replay_delay).
    spread: float
    draw: Callable[[float, float], float] = random.uniform
    _due: float | None = None
    _asked: bool = False
    #: What is asked for next is the rest of an answer.
    _paging: bool = False
    _from: int = 0

    def deaf(self, now: float) -> None:
        """The minion may have missed something until now."""
        if self._due is None:
            self._due = now + _SETTLED + self.draw(0, self.spread)

    def wants(self, now: float) -> bool:
        """Whether to ask now; then it has asked, and waits for the answer."""
        if self._asked or self._due is None or now < self._due:
            return False
        self._due, self._asked = None, True
        return True

    def question(self, latest: str) -> dict[str, Any]:
        """The request; ``latest`` is the newest JID that was seen."""
        if not self._paging:
            self._from = after(latest)
        return {"cmd": COMMAND, "after": self._from}

    def answered(self, answer: Any, now: float) -> list[dict[str, Any]]:
        """The jobs of an answer ``{"jobs": [...], "next": ms}``. ``next``: from there are more; asked for at once."""
        self._asked = self._paging = False
        if not isinstance(answer, Mapping):
            return []
        following = answer.get("next")
        if isinstance(following, int) and following > self._from:
            self._from, self._paging, self._due = following, True, now
        jobs = answer.get("jobs")
        return [job for job in jobs if _is_job(job)] if isinstance(jobs, list) else []


def _is_job(job: Any) -> bool:
    return isinstance(job, dict) and all(name in job for name in ("tgt", "jid", "fun", "arg")) and is_jid(job["jid"])


def after(latest: str) -> int:
    """Milliseconds since 1970 after which jobs may have been missed, by the newest JID that was seen; 0: any."""
    if not is_jid(latest):
        return 0
    return max(0, int((jid_time(latest) - _SLACK).timestamp() * 1000))
