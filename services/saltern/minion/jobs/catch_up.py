"""When the minion asks our master for jobs that it may have missed: after each way in which it can have been deaf for a while.

Decided without I/O. A fleet that loses its master comes back at once: each minion waits for a moment of its own, and asks once,
however many reasons there were meanwhile. A stock master is never asked.

It also asks now and then without a reason: what a full queue let drop nobody notices, and a minion that says nothing for longer
than the master's ``presence_window`` counts as away.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from saltwire.jid import is_jid
from saltwire.publication import job_fault

#: The request. Masters that do not say at the sign-in that they know it never see it.
COMMAND = "_missed"

#: Seconds that a new connection has at least until its subscription has arrived at the publisher.
_SETTLED = 0.3

#: Clocks of the master's workers may differ: so much of what an earlier answer had is asked for again.
_SLACK_MS = 60_000


@dataclass
class CatchUp:
    """Times are seconds of one monotonic clock."""

    #: Seconds over which a fleet spreads its questions (option replay_delay).
    spread: float
    #: Seconds after which it asks without a reason, about; 0: never (option replay_interval).
    every: float = 0.0
    draw: Callable[[float, float], float] = random.uniform
    _due: float | None = None
    _in_flight: bool = False
    #: Milliseconds since 1970 by the master's clock: what was published before, an earlier answer had. Outlives the process.
    known_until: int = 0
    #: What is asked for next is the rest of an answer: from where, and when its first part was given.
    _from: int = 0
    _first: int = 0
    _again: float | None = None

    def may_have_missed(self, now: float) -> None:
        """The minion may have missed something until now."""
        if self._again is None:
            self._put_off(now)
        if self._due is None:
            self._due = now + _SETTLED + self.draw(0, self.spread)

    def is_due(self, now: float) -> bool:
        """Whether to ask now; then it has asked, and waits for the answer."""
        if self._in_flight or not (_is_over(self._due, now) or _is_over(self._again, now)):
            return False
        self._due, self._in_flight = None, True
        self._put_off(now)
        return True

    def _put_off(self, now: float) -> None:
        self._again = now + self.every * self.draw(0.75, 1.0) if self.every else None

    def request(self) -> dict[str, Any]:
        """The request."""
        return {"cmd": COMMAND, "after": self._from or self.known_until}

    def take_answer(self, answer: Any, now: float) -> list[dict[str, Any]]:
        """The jobs of an answer ``{"jobs": [...], "next": ms, "now": ms}``. ``next``: from there are more, asked for at once.

        With the last part ``known_until`` moves: to be kept once the jobs are in hand.
        """
        self._in_flight = False
        asked_from, self._from = self._from or self.known_until, 0
        if not isinstance(answer, Mapping):
            self._first = 0
            return []
        self._first = self._first or _number(answer.get("now"))
        following = _number(answer.get("next"))
        if following > asked_from:
            self._from, self._due = following, now
        else:
            # Also back, with a clock that was set back: asking for more than is missed costs little.
            self.known_until = max(0, self._first - _SLACK_MS) if self._first else self.known_until
            self._first = 0
        jobs = answer.get("jobs")
        return [job for job in jobs if _is_job(job)] if isinstance(jobs, list) else []


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _is_over(moment: float | None, now: float) -> bool:
    return moment is not None and now >= moment


def _is_job(job: Any) -> bool:
    needed = isinstance(job, dict) and all(name in job for name in ("tgt", "jid", "fun", "arg"))
    return needed and is_jid(job["jid"]) and not job_fault(job)
