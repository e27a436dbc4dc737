"""Signs in at a master, repeatedly, until the master accepts the minion's key or a repetition is pointless.

Source: docs/protocol.md#sign-in-reactions
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass

from saltern.kit.config.minion_options import MinionOptions
from saltern.kit.process.health import Health
from saltern.kit.process.process import Stop
from saltern.minion.master.channel import sign_in_once
from saltern.minion.master.identity import Identity
from saltern.minion.master.masters import address
from saltwire.handshake import Answer, Credentials, Outcome
from saltwire.zmq import RequestSocket

_LOG = logging.getLogger("saltern.minion")

#: Seconds between two signs of life for the health probe during a wait.
_TICK = 1.0


class Ended(Exception):
    """Raised when the minion was asked to end while it waited."""


class Rejected(Exception):
    """Raised when the master rejects this minion's key, or has another key than the stored one. The message is the reason."""


class NoMaster(Exception):
    """Raised when a master does not accept the sign-in and another master may. The message is the reason."""


@dataclass(frozen=True)
class Shutdown:
    """The stop flag of the minion and its health state. Every wait of the main process reads the flag, and thereby
    reports to ``/healthz`` that the process runs.
    """

    stop: Stop
    health: Health

    def ended(self) -> bool:
        """Return whether the minion was asked to end. Each call also counts as a sign of life for the health probe."""
        self.health.record_iteration()
        return self.stop.requested

    def wait(self, seconds: float) -> None:
        """Sleep for ``seconds``. Raise Ended if the minion is asked to end meanwhile."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self.ended():
                raise Ended
            self.stop.wait(min(left, _TICK))


class SignInLoop:
    """Repeats the minion's sign-in at one master."""

    def __init__(
        self, requests: RequestSocket, options: MinionOptions, identity: Identity, shutdown: Shutdown, *, patient: bool
    ) -> None:
        """Prepare the sign-in. ``patient``: True if there is no other master; the minion then waits until its key is accepted."""
        self._requests = requests
        self._options = options
        self._identity = identity
        self._shutdown = shutdown
        self._patient = patient

    def sign_in(self) -> Credentials:
        """Sign in until the master accepts, and return the credentials.

        Raise Rejected, Ended. If there are other masters (``patient`` is False), raise NoMaster at the first other answer.
        """
        self._resolve()
        pause = float(self._options.acceptance_wait_time)
        logged = None
        while True:
            self._identity.renew()
            answer = sign_in_once(
                self._requests, self._options, self._identity, self._options.grains, self._waits(), self._shutdown.wait
            )
            if answer.credentials is not None:
                _LOG.info("signed in at %s", self._requests.endpoint, extra={"minion": self._identity.id})
                return answer.credentials
            self._give_up(answer)
            if logged != answer.outcome:
                logged = answer.outcome
                _LOG.log(_severity(answer), "no sign-in yet: %s", answer.reason, extra={"minion": self._identity.id})
            self._shutdown.wait(pause)
            if self._options.acceptance_wait_time_max:
                pause = min(pause * 1.5, float(self._options.acceptance_wait_time_max))

    def _give_up(self, answer: Answer) -> None:
        if not self._patient:
            raise NoMaster(answer.reason)
        if answer.outcome is Outcome.REJECTED and not self._options.rejected_retry:
            raise Rejected(answer.reason)
        if answer.outcome is Outcome.WRONG_MASTER:
            raise Rejected(f"{answer.reason}; remove minion_master.pub from pki_dir if the new master is the right one")

    def _waits(self) -> Iterator[float]:
        """Yield the seconds before each repetition of a sign-in. Raise Ended if the minion is asked to end in between."""
        for _ in range(self._options.auth_tries if self._patient else 1):
            if self._shutdown.ended():
                raise Ended
            yield float(self._options.auth_timeout)

    def _resolve(self) -> None:
        """Wait until the master's host name resolves. Raise NoMaster or Rejected if the minion must not wait."""
        host = address(str(self._options.master), self._options.master_port)[0].strip("[]")
        tries = 0
        while why := _unknown(host):
            tries += 1
            problem = f"the master '{host}' has no address: {why}"
            if not self._patient:
                raise NoMaster(problem)
            if not self._options.retry_dns or tries == self._options.retry_dns_count:
                raise Rejected(f"{problem}; set master in the minion's configuration")
            _LOG.error("%s; the next attempt is in %g seconds", problem, self._options.retry_dns)
            self._shutdown.wait(float(self._options.retry_dns))


def _unknown(host: str) -> str:
    """Return the reason why a host name does not resolve; empty text if it does."""
    try:
        socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return str(getattr(error, "strerror", None) or error)
    return ""


def _severity(answer: Answer) -> int:
    return logging.WARNING if answer.outcome is Outcome.PENDING else logging.ERROR
