"""The returns of one ``salt`` command on the terminal: printed as they arrive, or together at the end (``--static``, ``sys.doc``).

For each minion that does not return, the master is asked for the state of the job on that minion, and the answer is printed
in place of the return.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from saltern.cli import report
from saltern.cli.report import Progress
from saltern.cli.request import SaltRequest
from saltern.kit.command.arguments import documentation
from saltern.kit.command.command_line import Exit
from saltern.kit.command.output.flags import Printer
from saltern.kit.config.master import ClientOptions
from saltern.kit.jobs.returns import retcode_of
from saltern.kit.links.answers import MinionAnswer
from saltern.kit.links.control import CONTROL_PATIENCE, ControlClient, ControlError


class JobLookup:
    """Asks the master about minions that do not return a job. If the master refuses a request, the returned map is
    empty.
    """

    def __init__(self, control: ControlClient) -> None:
        self._control = control

    def known(self, minions: Sequence[str]) -> Mapping[str, MinionAnswer]:
        """Return the map of minion id to {"key": state of its key, "age": seconds since the master heard of it}."""
        try:
            return self._control.call("known", timeout=CONTROL_PATIENCE, minions=list(minions))
        except ControlError:
            return {}

    def parts(self, jid: str) -> Mapping[str, report.JobPart]:
        """Return {minion id: JobPart}: the state of the job on each of its minions, and the master's time; {} for a refusal."""
        try:
            status = self._control.call("job_status", timeout=CONTROL_PATIENCE, jid=jid)
        except ControlError:
            return {}
        return {minion: {**state, "now": status["now"]} for minion, state in status.get("minions", {}).items()}

    def late_return(self, jid: str, minion: str) -> Mapping[str, object] | None:
        """Return the minion's return from the job cache; None if there is none."""
        try:
            returns = self._control.call("job_returns", timeout=CONTROL_PATIENCE, jid=jid, minions=[minion])
        except ControlError:
            return None
        return returns.get(minion)


def for_programs(flags: argparse.Namespace) -> bool:
    """Return whether a program reads the output of ``salt`` (``--static``, ``--out=ndjson``); extra lines then go to stderr."""
    return bool(flags.static) or flags.out == "ndjson"


def print_on_stderr(text: str) -> None:
    """Write one line to stderr."""
    sys.stderr.write(f"{text}\n")


@dataclass(frozen=True, slots=True)
class Absence:
    """The entry for a minion that did not return: the map that is printed, and what the master knows about the minion."""

    load: Mapping[str, object]
    known: MinionAnswer | None = None


class ReturnSink(Protocol):
    """The interface of an object to which MasterReturns passes the returns and absences of one master's job."""

    def add(self, minion: str, load: Mapping[str, object]) -> None:
        """Receive the return of a minion."""

    def add_absent(self, minion: str, absence: Absence | None) -> None:
        """Receive the entry for a minion that did not return; None if it is not to be shown."""


class MasterReturns:
    """Receives the returns of one master's jobs, and asks this master about each minion that does not return."""

    def __init__(self, sink: ReturnSink, lookup: JobLookup, *, show: bool, region: str = "") -> None:
        """Pass returns and absences to ``sink``. ``show``: whether minions that do not return are shown.

        ``region``: name of the master's region if several regions are asked; it is named in the entries.
        """
        self._sink = sink
        self._lookup = lookup
        self._show = show
        self._region = region
        self._answered: set[str] = set()
        #: JID, and the states of that job on all minions; fetched with the first silent minion.
        self._parts: tuple[str, Mapping[str, report.JobPart]] = ("", {})
        #: What the master knows about silent minions; fetched for all of them with the first.
        self._known: dict[str, MinionAnswer | None] = {}
        self._all: Sequence[str] = ()
        self._waits_until = 0

    def set_minions(self, minions: Sequence[str], waits_until: int = 0) -> None:
        """Set the ids of the job's minions.

        ``waits_until``: milliseconds since 1970 until which the job waits for minions that are away; 0: it does not wait.
        """
        self._all = minions
        self._waits_until = waits_until

    def add(self, minion: str, load: Mapping[str, object]) -> None:
        """Take the return ``load`` of a minion."""
        self._answered.add(minion)
        self._sink.add(minion, load)

    def add_silent(self, minion: str, jid: str) -> None:
        """Pass on the state of the job on a minion that did not return, or the minion's return if it has arrived since."""
        if not (self._show or self._waits_until):
            self._sink.add_absent(minion, None)
            return
        if self._parts[0] != jid:
            self._parts = (jid, self._lookup.parts(jid) if jid else {})
        part = self._parts[1].get(minion)
        if part is not None and part["state"] == "returned" and (late := self._lookup.late_return(jid, minion)):
            self.add(minion, late)
            return
        if minion not in self._known:
            left = [name for name in self._all if name not in self._answered]
            self._known |= dict.fromkeys([*left, minion])
            self._known |= self._lookup.known(left or [minion])
        self._answered.add(minion)
        self._sink.add_absent(minion, Absence(self._substitute(minion, jid, part), self._known[minion]))

    def _substitute(self, minion: str, jid: str, part: report.JobPart | None) -> dict[str, object]:
        """Return the map {return: text, out, retcode, state} that is printed in place of a missing return.

        ``part`` is the state of the job on the minion; None if the master does not know it. A minion without an
        accepted key is never shown as one that the job waits for.
        """
        state, known = part["state"] if part else "expected", self._known[minion]
        if self._waits_until and state in report.WAITED_FOR and (known is None or known["key"] == "accepted"):
            return report.waits(jid, self._waits_until, known, self._region)
        return report.no_response(jid, known, part, self._region)


class ReturnPrinter:
    """Prints the returns of a ``salt`` command and computes its exit code.

    Returns are printed as they arrive, or together at the end (``--static``, sys.doc).
    """

    def __init__(
        self,
        request: SaltRequest,
        printer: Printer,
        options: ClientOptions,
        terminal: Callable[[str], object] | None,
    ) -> None:
        """Prepare the printer for a ``salt`` command. ``terminal``: draws the progress bar; None if there is no terminal."""
        self._request = request
        #: Whether a failure was not shown (a silent minion with ``--hide-timeout``, say); the exit code is 1 then.
        self._failed_unseen = False
        self._printer = printer
        self._loads: dict[str, Mapping[str, object]] = {}
        flags = request.flags
        self._progress = Progress(terminal) if terminal is not None and flags.progress else None
        self._at_end = flags.static or request.fun == "sys.doc"
        self._show_jid = flags.show_jid or options.show_jid
        #: Whether minions that do not return are shown.
        self.shows_timeouts: bool = options.show_timeout if flags.show_timeout is None else flags.show_timeout
        self._summary = (flags.summary or options.cli_summary) and not printer.options.out

    def announce(self, jid: str) -> None:
        """Print the text with the job's JID before the returns; print nothing without ``--verbose`` and ``--show-jid``."""
        started = report.started(jid, verbose=self._request.flags.verbose, show_jid=self._show_jid)
        if started:
            (print_on_stderr if for_programs(self._request.flags) else self._printer.say)(started)

    def expect(self, minions: int) -> None:
        """Add ``minions`` to the number of returns that the progress bar expects."""
        if self._progress is not None:
            self._progress.expect(minions)

    def add(self, minion: str, load: Mapping[str, object]) -> None:
        """Take the return ``load`` of a minion; print it now or at the end."""
        self._show(minion, load)
        if self._progress is not None:
            self._progress.came(failed=bool(retcode_of(load)))

    def _show(self, minion: str, load: Mapping[str, object]) -> None:
        self._loads[minion] = load
        if self._at_end:
            return
        if self._progress is not None:
            self._progress.clear()
        out = load.get("out")
        self._printer.show({minion: load["return"]}, None if out is None else str(out), retcode=retcode_of(load))

    def add_absent(self, minion: str, absence: Absence | None) -> None:
        """Take the entry for a minion that did not return; None if it is not to be shown."""
        if absence is None:
            self._failed_unseen = True
        else:
            self._show(minion, absence.load)
        if self._progress is not None:
            self._progress.lost()

    def fail_unseen(self) -> None:
        """Record a failure of a return that is not shown: the exit code is 1."""
        self._failed_unseen = True

    def close(self, *, worst: bool = False) -> int:
        """Print the returns that were kept for the end, and return the exit code of ``salt``.

        ``worst``: the exit code is the largest return code, as for batches.
        """
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
        if self._failed_unseen or any(retcode_of(load) for load in self._loads.values()):
            sys.stderr.write(f"{report.FAILED}\n")
            return Exit.GENERIC
        return Exit.OK
