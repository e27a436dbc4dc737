"""Moves events and answers between the outside and the waits for jobs, until every wait is over."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from services.kit.bus import EventSubscriber
from services.kit.control import CONTROL_PATIENCE, ControlClient, ControlError
from services.kit.jobs.wait import AskReturns, FindJob, Finish, Instruction, JobWait, Show, Silent

#: Seconds between looks into the job cache while there is no event bus.
_LOOK_EVERY = 0.5


class Returns(Protocol):
    """Takes what a wait reports."""

    def add(self, minion: str, load: Mapping[str, Any]) -> None:
        """A minion's return."""

    def add_silent(self, minion: str, jid: str) -> None:
        """A minion that did not return."""


class Watch:
    """Follows any number of jobs at once (a batch follows one for each step)."""

    def __init__(
        self, control: ControlClient, bus: EventSubscriber, clock: Callable[[], float], user: str, *, heard: bool
    ) -> None:
        """``heard``: the bus has confirmed our subscription; else the job cache is looked into instead."""
        self._control = control
        self._bus = bus
        self._clock = clock
        self._user = user
        self._heard = heard
        self._followed: dict[str, tuple[JobWait, Returns]] = {}
        #: (when, what): calls of the future; so a batch pauses between its steps.
        self._later: list[tuple[float, Callable[[], None]]] = []
        #: The job that was followed last; empty before the first.
        self.jid = ""
        self._do: Mapping[type[Instruction], Callable[[JobWait, Returns, Any], Iterable[Instruction]]] = {
            Show: self._show,
            Silent: self._silent,
            AskReturns: self._ask_returns,
            FindJob: self._find_job,
        }

    def follow(self, job: Mapping[str, Any], returns: Returns, *, timeout: float, gather_timeout: float) -> None:
        """Starts to wait for a job as the master's answer to ``publish`` describes it."""
        wait = JobWait(
            job["jid"],
            job["minions"],
            job.get("missing", ()),
            timeout=timeout,
            gather_timeout=gather_timeout,
            now=self._clock(),
        )
        self._followed[wait.jid] = (wait, returns)
        self.jid = wait.jid

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Calls it, from within ``run``, when the time has passed."""
        self._later.append((self._clock() + seconds, call))

    def run(self) -> None:
        """Returns when no job is left to wait for, and nothing to be called."""
        while self._followed or self._later:
            self._turn()

    def _turn(self) -> None:
        now = self._clock()
        due = [call for when, call in self._later if when <= now]
        self._later = [one for one in self._later if one[0] > now]
        for call in due:
            call()
        times = [*(wait.deadline for wait, _ in self._followed.values()), *(when for when, _ in self._later)]
        if not times:
            return
        deadline = min(times)
        left = max(deadline - self._clock(), 0.0)
        event = self._bus.next(left if self._heard else min(left, _LOOK_EVERY))
        # A copy: what a return is given to may start to follow the next job of a batch.
        for wait, returns in list(self._followed.values()):
            instructions: list[Instruction] = []
            if event is not None:
                instructions += wait.event(*event, self._clock())
            elif not self._heard:
                instructions.append(AskReturns())
            self._carry_out(wait, returns, instructions or wait.tick(self._clock()))

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
        found = self._control.call("job_returns", timeout=CONTROL_PATIENCE, jid=wait.jid)
        return wait.returns(found, self._clock())

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
            job = {"jid": None}
        wait.probed(job["jid"])
        return ()
