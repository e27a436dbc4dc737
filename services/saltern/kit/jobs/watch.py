"""Follows published jobs until their returns are complete.

It passes events and answers to each JobWait and performs the instructions of that JobWait.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from saltern.kit.jobs.wait import AskProbe, AskReturns, FindJob, Finish, Instruction, JobWait, Show, Silent
from saltern.kit.links.answers import PublishAnswer
from saltern.kit.links.control import CONTROL_PATIENCE, ControlClient, ControlError, ControlTimeout
from saltern.kit.links.event_bus import EventSubscriber


@dataclass(frozen=True, slots=True)
class Pauses:
    """The shortest and the longest pause, in seconds, between two reads of the job cache."""

    first: float
    longest: float


class Pace:
    """Decides when a command that waits for a job reads the job cache next. All times are seconds of one monotonic clock."""

    def __init__(self, pauses: Pauses, now: float) -> None:
        self._pauses = pauses
        self._pause = pauses.first
        #: Time of the next read.
        self.at = now + self._pause

    def heard(self, now: float) -> None:
        """Set the next read of the job cache to one pause after ``now``, because the bus has just delivered an event
        of the job.
        """
        self.at = now + self._pause

    def looked(self, now: float, *, found: bool) -> None:
        """Record that the job cache was read at ``now``, and set the time of the next read.

        ``found``: the read found a return that the bus had not delivered. The next pause is then the shortest one;
        otherwise it is longer than the last pause.
        """
        self._pause = self._pauses.first if found else min(self._pause * _GROWTH, self._pauses.longest)
        self.at = now + self._pause


#: Between looks into the job cache, by whether the bus has confirmed our subscription. One that did may be gone since, or lose
#: what concerns us, and nobody tells; a thousand commands that wait for long jobs ask for some thirty looks a second.
PAUSES: Mapping[bool, Pauses] = {True: Pauses(first=2.0, longest=30.0), False: Pauses(first=0.5, longest=5.0)}

#: Seconds to wait for the answer to such a read while the bus may still deliver the return.
_LOOK_PATIENCE = 2.0


class Returns(Protocol):
    """The interface of an object to which JobWatch passes the returns of one job as they arrive."""

    def add(self, minion: str, load: Mapping[str, object]) -> None:
        """Receive ``load``, the map with ``return``, ``retcode`` and more that the minion sent for the job."""

    def add_silent(self, minion: str, jid: str) -> None:
        """Record that the minion did not return the job ``jid`` in time."""


@dataclass(frozen=True, slots=True)
class _Followed:
    """One published job in a JobWatch: its JobWait, the object that receives its returns, and its Pace, which decides
    when the job cache is read.
    """

    wait: JobWait
    returns: Returns
    pace: Pace


class JobWatch:
    """Waits for the returns of any number of published jobs until each job has ended; a batch publishes several
    jobs.
    """

    def __init__(
        self, control: ControlClient, bus: EventSubscriber, clock: Callable[[], float], user: str, *, heard: bool
    ) -> None:
        """Create a watch without jobs.

        ``heard``: the bus has confirmed the subscription to job events; if False, the job cache is read more
        often. ``user``: user in whose name find_job probes are published. ``clock`` returns monotonic seconds.
        """
        self._control = control
        self._bus = bus
        self._clock = clock
        self._user = user
        self._heard = heard
        self._followed: dict[str, _Followed] = {}
        #: (time, function): calls to make later. A batch uses them to pause between its steps.
        self._later: list[tuple[float, Callable[[], None]]] = []
        #: JID of the job that was followed last; empty before the first.
        self.jid = ""
        self._do: Mapping[type[Instruction], Callable[[JobWait, Returns, Any], Iterable[Instruction]]] = {
            Show: self._show,
            Silent: self._silent,
            AskReturns: self._ask_returns,
            AskProbe: self._ask_probe,
            FindJob: self._find_job,
        }

    def follow(
        self, job: PublishAnswer, returns: Returns, *, timeout: float, gather_timeout: float, look: bool = False
    ) -> None:
        """Add a job to the watch; ``run`` passes its returns and silent minions to ``returns``.

        ``job`` is the master's answer to ``publish``. ``timeout``: seconds until silent minions are asked whether
        they still run the job. ``gather_timeout``: seconds that they have to answer this. ``look``: the job was published
        before the bus was subscribed to, so the job cache is read at once.
        """
        wait = JobWait(
            job["jid"] or "",
            job["minions"],
            job.get("missing", ()),
            timeout=timeout,
            gather_timeout=gather_timeout,
            now=self._clock(),
        )
        pace = Pace(PAUSES[self._heard], self._clock())
        if look:
            pace.at = self._clock()
        self._followed[wait.jid] = _Followed(wait, returns, pace)
        self.jid = wait.jid

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call the function ``call`` from within ``run`` after ``seconds``."""
        self._later.append((self._clock() + seconds, call))

    def run(self) -> None:
        """Handle the events and the ends of waiting times of the followed jobs; return when all jobs have ended and no
        call of ``call_later`` is pending.
        """
        while self.unfinished:
            self.step()

    @property
    def unfinished(self) -> bool:
        """Return whether a followed job has not ended, or a call of ``call_later`` is pending."""
        return bool(self._followed or self._later)

    def step(self, longest: float | None = None) -> None:
        """Wait for the next event of the bus, or for the next time at which a followed job or a call of ``call_later``
        needs work; at most ``longest`` seconds. Then handle the event or do this work.
        """
        now = self._clock()
        due = [call for when, call in self._later if when <= now]
        self._later = [one for one in self._later if one[0] > now]
        for call in due:
            call()
        followed = self._followed.values()
        times = [*(min(one.wait.deadline, one.pace.at) for one in followed), *(when for when, _ in self._later)]
        if not times:
            return
        wait = max(min(times) - self._clock(), 0.0)
        event = self._bus.next(wait if longest is None else min(wait, longest))
        # A copy, because the receiver of a return may start to follow the next job of a batch.
        for one in list(followed):
            instructions = [] if event is None else one.wait.event(*event, self._clock())
            if instructions:
                one.pace.heard(self._clock())
            elif not (instructions := one.wait.tick(self._clock())) and one.pace.at <= self._clock():
                instructions = self._look(one)
            self._carry_out(one.wait, one.returns, instructions)

    def _look(self, one: _Followed) -> list[Instruction]:
        """Read the job cache for returns that the bus lost. Return the instructions of the job's JobWait for those found.

        If the read fails while the bus works, return an empty list; without the bus raise ControlError or ControlTimeout.
        """
        found: Mapping[str, Mapping[str, object]] = {}
        patience = _LOOK_PATIENCE if self._heard else CONTROL_PATIENCE
        try:
            if pending := sorted(one.wait.pending):
                found = self._control.call("job_returns", timeout=patience, jid=one.wait.jid, minions=pending)
        except (ControlError, ControlTimeout):
            # The job cache is read again at the deadline, and that read raises the error.
            if not self._heard:
                raise
        one.pace.looked(self._clock(), found=bool(found))
        return one.wait.returns(found, self._clock()) if found else []

    def _carry_out(self, wait: JobWait, returns: Returns, instructions: Iterable[Instruction]) -> None:
        queue = deque(instructions)
        while queue:
            instruction = queue.popleft()
            if isinstance(instruction, Finish):
                del self._followed[wait.jid]
                return
            queue.extend(self._do[type(instruction)](wait, returns, instruction))

    def _show(self, wait: JobWait, returns: Returns, instruction: Show) -> Iterable[Instruction]:
        returns.add(instruction.minion, instruction.load)
        return ()

    def _silent(self, wait: JobWait, returns: Returns, instruction: Silent) -> Iterable[Instruction]:
        returns.add_silent(instruction.minion, wait.jid)
        return ()

    def _ask_returns(self, wait: JobWait, returns: Returns, instruction: AskReturns) -> Iterable[Instruction]:
        return wait.returns(self._job_returns(wait.jid, instruction.minions), self._clock())

    def _ask_probe(self, wait: JobWait, returns: Returns, instruction: AskProbe) -> Iterable[Instruction]:
        return wait.probe_returns(self._job_returns(instruction.jid), self._clock())

    def _job_returns(self, jid: str, minions: Iterable[str] | None = None) -> Mapping[str, Mapping[str, object]]:
        some = {} if minions is None else {"minions": list(minions)}
        return self._control.call("job_returns", timeout=CONTROL_PATIENCE, jid=jid, **some)

    def _find_job(self, wait: JobWait, returns: Returns, instruction: FindJob) -> Iterable[Instruction]:
        try:
            job = self._control.call(
                "publish",
                timeout=CONTROL_PATIENCE,
                tgt=list(instruction.minions),
                tgt_type="list",
                fun="saltutil.find_job",
                arg=[wait.jid],
                user=self._user,
                request_id=os.urandom(16).hex(),
            )
        except ControlError as error:
            sys.stderr.write(f"[WARNING ] whether the job still runs cannot be asked: {error}\n")
            wait.probed(None)
        else:
            wait.probed(job["jid"])
        return ()


#: Factor between two pauses: a return that only the job cache has is found after at most half of the job's time more.
_GROWTH = 1.5
