"""Waiting for a job's returns: what to do next, decided without a socket or a clock (protocol section 11.3).

Fed with the events of the bus, the answers of the master and the time; answers with instructions. The life of a wait:

    listening --timeout--> probing: ask the job cache, then ask the silent minions what became of the job (find_job)
    probing --gather time over, somebody still runs it--> probing again
    probing --gather time over, nobody runs it, no minion has time left--> ask the job cache once more, report the silent, done

A return that the bus dropped is in the job cache, so it is found at the next deadline at the latest; so is what a minion said
of the job. One that says that it runs the job gets another ``timeout`` each time that it says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

#: What the event bus puts in the place of a value that is too large for it.
TRIMMED = "VALUE_TRIMMED"


@dataclass(frozen=True)
class Show:
    """A minion returned: print it. ``load`` holds return, retcode, out..."""

    minion: str
    load: Mapping[str, Any]


@dataclass(frozen=True)
class Silent:
    """A minion did not return."""

    minion: str


@dataclass(frozen=True)
class AskReturns:
    """Ask the master for ``job_returns``, of these minions or of all, and feed the answer to ``returns``."""

    minions: tuple[str, ...] | None = None


@dataclass(frozen=True)
class AskProbe:
    """The same for the job of ``FindJob``; feed the answer to ``probe_returns``."""

    jid: str


@dataclass(frozen=True)
class FindJob:
    """Publish ``saltutil.find_job`` to these minions and feed the new job's id to ``probed``."""

    minions: tuple[str, ...]


@dataclass(frozen=True)
class Finish:
    """Nothing is left to wait for."""


Instruction: TypeAlias = Show | Silent | AskReturns | AskProbe | FindJob | Finish


class JobWait:
    """One job's wait. Times are seconds of one monotonic clock."""

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
        """``minions`` are expected to return; ``missing`` were asked for by name and have no accepted key."""
        self.jid = jid
        self._timeout = timeout
        self._gather_timeout = gather_timeout
        self._patience = dict.fromkeys(minions, now + timeout)
        self._missing = set(missing) - self._patience.keys()
        self._returned: set[str] = set()
        self._probe = ""
        self._running = True
        self._finished = False
        #: When ``tick`` must be called next.
        self.deadline = now + timeout

    @property
    def pending(self) -> set[str]:
        """Minions that are still expected to return."""
        return self._patience.keys() - self._returned

    def event(self, tag: str, data: Mapping[str, Any], now: float) -> list[Instruction]:
        """An event of the bus; any event may be passed."""
        job, _, minion = tag.removeprefix("salt/job/").partition("/ret/")
        if self._finished or not (job and minion) or "return" not in data:
            return []
        if job == self.jid:
            # The whole return is in the job cache: it was stored before the event was fired.
            return [AskReturns((minion,))] if data["return"] == TRIMMED else self._came_back({minion: data})
        if job == self._probe:
            self._answered(minion, data, now)
        return []

    def returns(self, found: Mapping[str, Mapping[str, Any]], now: float) -> list[Instruction]:
        """What the job cache holds: minion -> return. At the deadline (AskReturns) it decides how to go on."""
        if self._finished:
            return []
        shown = self._came_back(found)
        if self._finished or now < self.deadline:
            return shown
        if self._probe and not self._running:
            # Nobody was heard to run it. As with returns: what counts is what the job cache holds.
            return [*shown, AskProbe(self._probe)]
        return [*shown, *self._go_on(now)]

    def probe_returns(self, found: Mapping[str, Mapping[str, Any]], now: float) -> list[Instruction]:
        """What the job cache holds of FindJob's job (AskProbe): it decides how to go on."""
        for minion, answer in found.items():
            self._answered(minion, answer, now)
        return self._go_on(now)

    def _answered(self, minion: str, answer: Mapping[str, Any], now: float) -> None:
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
        """The job id of FindJob's publish; None where no minion was there to be asked."""
        self._probe = jid or ""

    def tick(self, now: float) -> list[Instruction]:
        """To be called at ``deadline``; early calls do nothing."""
        if self._finished or now < self.deadline:
            return []
        if not self.pending:
            return self._finish()
        # Whatever is decided next, it is decided on what the job cache holds and not on what the bus let through.
        return [AskReturns()]

    def _came_back(self, found: Mapping[str, Mapping[str, Any]]) -> list[Instruction]:
        new = [minion for minion in found if minion not in self._returned]
        self._returned.update(new)
        shown: list[Instruction] = [Show(minion, found[minion]) for minion in new]
        return shown if self.pending else [*shown, *self._finish()]

    def _finish(self) -> list[Instruction]:
        self._finished = True
        silent = sorted(self.pending) + sorted(self._missing - self._returned)
        return [*(Silent(minion) for minion in silent), Finish()]


def _is_running(answer: Mapping[str, Any]) -> bool:
    """Whether find_job found the job: {} and error texts say no."""
    return not answer.get("retcode") and isinstance(answer["return"], Mapping) and bool(answer["return"])
