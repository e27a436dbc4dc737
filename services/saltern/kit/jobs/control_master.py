"""The master as an orchestration or an engine uses it: implements the interface ``statecore.model.ports.Master``, by which
jobs, runners and wheel functions are started and events are read.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from saltern.kit.command.arguments import on_the_wire
from saltern.kit.config.master import MasterOptions
from saltern.kit.jobs.batch import Follow, run_batch
from saltern.kit.jobs.returns import retcode_of
from saltern.kit.jobs.runner_results import runner_results
from saltern.kit.jobs.subset import draw
from saltern.kit.jobs.watch import JobWatch
from saltern.kit.links.answers import PublishAnswer, RunnerAnswer
from saltern.kit.links.control import CONTROL_PATIENCE, ControlClient, ControlError, ControlTimeout
from saltern.kit.links.event_bus import EventSender, EventSubscriber
from saltwire import tags
from statecore.model.errors import CommandError
from statecore.model.ports import MasterCall, MinionJob

_LOG = logging.getLogger("saltern.runner")

#: Longest wait for an event before a stream of returns says that nothing has arrived, in seconds.
_STREAM_TICK = 0.25

#: Seconds to wait until the event bus confirms a subscription; after that the job cache is polled instead.
_BUS_PATIENCE = 2.0


class MasterLinks(Protocol):
    """The connections of one process to its master: port 4507 and the event bus."""

    @property
    def options(self) -> MasterOptions:
        """Options of the master."""

    @property
    def control(self) -> ControlClient:
        """Client for the master's port 4507."""

    @property
    def events(self) -> EventSubscriber:
        """Receiver of the events of the master's bus."""

    @property
    def sender(self) -> EventSender:
        """Sender that fires events on the master's bus."""

    @property
    def user(self) -> str:
        """User in whose name jobs are published and runners are started."""


class ControlMaster:
    """Sends requests to the master's port 4507, as an operator does, and reads the event bus.

    A forked child opens its own connections.
    """

    def __init__(self, links: MasterLinks, jid: str, reopened: Callable[[], MasterLinks]) -> None:
        """Store the connections. ``jid``: the JID of the orchestration that uses the object; empty if none does.
        ``reopened`` opens the connections of a forked child.
        """
        self._links = links
        self._reopened = reopened
        self._pid = os.getpid()
        self._jid = jid
        self._heard: dict[str, bool] = {}

    @property
    def jid(self) -> str:
        """Return the JID of the orchestration."""
        return self._jid

    def fire(self, tag: str, data: Mapping[str, object]) -> bool:
        """Fire an event; return whether the event bus accepted it."""
        return self._here().sender.fire(tag, data)

    def ask(self, job: MinionJob, announced: Mapping[str, object]) -> dict[str, dict[str, object]]:
        """Publish a job, wait for it, and return {minion id: {ret, retcode, jid, out}}.

        With ``expected`` a minion that did not return has {failed: True, out: "no_return", jid}. Raises CommandError.
        """
        links = self._here()
        arguments = {
            **{name: value for name, value in job._asdict().items() if name not in ("fun", "passed_on", "expected")},
            **job.passed_on,
        }
        self._announce({**announced, "args": arguments})
        answers = _MinionReturns(expected=job.expected)
        watch = JobWatch(links.control, links.events, time.monotonic, links.user, heard=self._hears(links, "salt/job/"))
        follow = partial(
            watch.follow,
            timeout=links.options.timeout if job.timeout is None else float(job.timeout),
            gather_timeout=links.options.gather_job_timeout,
        )
        publish = partial(_publish, links, job)
        arg = on_the_wire(list(job.arg), dict(job.kwarg))
        try:
            tgt, tgt_type = job.tgt, job.tgt_type
            if job.subset:
                tgt, tgt_type = draw(tgt, tgt_type, job.fun, int(job.subset), publish, watch, follow), "list"
                if not tgt:
                    return {}
            if job.batch is not None:
                call = (tgt, tgt_type, job.fun, arg)
                run_batch(call, job.batch, publish, watch, follow, answers, _LOG.info, failhard=job.failhard)
            else:
                _follow(publish(tgt, tgt_type, job.fun, arg), follow, watch, answers)
        except ControlError as error:
            raise CommandError(error.message) from error
        except ControlTimeout as error:
            raise CommandError(str(error)) from error
        except ValueError as error:
            raise CommandError(f"'{job.batch}' is neither a number of minions nor a percentage") from error
        return dict(sorted(answers.found.items()))

    def publish(self, job: MinionJob) -> dict[str, object]:
        """Publish a job without waiting for its returns; return {"jid", "minions"}, or {} if no minion matched.

        Raises CommandError.
        """
        try:
            done = _publish(
                self._here(), job, job.tgt, job.tgt_type, job.fun, on_the_wire(list(job.arg), dict(job.kwarg))
            )
        except ControlError as error:
            raise CommandError(error.message) from error
        except ControlTimeout as error:
            raise CommandError(str(error)) from error
        return {"jid": str(done["jid"]), "minions": list(done["minions"])} if done["jid"] else {}

    def follow(
        self, jid: str, minions: Sequence[str], timeout: float | None
    ) -> Iterator[tuple[str, dict[str, object]] | None]:
        """Yield (minion id, {ret, retcode, jid, out}) for each return of a job that was published before, when the
        return arrives.

        For a minion that does not return within ``timeout`` seconds, the map is {failed: True, out: "no_return", jid}.
        None is yielded whenever nothing has arrived for a moment. Raises CommandError.
        """
        links = self._here()
        answers = _MinionReturns(expected=True)
        watch = JobWatch(links.control, links.events, time.monotonic, links.user, heard=self._hears(links, "salt/job/"))
        watch.follow(
            {"jid": jid, "minions": list(minions), "missing": []},
            answers,
            timeout=links.options.timeout if timeout is None else float(timeout),
            gather_timeout=links.options.gather_job_timeout,
            look=True,
        )
        told: set[str] = set()
        while watch.unfinished or len(told) < len(answers.found):
            try:
                if watch.unfinished:
                    watch.step(_STREAM_TICK)
            except (ControlError, ControlTimeout) as error:
                raise CommandError(str(error)) from error
            new = [name for name in answers.found if name not in told]
            told.update(new)
            yield from ((name, answers.found[name]) for name in new)
            if not new and watch.unfinished:
                yield None

    def start(self, call: MasterCall) -> dict[str, str]:
        """Start a runner without waiting for it. Return {"jid": its JID, "tag": prefix of the tags of its events}.
        Raises CommandError if the master refuses the call.
        """
        started = self._start(self._here(), call)
        if isinstance(started, str):
            raise CommandError(started)
        return {"jid": str(started["jid"]), "tag": str(started["tag"])}

    def run(self, calls: Sequence[MasterCall]) -> list[dict[str, object]]:
        """Run several runners at the same time and return their results in order.

        A runner that the master refuses has the result {"return": reason, "success": False}. Raises CommandError.
        """
        links = self._here()
        heard = self._hears(links, "salt/run/")
        started: list[RunnerAnswer | str] = []
        for call in calls:
            announced = {"type": "runner", "name": call.fun, "args": list(call.arg), "kwargs": dict(call.kwarg)}
            self._announce(announced)
            started.append(self._start(links, call))
        try:
            jobs = [job for job in started if not isinstance(job, str)]
            found = runner_results(jobs, links.control, links.events, time.monotonic, links.options.id, heard=heard)
        except (ControlError, ControlTimeout) as error:
            raise CommandError(str(error)) from error
        return [
            {"return": job, "success": False} if isinstance(job, str) else dict(found[job["jid"]]) for job in started
        ]

    def wheel(self, call: MasterCall) -> dict[str, object]:
        """Call a wheel function. Return {"return": value, "success": True}; if it fails, {"return": text of the error,
        "success": False}.
        """
        links = self._here()
        announced = {"type": "wheel", "name": call.fun, "args": dict(call.kwarg)}
        self._announce(announced)
        try:
            asked = {"fun": call.fun, "kwarg": dict(call.kwarg), "user": links.user}
            value = links.control.call("wheel", timeout=CONTROL_PATIENCE, **asked)
        except (ControlError, ControlTimeout) as error:
            return {"return": str(error), "success": False}
        return {"return": value, "success": True}

    def events(self, prefix: str, seconds: float) -> Iterator[tuple[str, Mapping[str, object]]]:
        """Yield (tag, data) of the events of the master's bus whose tags start with the prefix, for ``seconds``
        seconds.
        """
        links = self._here()
        deadline = time.monotonic() + seconds
        while not self._hears(links, prefix) and time.monotonic() < deadline:
            # The event publisher restarts: events fired meanwhile are lost.
            self._heard.pop(prefix, None)
        while (left := deadline - time.monotonic()) > 0:
            event = links.events.next(left)
            if event is not None:
                yield event

    def orders(self) -> dict[str, dict[str, object]]:
        """Return {}: operators give orders (pause, resume, kill) to orchestrations only."""
        return {}

    def end_orders(self) -> None:
        """Do nothing: operators give orders to orchestrations only."""

    def _here(self) -> MasterLinks:
        """Return the connections of this process; a forked child first opens connections of its own."""
        if os.getpid() != self._pid:
            self._links, self._pid, self._heard = self._reopened(), os.getpid(), {}
        return self._links

    def _announce(self, data: Mapping[str, object]) -> None:
        """Fire the event ``salt/run/<jid>/args`` with which an orchestration announces a call. Without an
        orchestration nothing is fired.
        """
        if self._jid:
            self._here().sender.fire(f"{tags.run(self._jid)}/args", data)

    def _hears(self, links: MasterLinks, prefix: str) -> bool:
        if prefix not in self._heard:
            links.events.subscribe(prefix)
            self._heard[prefix] = links.events.ready(_BUS_PATIENCE)
        return self._heard[prefix]

    @staticmethod
    def _start(links: MasterLinks, call: MasterCall) -> RunnerAnswer | str:
        """Start a runner of the orchestration. Return the master's answer ({jid, tag}), or the text of its refusal."""
        try:
            return links.control.call(
                "runner",
                timeout=CONTROL_PATIENCE,
                fun=call.fun,
                arg=list(call.arg),
                kwarg=dict(call.kwarg),
                user=links.user,
                request_id=os.urandom(16).hex(),
            )
        except (ControlError, ControlTimeout) as error:
            return str(error)


class _MinionReturns:
    """Collects the returns of an orchestration's job in ``found``: {minion id: {ret, retcode, jid, out}}."""

    def __init__(self, *, expected: bool) -> None:
        self.found: dict[str, dict[str, object]] = {}
        self._expected = expected

    def add(self, minion: str, load: Mapping[str, object]) -> None:
        """Store the return ``load`` of a minion in ``found`` as {ret, retcode, jid, out}; ``out`` only if the return
        names an outputter.
        """
        answer = {"ret": load["return"], "retcode": retcode_of(load), "jid": load.get("jid", "")}
        self.found[minion] = answer | ({"out": load["out"]} if load.get("out") else {})

    def add_silent(self, minion: str, jid: str) -> None:
        """Add a minion that did not return to ``found``, as {failed: True, out: "no_return", jid}, if its return was expected."""
        if self._expected:
            self.found[minion] = {"failed": True, "out": "no_return", "jid": jid}


def _follow(job: PublishAnswer, follow: Follow, watch: JobWatch, answers: _MinionReturns) -> None:
    if job["jid"]:
        follow(job, answers)
        watch.run()


def _publish(
    links: MasterLinks, job: MinionJob, tgt: object, tgt_type: str, fun: object, arg: list[object]
) -> PublishAnswer:
    own = fun == job.fun
    return links.control.call(
        "publish",
        timeout=CONTROL_PATIENCE,
        tgt=tgt,
        tgt_type=tgt_type,
        fun=fun,
        arg=arg,
        kwargs=dict(job.passed_on) if own else {},
        ret=job.ret if own else "",
        user=links.user,
        request_id=os.urandom(16).hex(),
    )
