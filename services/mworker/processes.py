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


class TooManyRunners(Exception):
    """The worker runs as many runners as it may."""


@dataclass
class Processes:
    """The children that live now."""

    pids: set[int] = field(default_factory=set)

    def start(self, work: Callable[[], None]) -> None:
        """Runs ``work`` in a forked child. Raises TooManyRunners."""
        self.reap()
        if len(self.pids) >= MAX_RUNNERS:
            raise TooManyRunners(f"{MAX_RUNNERS} runners run on this worker already; try again when one has ended")
        pid = os.fork()
        if pid:
            self.pids.add(pid)
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
        """Forgets children that have ended."""
        for pid in list(self.pids):
            if os.waitpid(pid, os.WNOHANG)[0]:
                self.pids.discard(pid)

    def drain(self, seconds: float) -> None:
        """Waits for the children, then ends those that are left."""
        deadline = time.monotonic() + seconds
        while self.pids and time.monotonic() < deadline:
            self.reap()
            time.sleep(0.02)
        for pid in self.pids:
            _LOG.warning("runner %d is ended: it did not finish within %g s", pid, seconds)
            os.kill(pid, signal.SIGTERM)
