"""``salt``: publishes a job, waits for its returns and shows them as they come.

Order matters: the event bus hears us before the job is published, so no return is missed. Where the bus is away the job
cache is asked instead, twice a second.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import yaml

from saltern.cli import report
from saltern.cli.outside import Outside, no_bus, run_guarded
from saltern.cli.report import Progress
from saltern.cli.request import SaltRequest, parse_request
from saltern.kit.command.arguments import documentation
from saltern.kit.command.command_line import CommandError, Exit
from saltern.kit.command.output.flags import Printer
from saltern.kit.config.master import ClientOptions, shown
from saltern.kit.jobs.batch import run_batch
from saltern.kit.jobs.returns import NO_MATCH, retcode_of
from saltern.kit.jobs.subset import draw
from saltern.kit.jobs.watch import JobWatch
from saltern.kit.links.control import CONTROL_PATIENCE, ControlClient, ControlError, ControlTimeout
from saltern.kit.process.tracing import VARIABLE, Span, Tracing, parent_of


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
    if flags.config_dump:
        printer.say(yaml.safe_dump(shown(options), default_flow_style=False).rstrip("\n"))
        return Exit.OK
    printer.heed(request.arg)
    tracing = Tracing(options.tracing, "salt-cli")
    called = {"salt.fun": request.fun_name, "salt.tgt": str(request.tgt), "salt.tgt_type": request.tgt_type}
    try:
        with tracing.span("salt.cli.salt", parent_of(outside.env.get(VARIABLE)), "CLIENT", **called) as span:
            code = _run(request, outside, options, printer, span)
            if code:
                span.fail(f"exit code {code}")
            return code
    finally:
        tracing.close()


def _run(request: SaltRequest, outside: Outside, options: ClientOptions, printer: Printer, span: Span) -> int:
    flags = request.flags
    control = outside.control(options, config_dir=flags.config_dir)
    if flags.preview:
        return _preview(request, control, printer)
    publish = partial(_publish, request, control, options, outside, span)
    if flags.asynchronous:
        job = publish(request.tgt, request.tgt_type, request.fun, request.arg)
        if not job["jid"]:
            return _no_match(printer, request)
        printer.say(f"Executed command with job ID: {job['jid']}")
        return Exit.OK
    bus, heard = outside.connect_bus(options, flags.config_dir, "salt/job/")
    if not heard:
        sys.stderr.write(f"[WARNING ] {no_bus(options)} Returns are taken from the job cache.\n")
    watch = JobWatch(control, bus, outside.clock, outside.user(options), heard=heard)
    follow = partial(watch.follow, timeout=flags.timeout or options.timeout, gather_timeout=options.gather_job_timeout)
    returns = _Returns(request, printer, options, outside.terminal, _Memory(control))
    tgt, tgt_type = request.tgt, request.tgt_type
    try:
        if flags.subset:
            tgt = draw(tgt, tgt_type, request.fun_name, flags.subset, publish, watch, follow)
            tgt_type = "list"
            if not tgt:
                return _no_match(printer, request)
        call = (tgt, tgt_type, request.fun, request.arg)
        if size := _size_of_batch(flags, control, call):
            matched = run_batch(
                call,
                size,
                publish,
                watch,
                follow,
                returns,
                _on_stderr if _for_programs(flags) else printer.say,
                failhard=flags.failhard,
                wait=flags.batch_wait,
                expect=returns.expect,
                tell_steps=not _for_programs(flags),
            )
            return returns.close(worst=True) if matched else _no_match(printer, request)
        job = publish(*call)
        if not job["jid"]:
            return _no_match(printer, request)
        returns.expect(len(job["minions"]) + len(job.get("missing", ())))
        returns.of([*job["minions"], *job.get("missing", ())], job.get("when_back_until", 0))
        returns.announce(job["jid"])
        follow(job, returns)
        watch.run()
    except KeyboardInterrupt:
        sys.stderr.write("\nExiting gracefully on Ctrl-c\n" + (report.later(watch.jid) + "\n" if watch.jid else ""))
        return Exit.OK
    except ControlTimeout as error:
        hint = f"\n{report.later(watch.jid)}" if watch.jid else ""
        raise CommandError(f"{error}{hint}", Exit.UNAVAILABLE) from error
    return returns.close()


class _Memory:
    """What the master knows of a job that is not over, and of silent minions; nothing where this client may not ask, or the
    master is of before."""

    def __init__(self, control: ControlClient) -> None:
        self._control = control

    def known(self, minions: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Key and last sign of minions."""
        found: dict[str, dict[str, Any]] = self._asked("known", minions=list(minions))
        return found

    def parts(self, jid: str) -> Mapping[str, Mapping[str, Any]]:
        """{minion: where the job is on it}, each with the master's time (``now``)."""
        status = self._asked("job_status", jid=jid)
        return {minion: {**told, "now": status["now"]} for minion, told in status.get("minions", {}).items()}

    def come_back(self, jid: str, minion: str) -> Mapping[str, Any] | None:
        """A return that came in the last moment."""
        found: Mapping[str, Any] | None = self._asked("job_returns", jid=jid, minions=[minion]).get(minion)
        return found

    def _asked(self, cmd: str, **fields: Any) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self._control.call(cmd, timeout=CONTROL_PATIENCE, **fields)
        except ControlError:
            return {}
        return found


def _preview(request: SaltRequest, control: ControlClient, printer: Printer) -> int:
    wanted = {"tgt": request.tgt, "tgt_type": request.tgt_type, "delimiter": request.flags.delimiter}
    found = control.call("targets", timeout=CONTROL_PATIENCE, **wanted)
    minions = sorted({*found["minions"], *found["missing"]})
    if not minions:
        return _no_match(printer, request)
    printer.show(minions)
    return Exit.OK


def _size_of_batch(flags: argparse.Namespace, control: ControlClient, call: tuple[Any, str, Any, list[Any]]) -> str:
    """ "" where the job goes to all at once."""
    if flags.batch or not flags.batch_safe_limit:
        return str(flags.batch or "")
    wanted = {"tgt": call[0], "tgt_type": call[1], "delimiter": flags.delimiter}
    found = control.call("targets", timeout=CONTROL_PATIENCE, **wanted)
    return str(flags.batch_safe_size) if len(found["minions"]) >= flags.batch_safe_limit else ""


def _publish(
    request: SaltRequest,
    control: ControlClient,
    options: ClientOptions,
    outside: Outside,
    span: Span,
    tgt: Any,
    tgt_type: str,
    fun: Any,
    arg: list[Any],
) -> dict[str, Any]:
    # What is published for its own sake (a ping before a batch) goes to no returner.
    own = fun == request.fun
    job: dict[str, Any] = control.call(
        "publish",
        timeout=CONTROL_PATIENCE,
        tgt=tgt,
        tgt_type=tgt_type,
        fun=fun,
        arg=arg,
        kwargs=request.kwargs if own else {key: value for key, value in request.kwargs.items() if key == "delimiter"},
        ret=request.flags.returner if own else "",
        user=outside.user(options),
        request_id=os.urandom(16).hex(),
        **(_delivery(request) if own else {"no_replay": True}),
        **span.marked({}),
    )
    return job


def _delivery(request: SaltRequest) -> dict[str, Any]:
    """What becomes of the job on minions that do not hear it now."""
    flags = request.flags
    return {"when_back": flags.when_back} if flags.when_back else {"no_replay": True} if flags.no_replay else {}


def _for_programs(flags: argparse.Namespace) -> bool:
    """Whether lines about the job would spoil what is shown: one document (``--static``), or a document a line."""
    return bool(flags.static) or flags.out == "ndjson"


def _on_stderr(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _no_match(printer: Printer, request: SaltRequest) -> int:
    printer.say(NO_MATCH)
    if request.tgt_type == "glob" and "," in request.tgt:
        sys.stderr.write(f"'{request.tgt}' is a glob; a list of ids is: salt -L {request.tgt}\n")
    sys.stderr.write(f"{report.NO_RETURN}\n")
    return Exit.NO_RETURN


class _Returns:
    """What came back: shown at once, or kept for the end (``--static``, sys.doc)."""

    def __init__(
        self,
        request: SaltRequest,
        printer: Printer,
        options: ClientOptions,
        terminal: Callable[[str], object] | None,
        memory: _Memory,
    ) -> None:
        """``terminal``: where a progress bar can be drawn, None where there is none."""
        self._request = request
        self._memory = memory
        #: The job whose parts were asked for, and they: for all of its minions with the first silent one.
        self._parts: tuple[str, Mapping[str, Mapping[str, Any]]] = ("", {})
        #: What the master said of silent minions: asked for all of them with the first.
        self._known: dict[str, Mapping[str, Any]] = {}
        self._all: Sequence[str] = ()
        self._waits_until = 0
        #: Whether a minion did not return and is not shown (``--hide-timeout``).
        self._hidden = False
        self._printer = printer
        self._loads: dict[str, Mapping[str, Any]] = {}
        flags = request.flags
        self._progress = Progress(terminal) if terminal is not None and flags.progress else None
        self._at_end = flags.static or request.fun == "sys.doc"
        self._show_jid = flags.show_jid or options.show_jid
        self._show_timeout = options.show_timeout if flags.show_timeout is None else flags.show_timeout
        self._summary = (flags.summary or options.cli_summary) and not printer.options.out

    def announce(self, jid: str) -> None:
        """The job is published."""
        started = report.started(jid, verbose=self._request.flags.verbose, show_jid=self._show_jid)
        if started:
            (_on_stderr if _for_programs(self._request.flags) else self._printer.say)(started)

    def expect(self, minions: int) -> None:
        """So many minions are to return."""
        if self._progress is not None:
            self._progress.expect(minions)

    def of(self, minions: Sequence[str], waits_until: int = 0) -> None:
        """These are to return; ``waits_until`` (milliseconds since 1970): the job waits for those that are away."""
        self._all = minions
        self._waits_until = waits_until

    def add(self, minion: str, load: Mapping[str, Any]) -> None:
        """A minion's return."""
        self._show(minion, load)
        if self._progress is not None:
            self._progress.came(failed=bool(retcode_of(load)))

    def _show(self, minion: str, load: Mapping[str, Any]) -> None:
        self._loads[minion] = load
        if self._at_end:
            return
        if self._progress is not None:
            self._progress.clear()
        self._printer.show({minion: load["return"]}, load.get("out"), retcode=retcode_of(load))

    def add_silent(self, minion: str, jid: str) -> None:
        """A minion that did not return."""
        if self._show_timeout or self._waits_until:
            if self._parts[0] != jid:
                self._parts = (jid, self._memory.parts(jid) if jid else {})
            part = self._parts[1].get(minion)
            if part is not None and part["state"] == "returned" and (late := self._memory.come_back(jid, minion)):
                self.add(minion, late)
                return
            if minion not in self._known:
                left = [name for name in self._all if name not in self._loads]
                self._known |= {name: {} for name in [*left, minion]} | dict(self._memory.known(left or [minion]))
            self._show(minion, self._in_its_place(minion, jid, part))
        else:
            self._hidden = True
        if self._progress is not None:
            self._progress.lost()

    def _in_its_place(self, minion: str, jid: str, part: Mapping[str, Any] | None) -> dict[str, Any]:
        """Of the return that did not come. Of a minion without an accepted key nothing is waited for."""
        state, known = str((part or {}).get("state", "expected")), self._known[minion]
        if self._waits_until and state in report.WAITED_FOR and known.get("key", "accepted") == "accepted":
            return report.waits(jid, self._waits_until, known)
        return report.no_response(jid, known, part)

    def close(self, *, worst: bool = False) -> int:
        """Shows what was kept for the end; the exit code. ``worst``: the largest of the minions' codes, as for batches."""
        if self._progress is not None:
            self._progress.clear()
        if not self._loads:
            sys.stderr.write(f"{report.NO_RETURN}\n")
            return Exit.NO_RETURN
        flags = self._request.flags
        if self._request.fun == "sys.doc":
            return self._close_documentation()
        if flags.static:
            together = {minion: load["return"] for minion, load in self._loads.items()}
            self._printer.show(together, fun=self._request.fun_name, static=True)
        if self._summary:
            self._printer.say(report.summary(self._loads, verbose=flags.verbose))
        code = self._code()
        return max(map(retcode_of, self._loads.values())) & 0xFF or code if worst else code

    def _close_documentation(self) -> int:
        for fun, text in report.documentation(self._loads):
            if self._printer.options.out:
                self._printer.show({fun: text})
            else:
                self._printer.say(documentation(fun, text))
        return self._code()

    def _code(self) -> int:
        if self._hidden or any(retcode_of(load) for load in self._loads.values()):
            sys.stderr.write(f"{report.FAILED}\n")
            return Exit.GENERIC
        return Exit.OK
