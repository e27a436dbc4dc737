"""Child processes of a worker: runners and deferred replies run there, so that a long one does not block the worker."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_LOG = logging.getLogger("saltern.mworker")

#: Most children of a worker at one time; ``start`` refuses more, so that a script cannot exhaust the machine.
MAX_RUNNERS = 32


#: Most children at one time for one minion; a request may take an hour, and other senders need children, too.
MAX_PER_MINION = 8


class TooManyRunners(Exception):
    """Raised when the worker, or one minion, already has as many child processes as allowed."""


#: Seconds between SIGTERM and SIGKILL.
_GRACE = 1.0


@dataclass
class Processes:
    """The running child processes of one worker, by process id: starts them, and reports those that fail."""

    #: Map of process id to the function that is called with the reason if the child fails.
    lost: dict[int, Callable[[str], None]] = field(default_factory=dict)
    #: Map of process id to the id of the minion that sent the request; operators' children are left out.
    requesters: dict[int, str] = field(default_factory=dict)

    @property
    def pids(self) -> set[int]:
        """Return the process ids of the worker's children."""
        return set(self.lost)

    def start(self, work: Callable[[], None], lost: Callable[[str], None], requester: str = "") -> None:
        """Run ``work`` in a forked child; call ``lost`` with the reason if the child fails or is killed.

        ``requester``: id of the minion that asked; empty for an operator. Raises TooManyRunners.
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
        # In the child the parent's sockets are neither used nor closed: ZeroMQ and Redis clients belong to one process.
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
        """Forget child processes that have ended, and call the function ``lost`` of each that failed."""
        for pid in list(self.lost):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                lost = self.lost.pop(pid)
                self.requesters.pop(pid, None)
                if how := _how(os.waitstatus_to_exitcode(status)):
                    lost(how)

    def drain(self, seconds: float) -> None:
        """Wait up to ``seconds`` for the child processes, then end the remaining ones by SIGTERM and at last by SIGKILL."""
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
    """Return in words how a child process ended; empty text for exit code 0."""
    if code < 0:
        return f"was killed by signal {-code} ({signal.strsignal(-code) or 'unknown'})"
    return f"ended with exit code {code}, see the worker's log" if code else ""
