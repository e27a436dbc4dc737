"""When a supervised child process starts, is asked to end, and is killed. Pure: times are given, nothing is done here.

``prefork`` does what this module decides. All times are monotonic seconds.
"""

from __future__ import annotations

import math
import signal
from dataclasses import dataclass

from saltern.kit.process.process import EX_CONFIG

#: Exit codes after which a new start would end in the same way: a minion's key was rejected, the configuration is unusable.
HOPELESS = frozenset({77, EX_CONFIG})

#: Exit code of a child that asks for a new process at once, such as a worker that reached ``worker_max_requests``
#: (sysexits' EX_TEMPFAIL).
EX_RENEW = 75

#: Seconds after which a child counts as started: an earlier end is followed by a pause.
_SETTLED = 5.0

#: Seconds of the first pause, and of the longest; each pause is twice as long as the one before.
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0


@dataclass(slots=True)
class Watched:
    """The record of one child process that a parent starts again after each end: whether it must run, and when its
    process must be started or killed.
    """

    name: str
    #: Children of a higher stage are started later and ended earlier.
    stage: int = 0
    #: Seconds between SIGTERM and SIGKILL.
    grace: float = 15.0
    #: Whether the child shall run.
    wanted: bool = True
    #: Process id; 0 while there is no process.
    pid: int = 0
    started_at: float = 0.0
    #: When the next process is due; infinity: never again, because of the last exit code.
    due_at: float = 0.0
    #: When SIGKILL is due; infinity unless SIGTERM was sent.
    kill_at: float = math.inf
    #: Number of ends in a row that came soon after the start.
    early_ends: int = 0
    #: Number of processes that ended without having been asked to.
    failures: int = 0
    #: How the last process ended, in words; empty before the first end.
    last_end: str = ""

    @property
    def state(self) -> str:
        """Return ``running``, ``ending``, ``waiting`` for its next start, ``stopped`` or ``failed`` (for good)."""
        if self.pid:
            return "running" if self.kill_at == math.inf else "ending"
        if not self.wanted:
            return "stopped"
        return "failed" if self.due_at == math.inf else "waiting"

    def began(self, pid: int, now: float) -> None:
        """Record that the child's process was started."""
        self.pid, self.started_at, self.kill_at = pid, now, math.inf

    def asked_to_end(self, now: float) -> None:
        """Record that SIGTERM was sent to the child's process; SIGKILL follows after ``grace`` seconds."""
        self.kill_at = min(self.kill_at, now + self.grace)

    def killed(self) -> None:
        """Record that SIGKILL was sent to the child's process."""
        self.kill_at = math.inf

    def ended(self, code: int, now: float) -> float:
        """Record that the process ended, by an exit code or by a signal (negative), and decide when the next one starts.

        Return the seconds until then; infinity: never, because of the exit code.
        """
        asked = self.kill_at < math.inf
        self.pid, self.kill_at, self.last_end = 0, math.inf, in_words(code)
        if code == EX_RENEW or asked:
            self.early_ends = 0
            self.due_at = now
        elif code in HOPELESS:
            self.failures += 1
            self.due_at = math.inf
        else:
            self.failures += 1
            self.early_ends = self.early_ends + 1 if now - self.started_at < _SETTLED else 1
            # A child that ran well is replaced soon.
            self.due_at = now + min(_FIRST_PAUSE * 2 ** (self.early_ends - 1), _LONGEST_PAUSE)
        return self.due_at - now

    def want(self, now: float) -> None:
        """Record that the child process must run. It is due to be started at once, also after it had failed for good."""
        self.wanted, self.due_at, self.early_ends = True, now, 0

    def is_due(self, now: float) -> bool:
        """Return whether the child's process must be started now."""
        return self.wanted and not self.pid and self.due_at <= now

    def next_time(self) -> float:
        """Return the time at which this child must be killed or started; infinity if nothing has to be done before it
        ends.
        """
        if self.pid:
            return self.kill_at
        return self.due_at if self.wanted else math.inf


@dataclass(slots=True)
class Rollout:
    """Replaces child processes one after the other; the next one only after the new process has run for ``settle`` seconds."""

    #: Names of the children that are still to be replaced.
    left: list[str]
    #: Name of the child that is being replaced; empty before the first.
    current: str = ""
    #: Seconds that a new process must run before the next child is replaced.
    settle: float = 2.0

    def next(self, children: dict[str, Watched], now: float) -> str:
        """Return the name of the child to end and replace now; "" if the process that replaced the last one has not
        run for ``settle`` seconds, or if every child was replaced.
        """
        if self.current:
            child = children[self.current]
            if child.state == "failed":
                # The others would fail in the same way.
                self.left.clear()
            elif child.wanted and not (child.pid and self._settled(child, now)):
                return ""
        self.current = self.left.pop(0) if self.left else ""
        return self.current

    def next_time(self, children: dict[str, Watched]) -> float:
        """Return the time at which ``next`` may return another name; infinity while the current child is still ending
        or not started again.
        """
        child = children.get(self.current)
        if child is None or not child.pid or child.kill_at < math.inf:
            return math.inf
        return child.started_at + self.settle

    def _settled(self, child: Watched, now: float) -> bool:
        return child.kill_at == math.inf and now - child.started_at >= self.settle

    @property
    def done(self) -> bool:
        """Return whether every child was replaced."""
        return not self.left and not self.current


def in_words(code: int) -> str:
    """Return as text how a process ended: ``exit code 1``, or ``signal 9 (Killed)`` for a negative code."""
    if code < 0:
        return f"signal {-code} ({signal.strsignal(-code) or 'unknown'})"
    return f"exit code {code}"
