"""Decides when the minion asks its master for publications that it may have missed. Does no I/O.

The minion asks after each interruption of its subscription. All minions may reconnect at the same moment, so each waits a
random time, and asks once for any number of interruptions. The minion also asks now and then without a reason: a full queue
drops publications without a sign, and a minion that is silent for longer than the master's ``presence_window`` counts as
away. A stock master is never asked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from saltwire.jid import is_jid
from saltwire.publication import job_fault

#: Command of the question. It is sent only to masters that announce at the sign-in that they support it.
COMMAND = "_missed"

#: Seconds after a connection is made until its subscription has arrived at the publisher.
_SETTLED = 0.3

#: The clocks of the master's workers may differ by this much, so the last minute of an answer is asked for again.
_SLACK_MS = 60_000


@dataclass
class CatchUp:
    """Decides when the minion asks its master for the publications that it missed, such as those during an
    interruption.

    All times ``now`` are monotonic seconds.
    """

    #: Seconds over which the questions of all minions are spread (option replay_delay).
    spread: float
    #: Seconds between two questions without a reason, approximately; 0: none (option replay_interval).
    every: float = 0.0
    draw: Callable[[float, float], float] = random.uniform
    _due: float | None = None
    _in_flight: bool = False
    #: Publications until this time are known. Milliseconds since 1970 by the master's clock; stored over restarts.
    known_until: int = 0
    #: If an answer came in parts: start of the next part, and the time at which the first part was answered.
    _from: int = 0
    _first: int = 0
    _again: float | None = None

    def may_have_missed(self, now: float) -> None:
        """Record that the minion may have missed publications until ``now``; ``is_due`` is then True after a random
        wait.
        """
        if self._again is None:
            self._put_off(now)
        if self._due is None:
            self._due = now + _SETTLED + self.draw(0, self.spread)

    def is_due(self, now: float) -> bool:
        """Return whether the minion must ask the master for missed publications now. After True the caller must send
        ``request``.
        """
        if self._in_flight or not (_is_over(self._due, now) or _is_over(self._again, now)):
            return False
        self._due, self._in_flight = None, True
        self._put_off(now)
        return True

    def _put_off(self, now: float) -> None:
        self._again = now + self.every * self.draw(0.75, 1.0) if self.every else None

    def request(self) -> dict[str, object]:
        """Return the load to send to the master. It asks for the publications since ``after`` (milliseconds since
        1970, master's clock).
        """
        return {"cmd": COMMAND, "after": self._from or self.known_until}

    def take_answer(self, answer: object, now: float) -> list[dict[str, object]]:
        """Process the master's answer {"jobs": [...], "next": ms, "now": ms}. Return the valid loads of jobs in it; []
        for no answer.

        An answer with ``next`` is not the last one: more jobs follow, and ``is_due`` is True at once. After the last
        answer, ``known_until`` (the time until which all publications are known) has a new value; store it only after
        the jobs are in the journal.
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
            # The time may also go backwards, if the master's clock was set back. Asking for too much costs little.
            self.known_until = max(0, self._first - _SLACK_MS) if self._first else self.known_until
            self._first = 0
        jobs = answer.get("jobs")
        return [job for job in jobs if _is_job(job)] if isinstance(jobs, list) else []


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _is_over(moment: float | None, now: float) -> bool:
    return moment is not None and now >= moment


def _is_job(job: object) -> bool:
    if not isinstance(job, dict) or not all(name in job for name in ("tgt", "jid", "fun", "arg")):
        return False
    return is_jid(job["jid"]) and not job_fault(job)
