"""Child processes of a worker: runners and deferred replies run there, so that a long one does not block the worker."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

_LOG = logging.getLogger("saltern.mworker")

#: Most children of a worker at one time; ``start`` refuses more, so that a script cannot exhaust the machine.
MAX_RUNNERS = 32

#: Most children at one time for one minion; a request may take an hour, and other senders need children, too.
MAX_PER_MINION = 8

#: Most children at one time for all sign-ins of users (eauth), and for all minions. The rest is left to operators.
MAX_LOGINS = 8
MAX_MINIONS = 16

#: Beginning of the requester of a sign-in; the address follows.
LOGIN = "login "

#: Most requests of one requester, and of all, that wait for a child, and the seconds for which they do.
_WAITING_OF_ONE = 8
_WAITING = 256
_PATIENCE = 10.0


class TooManyRunners(Exception):
    """Raised when the worker, or one requester, already has as many child processes as allowed."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A request that waits for a child, until ``until`` (monotonic seconds)."""

    work: Callable[[], None]
    lost: Callable[[str], None]
    until: float


def refusal(requesters: Collection[str], requester: str) -> str:
    """Return why a requester may have no further child now; "" if it may.

    ``requesters``: the requester of each running child, operators left out. One requester may have half of what its kind has
    left: so few addresses with slow sign-ins cannot take all, and the next address still finds a child.
    """
    login = requester.startswith(LOGIN)
    most, kind = (MAX_LOGINS, "sign-ins") if login else (MAX_MINIONS, "requests of minions")
    others = Counter(each for each in requesters if each.startswith(LOGIN) is login)
    own, free = others[requester], most - others.total()
    if free <= 0:
        return f"{most} {kind} are worked on here already; try again when one has ended"
    if own and own >= min(MAX_PER_MINION, free / 2):
        return f"{own} requests of {requester} are worked on here already; try again when one has ended"
    return ""


#: Seconds between SIGTERM and SIGKILL.
_GRACE = 1.0


@dataclass
class Processes:
    """The running child processes of one worker, by process id: starts them, and reports those that fail."""

    #: Map of process id to the function that is called with the reason if the child fails.
    lost: dict[int, Callable[[str], None]] = field(default_factory=dict)
    #: Map of process id to the id of the minion that sent the request, or LOGIN with an address; operators' children are
    #: left out.
    requesters: dict[int, str] = field(default_factory=dict)
    #: Requester -> its requests that wait for a child, oldest first. Requesters take turns.
    waiting: OrderedDict[str, deque[_Waiting]] = field(default_factory=OrderedDict)

    @property
    def pids(self) -> set[int]:
        """Return the process ids of the worker's children."""
        return set(self.lost)

    @property
    def idle(self) -> bool:
        """Return whether no child runs and no request waits for one."""
        return not self.lost and not self.waiting

    def start(self, work: Callable[[], None], lost: Callable[[str], None], requester: str = "") -> None:
        """Run ``work`` in a forked child; call ``lost`` with the reason if the child fails or is killed.

        ``requester``: id of the minion that asked, or LOGIN with the address of a user; empty for an operator. Raises
        TooManyRunners.
        """
        self.reap()
        if len(self.lost) >= MAX_RUNNERS:
            raise TooManyRunners(f"{MAX_RUNNERS} runners run on this worker already; try again when one has ended")
        if requester and (why := refusal(self.requesters.values(), requester)):
            raise TooManyRunners(why)
        self._fork(work, lost, requester)

    def start_in_turn(self, work: Callable[[], None], lost: Callable[[str], None], requester: str) -> None:
        """As ``start``, but a request that finds no child waits for one, for at most ten seconds: then ``lost`` is called.

        Waiting requesters take turns. Raises TooManyRunners if too many requests wait.
        """
        own = self.waiting.get(requester, ())
        try:
            if own:
                raise TooManyRunners(f"{len(own)} requests of {requester} wait already")
            self.start(work, lost, requester)
        except TooManyRunners:
            if not requester or len(own) >= _WAITING_OF_ONE or sum(map(len, self.waiting.values())) >= _WAITING:
                raise
            one = _Waiting(work, lost, time.monotonic() + _PATIENCE)
            self.waiting.setdefault(requester, deque()).append(one)

    def _take_turns(self) -> None:
        """Start the waiting requests that find a child now, and give up those that have waited too long."""
        now = time.monotonic()
        for requester, own in list(self.waiting.items()):
            while own and own[0].until < now:
                own.popleft().lost(f"was not started within {_PATIENCE:g} s: other requests keep all processes busy")
            if own and len(self.lost) < MAX_RUNNERS and not refusal(self.requesters.values(), requester):
                one = own.popleft()
                self._fork(one.work, one.lost, requester)
                self.waiting.move_to_end(requester)
            if not own:
                del self.waiting[requester]

    def _fork(self, work: Callable[[], None], lost: Callable[[str], None], requester: str) -> None:
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
        if self.waiting:
            self._take_turns()

    def drain(self, seconds: float) -> None:
        """Wait up to ``seconds`` for the child processes, then end the remaining ones by SIGTERM and at last by SIGKILL."""
        for requester in list(self.waiting):
            for one in self.waiting.pop(requester):
                one.lost("was not started: the worker ends")
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
