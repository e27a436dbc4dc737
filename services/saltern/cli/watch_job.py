"""``salt-run jobs.watch JID``: shows the progress of a job on any terminal until the job is complete.

Ending the command does not end the job. The event bus reports returns. The command asks the master about once a second for changes
without an event (a minion received the job, or was given up). If the event bus does not answer, all information comes from
the job cache.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence

from saltern.cli.job_progress import JobProgress
from saltern.kit.command.command_line import CommandError, Exit
from saltern.kit.command.output.flags import Printer
from saltern.kit.jobs.returns import retcode_of
from saltern.kit.links.answers import JobStatus
from saltern.kit.links.control import CONTROL_PATIENCE, ControlClient, ControlTimeout
from saltern.kit.links.event_bus import EventSubscriber

#: Seconds between two requests for a small job; this many minions add one second.
_LOOK_EVERY, _MINIONS_A_SECOND = 1.0, 2000

#: Width of a terminal that does not report it.
_COLUMNS = 80

#: Results in one request.
_RESULTS = 100


class JobWatcher:
    """Follows a job until each minion has returned or was given up. Prints a progress bar, or one line for each
    change.

    The exit code is 0 when every minion returned success, else 1. Ctrl-C does not end the job.
    """

    def __init__(
        self,
        control: ControlClient,
        bus: EventSubscriber,
        clock: Callable[[], float],
        printer: Printer,
        terminal: Callable[[str], object] | None,
        *,
        timeout: float = 0,
    ) -> None:
        """Prepare to show a job. ``terminal``: draws the bar; None: print a line for each change.

        ``timeout``: seconds, 0: no limit.
        """
        self._control = control
        self._bus = bus
        self._clock = clock
        self._printer = printer
        self._terminal = terminal
        self._timeout = timeout
        self._progress = JobProgress()
        #: The master's time in milliseconds, and this machine's clock in seconds at the same moment.
        self._master_time = (0, 0.0)
        self._created = 0

    def watch(self, jid: str) -> int:
        """Show the job's progress to its end. Return exit code 0 if every minion returned success, else 1.

        Raise CommandError if the job is not complete within the timeout, ControlError for an unknown JID, ControlTimeout.
        """
        began = self._clock()
        self._begin(jid)
        try:
            look_at = began
            while not self._progress.complete:
                now = self._clock()
                if self._timeout and now - began >= self._timeout:
                    raise CommandError(
                        f"not complete within {self._timeout:g} s: {self._progress.summary()}. {_again(jid)}"
                    )
                if now >= look_at:
                    look_at = now + _LOOK_EVERY + len(self._progress.parts) / _MINIONS_A_SECOND
                    self._look(jid)
                    continue
                event = self._bus.next(max(look_at - now, 0.0))
                if event is not None:
                    self._heard(jid, *event)
                self._draw()
        except KeyboardInterrupt:
            self._clear()
            sys.stderr.write(f"\nThe job goes on: {self._progress.summary()}. {_again(jid)}\n")
            return Exit.OK
        self._clear()
        self._printer.say(self._progress.summary())
        return Exit.OK if self._progress.succeeded else Exit.GENERIC

    def _begin(self, jid: str) -> None:
        status = self._control.call("job_status", timeout=CONTROL_PATIENCE, jid=jid)
        self._created = int(status["created"])
        self._heed(jid, status)
        fun = status["fun"]
        tgt = status["tgt"]
        what = ",".join(fun) if isinstance(fun, list) else fun
        whom = ",".join(map(str, tgt)) if isinstance(tgt, list) else tgt
        self._say(f"{jid}: {what} on {whom} for {status['user']}, {len(status['minions'])} minions")
        self._tell(
            [minion for minion, part in self._progress.parts.items() if part.shown_state not in ("waiting", "returned")]
        )

    def _look(self, jid: str) -> None:
        try:
            status = self._control.call("job_status", timeout=CONTROL_PATIENCE, jid=jid)
        except ControlTimeout as error:
            # The job continues although the master does not answer; so does this command.
            self._say(f"[WARNING ] {error}")
            return
        self._tell(self._heed(jid, status))

    def _heed(self, jid: str, status: JobStatus) -> list[str]:
        self._master_time = (int(status["now"]), self._clock())
        changed = self._progress.update(status)
        wanted = self._progress.results_wanted()
        # Without failures in the counters the results need not be fetched.
        if wanted and not status["counts"]["failed"]:
            failed: dict[str, int] = dict.fromkeys(wanted, 0)
        else:
            failed = {}
            for at in range(0, len(wanted), _RESULTS):
                some = wanted[at : at + _RESULTS]
                failed |= self._control.call("failed_of", timeout=CONTROL_PATIENCE, jid=jid, minions=some)
        for minion in wanted:
            self._progress.returned(minion, failed=bool(failed.get(minion)))
        return changed

    def _heard(self, jid: str, tag: str, data: Mapping[str, object]) -> None:
        kind, _, rest = tag.removeprefix(f"salt/job/{jid}/").partition("/")
        if kind == "ret" and "return" in data:
            failed = data.get("success") is False or bool(retcode_of(data))
            if self._progress.returned(rest, failed=failed):
                self._tell([rest])
        elif kind == "prog":
            told = data.get("data")
            if isinstance(told, Mapping) and isinstance(told.get("len"), int):
                self._progress.went(rest.rpartition("/")[0], told["len"])

    def _tell(self, minions: Sequence[str]) -> None:
        """Print a line about the job on each of these minions. If there is a bar, print only failures and late returns."""
        for minion in minions:
            part = self._progress.parts[minion]
            if self._terminal is None or part.late or part.shown_state not in ("waiting", "running", "returned"):
                self._say(self._progress.line(minion, self._now_ms()))

    def _say(self, text: str) -> None:
        self._clear()
        self._printer.say(text)
        self._draw()

    def _draw(self) -> None:
        if self._terminal is not None:
            seconds = (self._now_ms() - self._created) / 1000
            bar = self._progress.bar(seconds, _columns())
            self._terminal(f"\r\033[K{bar}")

    def _clear(self) -> None:
        if self._terminal is not None:
            self._terminal("\r\033[K")

    def _now_ms(self) -> int:
        then, second = self._master_time
        return then + round((self._clock() - second) * 1000)


def jid_of(arg: Sequence[object], kwarg: Mapping[str, object]) -> str:
    """Return the JID from the arguments of jobs.watch. Raise CommandError (exit code 64) for other arguments."""
    given = [*arg, *([kwarg["jid"]] if "jid" in kwarg else [])]
    if len(given) != 1 or set(kwarg) - {"jid"}:
        raise CommandError(
            "jobs.watch takes a JID and nothing else, as in: salt-run jobs.watch 20261121140000000000", Exit.USAGE
        )
    return str(given[0])


def _columns() -> int:

    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or _COLUMNS
    except (OSError, ValueError):
        return _COLUMNS


def _again(jid: str) -> str:
    return f"To look at it again: salt-run jobs.watch {jid}"
