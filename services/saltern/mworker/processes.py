"""Children of a worker: runners, each in a process of its own so that a long one never holds a worker."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_LOG = logging.getLogger("saltern.mworker")

#: Runners at one time; more are refused by ``start`` with an error, so that a script cannot fork the machine to death.
MAX_RUNNERS = 32


#: Of these at one time for one minion, which may ask for what takes an hour: operators and others need some too.
MAX_PER_MINION = 8


class TooManyRunners(Exception):
    """The worker runs as many runners as it may."""


#: Seconds for a runner to end once it was told to; then it is killed.
_GRACE = 1.0


@dataclass
class Processes:
    """The children that live now."""

    #: Process id -> who is told how it ended, where it did not end well.
    lost: dict[int, Callable[[str], None]] = field(default_factory=dict)
    #: Process id -> the minion that asked, where one did.
    requesters: dict[int, str] = field(default_factory=dict)

    @property
    def pids(self) -> set[int]:
        """The children's process ids."""
        return set(self.lost)

    def start(self, work: Callable[[], None], lost: Callable[[str], None], requester: str = "") -> None:
        """Runs ``work`` in a forked child. ``lost`` is called when the child failed or was killed. Raises TooManyRunners.

        ``asker``: the minion that wants it, empty for an operator.
        """
        self.reap()
        if len(self.lost) >= MAX_RUNNERS:
            raise TooManyRunners(f"{MAX_RUNNERS} runners run on this worker already; try again when one has ended")
        if requester and list(self.requesters.values()).count(requester) >= MAX_PER_MINION:
            raise TooManyRunners(
                f"{MAX_PER_MINION} requests of {requester} are worked on here already; try again when one has ended"
            )
        pid = os.fork()
        if pid:
            self.lost[pid] = lost
            if requester:
                self.requesters[pid] = requester
            return
        # The child. Nothing of the parent's sockets is used or closed here: ZeroMQ and Redis clients belong to a process.
        code = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            work()
            code = 0
        except Exception:  # noqa: BLE001 - the child ends here, whatever happened
            _LOG.exception("a runner's process failed")
        finally:
            os._exit(code)

    def reap(self) -> None:
        """Forgets children that have ended; tells of those that did not end well."""
        for pid in list(self.lost):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                lost = self.lost.pop(pid)
                self.requesters.pop(pid, None)
                if how := _how(os.waitstatus_to_exitcode(status)):
                    lost(how)

    def drain(self, seconds: float) -> None:
        """Waits for the children, then ends those that are left."""
        self._wait(seconds)
        for pid in self.lost:
            _LOG.warning("runner %d is ended: it did not finish within %g s", pid, seconds)
            os.kill(pid, signal.SIGTERM)
        self._wait(_GRACE)
        for pid in self.lost:
            os.kill(pid, signal.SIGKILL)
        self._wait(_GRACE)

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        self.reap()
        while self.lost and time.monotonic() < deadline:
            time.sleep(0.02)
            self.reap()


def _how(code: int) -> str:
    """How a child ended, as one says it; empty when it ended well."""
    if code < 0:
        return f"was killed by signal {-code} ({signal.strsignal(-code) or 'unknown'})"
    return f"ended with exit code {code}, see the worker's log" if code else ""
