"""``salt``: publishes a job, waits for its returns and shows them as they come.

Order matters: the event bus hears us before the job is published, so no return is missed. Where the bus is away the job
cache is asked instead, twice a second.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from services.cli import report
from services.cli.outside import CONTROL_PATIENCE, Outside, no_bus, run_guarded
from services.cli.request import SaltRequest, parse_request
from services.cli.wait import AskReturns, FindJob, Finish, Instruction, JobWait, Show, Silent
from services.kit.bus import EventSubscriber
from services.kit.commandline import CommandError, Exit
from services.kit.config import ClientOptions
from services.kit.control import ControlClient, ControlError, ControlTimeout
from services.kit.output.flags import Printer

#: Seconds between looks into the job cache while there is no event bus.
_LOOK_EVERY = 0.5


def main() -> int:
    """Entry point of ``salt``; returns the exit code."""
    return run(sys.argv[1:])


def run(argv: Sequence[str], outside: Outside | None = None) -> int:
    """``salt`` with these words."""
    return run_guarded(lambda: _salt(parse_request(argv), outside or Outside()))


def _salt(request: SaltRequest, outside: Outside) -> int:
    flags = request.flags
    options = outside.load(flags.config_dir)
    printer = Printer(flags, options, outside.env)
    control = outside.control(options, config_dir=flags.config_dir)
    if flags.asynchronous:
        job = _publish(request, control, options, outside)
        if not job["jid"]:
            return _no_match(printer)
        printer.say(f"Executed command with job ID: {job['jid']}")
        return Exit.OK
    bus, heard = outside.connect_bus(options, flags.config_dir, "salt/job/")
    if not heard:
        sys.stderr.write(f"[WARNING ] {no_bus(options)} Returns are taken from the job cache.\n")
    job = _publish(request, control, options, outside)
    if not job["jid"]:
        return _no_match(printer)
    started = report.started(job["jid"], verbose=flags.verbose, show_jid=flags.show_jid)
    if started:
        printer.say(started)
    timeout = flags.timeout or options.timeout
    wait = JobWait(
        job["jid"],
        job["minions"],
        job.get("missing", ()),
        timeout=timeout,
        gather_timeout=options.gather_job_timeout,
        now=outside.clock(),
    )
    returns = _Returns(request, printer, job["jid"])
    try:
        _Watch(wait, returns, control, bus, outside, options).run(heard=heard)
    except KeyboardInterrupt:
        sys.stderr.write(report.interrupted(job["jid"]) + "\n")
        return Exit.OK
    except ControlTimeout as error:
        raise CommandError(f"{error}{report.interrupted(job['jid'])}", Exit.UNAVAILABLE) from error
    return returns.close()


def _publish(request: SaltRequest, control: ControlClient, options: ClientOptions, outside: Outside) -> dict[str, Any]:
    job: dict[str, Any] = control.call(
        "publish",
        timeout=CONTROL_PATIENCE,
        tgt=request.tgt,
        tgt_type=request.tgt_type,
        fun=request.fun,
        arg=request.arg,
        kwargs=request.kwargs,
        ret=request.flags.returner,
        user=outside.user(options),
        request_id=os.urandom(16).hex(),
    )
    return job


def _no_match(printer: Printer) -> int:
    printer.say(report.NO_MATCH)
    sys.stderr.write(f"{report.NO_RETURN}\n")
    return Exit.NO_RETURN


class _Returns:
    """What came back: shown at once, or kept for the end (``--static``, sys.doc)."""

    def __init__(self, request: SaltRequest, printer: Printer, jid: str) -> None:
        self._request = request
        self._printer = printer
        self._jid = jid
        self._loads: dict[str, Mapping[str, Any]] = {}
        self._at_end = request.flags.static or request.fun == "sys.doc"

    def add(self, minion: str, load: Mapping[str, Any]) -> None:
        """A minion's return."""
        self._loads[minion] = load
        if not self._at_end:
            self._printer.show({minion: load["return"]}, load.get("out"), retcode=report.retcode_of(load))

    def add_silent(self, minion: str) -> None:
        """A minion that did not return."""
        if self._request.flags.show_timeout:
            self.add(minion, report.no_response(self._jid))

    def close(self) -> int:
        """Shows what was kept for the end; the exit code."""
        if not self._loads:
            sys.stderr.write(f"{report.NO_RETURN}\n")
            return Exit.NO_RETURN
        flags = self._request.flags
        if self._request.fun == "sys.doc":
            return self._close_documentation()
        if flags.static:
            together = {minion: load["return"] for minion, load in self._loads.items()}
            self._printer.show(together, fun=self._request.fun_name, static=True)
        if flags.summary and not flags.out:
            self._printer.say(report.summary(self._loads, verbose=flags.verbose))
        return self._code()

    def _close_documentation(self) -> int:
        for fun, text in report.documentation(self._loads):
            if self._request.flags.out:
                self._printer.show({fun: text})
            else:
                self._printer.say(f"{fun}:\n{text}\n")
        return self._code()

    def _code(self) -> int:
        if any(report.retcode_of(load) for load in self._loads.values()):
            sys.stderr.write(f"{report.FAILED}\n")
            return Exit.GENERIC
        return Exit.OK


class _Watch:
    """Moves events and answers between the outside and the wait, until the wait is over."""

    def __init__(
        self,
        wait: JobWait,
        returns: _Returns,
        control: ControlClient,
        bus: EventSubscriber,
        outside: Outside,
        options: ClientOptions,
    ) -> None:
        self._wait = wait
        self._returns = returns
        self._control = control
        self._bus = bus
        self._clock = outside.clock
        self._user = outside.user(options)
        self._do: Mapping[type[Instruction], Callable[[Any], Iterable[Instruction]]] = {
            Show: self._show,
            Silent: self._silent,
            AskReturns: self._ask_returns,
            FindJob: self._find_job,
        }

    def run(self, *, heard: bool) -> None:
        """Returns when nothing is left to wait for. ``heard``: events come; else the job cache is looked into."""
        # Returns of minions that were faster than the answer to the publish are among the events already.
        while True:
            left = max(self._wait.deadline - self._clock(), 0.0)
            event = self._bus.next(left if heard else min(left, _LOOK_EVERY))
            instructions: list[Instruction] = []
            if event is not None:
                instructions += self._wait.event(*event, self._clock())
            elif not heard:
                instructions += self._ask_returns(AskReturns())
            if not self._carry_out([*instructions, *self._wait.tick(self._clock())]):
                return

    def _carry_out(self, instructions: Iterable[Instruction]) -> bool:
        queue = deque(instructions)
        while queue:
            instruction = queue.popleft()
            if isinstance(instruction, Finish):
                return False
            queue.extend(self._do[type(instruction)](instruction))
        return True

    def _show(self, instruction: Show) -> Iterable[Instruction]:
        self._returns.add(instruction.minion, instruction.load)
        return ()

    def _silent(self, instruction: Silent) -> Iterable[Instruction]:
        self._returns.add_silent(instruction.minion)
        return ()

    def _ask_returns(self, instruction: AskReturns) -> Iterable[Instruction]:
        found = self._control.call("job_returns", timeout=CONTROL_PATIENCE, jid=self._wait.jid)
        return self._wait.returns(found, self._clock())

    def _find_job(self, instruction: FindJob) -> Iterable[Instruction]:
        try:
            job = self._control.call(
                "publish",
                timeout=CONTROL_PATIENCE,
                tgt=list(instruction.minions),
                tgt_type="list",
                fun="saltutil.find_job",
                arg=[self._wait.jid],
                user=self._user,
                request_id=os.urandom(16).hex(),
            )
        except ControlError as error:
            sys.stderr.write(f"[WARNING ] whether the job still runs cannot be asked: {error}\n")
            job = {"jid": None}
        self._wait.probed(job["jid"])
        return ()
