"""Publishes jobs, starts runners and waits for their results, on an asyncio loop. ``kit.jobs.wait`` decides what to do
next; this module does it.

Returns arrive as events of the bus. A return whose event was lost is found in the job cache at the next time at which
the job cache is read.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from saltern.kit.jobs.batch import Window, batch_size
from saltern.kit.jobs.job_feed import JobFeed
from saltern.kit.jobs.returns import retcode_of
from saltern.kit.jobs.wait import TRIMMED, AskProbe, AskReturns, FindJob, Finish, Instruction, JobWait, Show, Silent
from saltern.kit.jobs.watch import PAUSES, Pace
from saltern.kit.links.answers import PublishAnswer, RunnerAnswer
from saltern.kit.links.control import CONTROL_PATIENCE, ControlError


class RequestLink(Protocol):
    """A connection to the master that sends its commands, such as ``publish`` and ``job_returns``."""

    async def call(self, cmd: str, *, timeout: float = CONTROL_PATIENCE, once: bool = False, **fields: object) -> Any:
        """Send a command with its fields and return the value of the answer. Raises ControlError, ControlTimeout."""


class JobLimits(Protocol):
    """The master's options that a wait for jobs and runners needs."""

    @property
    def gather_job_timeout(self) -> float:
        """Seconds that silent minions have to answer whether they still run a job."""

    @property
    def id(self) -> str:
        """Id of the master, under which it stores the results of runners."""


#: Events (tag, data) of a job that came before somebody waited for it; None if some may be missing.
EarlyEvents: TypeAlias = Sequence[tuple[str, Mapping[str, object]]] | None


@dataclass(frozen=True)
class JobCall:
    """A job that a user wants to publish: target, function and arguments, and further fields of the publication."""

    tgt: object
    tgt_type: str
    fun: object
    arg: Sequence[object] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JobReturn:
    """The return of one minion for a job: the load that the minion sent, or None if it did not return in time."""

    minion: str
    jid: str
    load: Mapping[str, object] | None


class JobRuns:
    """Publishes jobs and starts runners for one user."""

    def __init__(
        self,
        link: RequestLink,
        feed: JobFeed,
        options: JobLimits,
        rights: Mapping[str, Any],
        *,
        heard: bool = True,
        runner_look: float = 0.05,
    ) -> None:
        """Store the connections. ``rights``: fields of each command that say for whom it acts, ``token`` or ``user``.

        ``heard``: the feed gets the events of jobs; if False, the job cache is read more often. ``runner_look``: seconds
        until the job cache is read for a runner's result a second time.
        """
        self._link = link
        self._feed = feed
        self._options = options
        self._rights = rights
        self._heard = heard
        self._runner_look = runner_look

    async def publish(self, call: JobCall) -> PublishAnswer:
        """Publish a job and return the master's answer {jid, minions, missing}; ``jid`` is None if no minion matches."""
        answer: PublishAnswer = await self._link.call(
            "publish",
            **self._rights,
            tgt=call.tgt,
            tgt_type=call.tgt_type,
            fun=call.fun,
            arg=list(call.arg),
            kwargs=dict(call.kwargs),
            request_id=os.urandom(16).hex(),
            **call.fields,
        )
        return answer

    async def returns(self, call: JobCall, timeout: float) -> AsyncIterator[JobReturn]:
        """Publish a job and yield a JobReturn for each minion when its return arrives. Minions that do not return come
        last, with the load None.
        """
        with self._feed.expecting() as since:
            job = await self.publish(call)
            early = self._feed.early(str(job["jid"]), since)
        if not job["jid"]:
            # No job was published, so that there is none in which a minion of a list could be silent.
            return
        async for found in self.follow(job, timeout, early=early):
            if found is not None:
                yield found

    async def follow(
        self, job: PublishAnswer, timeout: float, tick: float = math.inf, *, early: EarlyEvents = None
    ) -> AsyncIterator[JobReturn | None]:
        """Yield a JobReturn for each minion of a job that was published before, when its return arrives or has arrived.
        Minions that do not return come last, with the load None. None is yielded whenever nothing has arrived for
        ``tick`` seconds.

        ``timeout``: seconds until silent minions are asked whether they still run the job. ``early``: the job's events until now,
        each (tag, data); None if they are not known, so that the job cache is read first.
        """
        jid = str(job["jid"])
        wait = JobWait(
            jid,
            job["minions"],
            job.get("missing", ()),
            timeout=timeout,
            gather_timeout=self._options.gather_job_timeout,
            now=time.monotonic(),
        )
        events: asyncio.Queue[tuple[str, Mapping[str, object]]] = asyncio.Queue()
        followed = {jid}

        def receive(tag: str, data: Mapping[str, object]) -> None:
            events.put_nowait((tag, data))

        self._feed.wait_for(jid, receive)
        try:
            queue: deque[Instruction] = deque()
            if early is None or not self._heard:
                # Returns may have come between the publication and the line above.
                queue.append(AskReturns())
            for tag, data in early or ():
                queue.extend(wait.event(tag, data, time.monotonic()))
            pace = Pace(PAUSES[self._heard], time.monotonic())
            while True:
                while queue:
                    instruction = queue.popleft()
                    if isinstance(instruction, Show):
                        yield JobReturn(instruction.minion, jid, instruction.load)
                    elif isinstance(instruction, Silent):
                        yield JobReturn(instruction.minion, jid, None)
                    elif isinstance(instruction, Finish):
                        return
                    else:
                        queue.extend(await self._ask(wait, instruction, receive, followed))
                left = min(wait.deadline, pace.at) - time.monotonic()
                try:
                    tag, data = await asyncio.wait_for(events.get(), max(min(left, tick), 0.001))
                    queue.extend(wait.event(tag, data, time.monotonic()))
                    if queue:
                        pace.heard(time.monotonic())
                except TimeoutError:
                    queue.extend(wait.tick(time.monotonic()))
                    if not queue and time.monotonic() >= pace.at and wait.pending:
                        queue.extend(await self._look(wait, pace))
                    if not queue and tick < math.inf:
                        yield None
        finally:
            for each in followed:
                self._feed.forget(each, receive)

    async def _look(self, wait: JobWait, pace: Pace) -> list[Instruction]:
        """Read the job cache for returns that the bus lost, and return the instructions for those found."""
        found = await self._job_returns(wait.jid, sorted(wait.pending))
        pace.looked(time.monotonic(), found=bool(found))
        return wait.returns(found, time.monotonic()) if found else []

    async def _ask(
        self, wait: JobWait, instruction: Instruction, receive: Any, followed: set[str]
    ) -> list[Instruction]:
        if isinstance(instruction, FindJob):
            try:
                probe = await self.publish(JobCall(list(instruction.minions), "list", "saltutil.find_job", [wait.jid]))
            except ControlError:
                wait.probed(None)
                return []
            wait.probed(probe["jid"])
            if probe["jid"]:
                followed.add(str(probe["jid"]))
                self._feed.wait_for(str(probe["jid"]), receive)
            return []
        if isinstance(instruction, AskProbe):
            found = await self._job_returns(instruction.jid, None)
            return wait.probe_returns(found, time.monotonic())
        assert isinstance(instruction, AskReturns)
        return wait.returns(await self._job_returns(wait.jid, instruction.minions), time.monotonic())

    async def _job_returns(self, jid: str, minions: Sequence[str] | None) -> Mapping[str, Mapping[str, object]]:
        some: dict[str, Any] = {} if minions is None else {"minions": list(minions)}
        found: Mapping[str, Mapping[str, object]] = await self._link.call(
            "job_returns", **self._rights, jid=jid, **some
        )
        return found

    async def drawn(self, call: JobCall, count: int, timeout: float) -> list[str]:
        """Return the ids of at most ``count`` minions, chosen at random from those minions of the target that answer
        and have the function.
        """
        fun = str(call.fun)
        asked = JobCall(call.tgt, call.tgt_type, "sys.list_functions", [fun.partition(".")[0]], call.kwargs)
        capable = []
        async for found in self.returns(asked, timeout):
            listed = found.load["return"] if found.load is not None else None
            if isinstance(listed, list) and fun in listed:
                capable.append(found.minion)
        return sorted(random.sample(capable, min(count, len(capable))))

    async def batch(
        self, call: JobCall, size: str, timeout: float, *, failhard: bool, wait: float
    ) -> AsyncIterator[JobReturn]:
        """Run a job on at most ``size`` minions of the target at a time; yield a JobReturn for each minion. ``size``:
        a number ("3") or a percentage ("50%").

        Minions that do not answer a ping beforehand do not get the job. Raises ValueError for a malformed ``size``.
        """
        batch_size(size, 1)
        ping = JobCall(
            call.tgt, call.tgt_type, "test.ping", [], {k: v for k, v in call.kwargs.items() if k == "delimiter"}
        )
        alive = sorted([found.minion async for found in self.returns(ping, timeout) if found.load is not None])
        if not alive:
            return
        window = Window(alive, batch_size(size, len(alive)))
        running: set[asyncio.Task[JobReturn]] = set()

        async def one(minion: str) -> JobReturn:
            only = JobCall([minion], "list", call.fun, call.arg, call.kwargs, call.fields)
            found = [each async for each in self.returns(only, timeout)]
            return found[0] if found else JobReturn(minion, "", None)

        try:
            while True:
                running |= {asyncio.create_task(one(minion)) for minion in window.admit()}
                if not running:
                    return
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    found = task.result()
                    yield found
                    if failhard and (found.load is None or retcode_of(found.load)):
                        window.close()
                    if wait:
                        await asyncio.sleep(wait)
                    window.leave(found.minion)
        finally:
            for task in running:
                task.cancel()

    async def start_runner(self, fun: str, arg: Sequence[object], kwarg: Mapping[str, object]) -> RunnerAnswer:
        """Start a runner without waiting for it. Return {"tag": prefix of the tags of its events, "jid": JID}."""
        answer: RunnerAnswer = await self._link.call(
            "runner", **self._rights, fun=fun, arg=list(arg), kwarg=dict(kwarg), request_id=os.urandom(16).hex()
        )
        return answer

    async def runner(
        self, fun: str, arg: Sequence[object], kwarg: Mapping[str, object], timeout: float
    ) -> tuple[str, Mapping[str, object]]:
        """Run a runner, wait for its end, and return (tag, data) of the event with its result. Raises TimeoutError
        after ``timeout`` seconds; 0: no limit.
        """
        with self._feed.expecting() as since:
            started = await self.start_runner(fun, arg, kwarg)
            early = self._feed.early(str(started["jid"]), since)
        jid, tag = started["jid"], f"{started['tag']}/ret"
        ended: asyncio.Queue[Mapping[str, object]] = asyncio.Queue()

        def receive(event: str, data: Mapping[str, object]) -> None:
            if event == tag:
                ended.put_nowait(data)

        self._feed.wait_for(jid, receive)
        for event, data in early or ():
            receive(event, data)
        end = time.monotonic() + (timeout or sys.maxsize)
        pause = self._runner_look
        # Unless its events until now are known, the runner may have ended before the event was waited for.
        look = early is None or not self._heard
        try:
            while True:
                if look:
                    stored = await self._job_returns(jid, None)
                    if stored:
                        return tag, stored.get(self._options.id) or next(iter(stored.values()))
                look = True
                if time.monotonic() >= end:
                    raise TimeoutError
                try:
                    data = await asyncio.wait_for(ended.get(), min(pause, end - time.monotonic()))
                    if data.get("return") != TRIMMED:
                        return tag, data
                except TimeoutError:
                    pause = min(pause * 2, 5.0)
        finally:
            self._feed.forget(jid, receive)
