"""Decides the next action while a command waits for a job's returns. Pure: no socket and no clock.

It gets events of the bus, answers of the master and the time, and returns instructions. The states of a wait:

    listening --timeout--> probing: read the job cache, then ask the silent minions about the job (find_job)
    probing --gather time over, a minion still runs it--> probing again
    probing --gather time over, no minion runs it or has time left--> read the job cache again, report the silent, done

A return that the bus lost is found in the job cache at the end of the current waiting time. A minion that answers that
it runs the job gets another ``timeout``. Source: docs/protocol.md#cli-wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

#: Text with which the event bus replaces a value that is too large.
TRIMMED = "VALUE_TRIMMED"


@dataclass(frozen=True)
class Show:
    """Instruction of a JobWait to its caller: print this minion's return.

    ``load`` is the return's map with ``return``, ``retcode``, ``out`` and more.
    """

    minion: str
    load: Mapping[str, object]


@dataclass(frozen=True)
class Silent:
    """Instruction of a JobWait to its caller: report that this minion did not return in time."""

    minion: str


@dataclass(frozen=True)
class AskReturns:
    """Instruction of a JobWait to its caller: read these minions' returns from the job cache (command ``job_returns``).

    Pass the map of minion id to return to ``JobWait.returns``. ``minions`` None means all minions of the job.
    """

    minions: tuple[str, ...] | None = None


@dataclass(frozen=True)
class AskProbe:
    """Instruction of a JobWait to its caller: read the returns of the find_job probe ``jid`` from the job cache.

    Pass the map of minion id to return to ``JobWait.probe_returns``.
    """

    jid: str


@dataclass(frozen=True)
class FindJob:
    """Instruction of a JobWait to its caller: publish ``saltutil.find_job`` to these minions, to learn which still run the job.

    Pass the JID of this probe to ``JobWait.probed``.
    """

    minions: tuple[str, ...]


@dataclass(frozen=True)
class Finish:
    """Instruction of a JobWait to its caller: stop waiting for the job; every minion has returned or was reported as silent."""


Instruction: TypeAlias = Show | Silent | AskReturns | AskProbe | FindJob | Finish


class JobWait:
    """Decides what to do while a command waits for the returns of one job. It does no I/O.

    Its methods return instructions (Show, Silent, AskReturns, AskProbe, FindJob, Finish), which the caller
    carries out in order. All times are seconds of one monotonic clock.
    """

    def __init__(
        self,
        jid: str,
        minions: Iterable[str],
        missing: Iterable[str] = (),
        *,
        timeout: float,
        gather_timeout: float,
        now: float,
    ) -> None:
        """Start to wait for the returns of ``minions`` at the time ``now``.

        ``missing``: ids that the target names and that have no accepted key; they are reported as silent at the
        end. ``timeout``: seconds until silent minions are asked whether they run the job. ``gather_timeout``:
        seconds that they have to answer this.
        """
        self.jid = jid
        self._timeout = timeout
        self._gather_timeout = gather_timeout
        self._patience = dict.fromkeys(minions, now + timeout)
        self._missing = set(missing) - self._patience.keys()
        self._returned: set[str] = set()
        #: Kept, not computed: a fleet of 10,000 has 10,000 returns, each of which asks whether it is the last.
        self._pending = set(self._patience)
        self._probe = ""
        self._running = True
        self._finished = False
        #: When ``tick`` must be called next.
        self.deadline = now + timeout

    @property
    def pending(self) -> AbstractSet[str]:
        """Return the ids of the minions that have not returned yet."""
        return self._pending

    def event(self, tag: str, data: Mapping[str, object], now: float) -> list[Instruction]:
        """Take an event of the bus; return the instructions (Show, AskReturns, Silent, Finish) that the caller must
        carry out now.

        The list is empty for an event that is no return of this job.
        """
        job, _, minion = tag.removeprefix("salt/job/").partition("/ret/")
        if self._finished or not (job and minion) or "return" not in data:
            return []
        if job == self.jid:
            # The whole return is in the job cache: it was stored before the event was fired.
            return [AskReturns((minion,))] if data["return"] == TRIMMED else self._came_back({minion: data})
        if job == self._probe:
            self._answered(minion, data, now)
        return []

    def returns(self, found: Mapping[str, Mapping[str, object]], now: float) -> list[Instruction]:
        """Take ``found``, {minion id: return} from the job cache, and return the instructions (Show, FindJob,
        AskProbe, Silent, Finish).

        After the time ``deadline``, until which it waits for returns, the call also decides whether to ask the silent
        minions, to wait longer, or to finish.
        """
        if self._finished:
            return []
        shown = self._came_back(found)
        if self._finished or now < self.deadline:
            return shown
        if self._probe and not self._running:
            # No minion reported that it runs the job. The job cache decides, as for returns.
            return [*shown, AskProbe(self._probe)]
        return [*shown, *self._go_on(now)]

    def probe_returns(self, found: Mapping[str, Mapping[str, object]], now: float) -> list[Instruction]:
        """Take the returns of the find_job probe ({minion id: return}) and return the next instructions.

        If a minion still runs the job, its waiting time is extended and FindJob is returned for a new probe;
        otherwise Silent and Finish when no minion has time left.
        """
        for minion, answer in found.items():
            self._answered(minion, answer, now)
        return self._go_on(now)

    def _answered(self, minion: str, answer: Mapping[str, object], now: float) -> None:
        if minion in self.pending and _is_running(answer):
            self._patience[minion] = now + self._timeout
            self._running = True

    def _go_on(self, now: float) -> list[Instruction]:
        if self._running:
            self._running = False
            self.deadline = now + self._gather_timeout
            return [FindJob(tuple(sorted(self.pending)))]
        if (left := max(self._patience[minion] for minion in self.pending)) > now:
            self.deadline = left
            return []
        return self._finish()

    def probed(self, jid: str | None) -> None:
        """Record the JID of the find_job probe that was published; None if no minion could be asked."""
        self._probe = jid or ""

    def tick(self, now: float) -> list[Instruction]:
        """Return the instructions at the time ``now``: none before the time ``deadline``, until which it waits for
        returns; then AskReturns, or Finish if all minions have returned.

        Before Finish there is a Silent for each minion that did not return.
        """
        if self._finished or now < self.deadline:
            return []
        if not self.pending:
            return self._finish()
        # The next decision needs the returns in the job cache, because the bus may have lost events.
        return [AskReturns()]

    def _came_back(self, found: Mapping[str, Mapping[str, object]]) -> list[Instruction]:
        new = [minion for minion in found if minion not in self._returned]
        self._returned.update(new)
        self._pending.difference_update(new)
        shown: list[Instruction] = [Show(minion, found[minion]) for minion in new]
        return shown if self.pending else [*shown, *self._finish()]

    def _finish(self) -> list[Instruction]:
        self._finished = True
        silent = sorted(self.pending) + sorted(self._missing - self._returned)
        return [*(Silent(minion) for minion in silent), Finish()]


def _is_running(answer: Mapping[str, object]) -> bool:
    """Return whether ``answer``, a minion's return of find_job, shows that the minion runs the job: it is a map that
    is not empty.
    """
    returned = answer.get("return")
    return not answer.get("retcode") and isinstance(returned, Mapping) and bool(returned)
