"""The progress of a job as text: one bar for a terminal, one line for each change elsewhere. Does no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from saltern.cli.report import duration
from saltern.kit.links.answers import JobStatus

#: Characters of the bar: on a wide terminal, on a narrow one.
_WIDTH, _NARROW = 30, 10

#: Running minions that are named beside the bar, at most.
_NAMED = 3

#: State in the store -> state as printed. A return is printed by its result.
_SAID: Mapping[str, str] = {"expected": "waiting", "delivered": "waiting", "started": "running"}

#: States of minions that are not expected to return.
GIVEN_UP = ("lost", "cancelled", "expired")

#: Order of the states in the summary.
_ORDER = ("failed", "running", "waiting", "offline", *GIVEN_UP)


@dataclass
class Part:
    """The progress of a job on one minion: state as a word, times, whether it failed, number of finished states."""

    state: str
    #: Whether the return is a failure; None: unknown yet.
    failed: bool | None = None
    late: bool = False
    #: Milliseconds since 1970: time of the last change of state, and of the last message from the minion.
    since: int = 0
    seen: int | None = None
    #: Number of finished states of a state run, and of all its states.
    done: int = 0
    of: int = 0

    @property
    def shown_state(self) -> str:
        """Return the word for the job's state on the minion, as jobs.watch prints it: "returned", "failed", "running" and so on."""
        if self.state == "returned":
            return "failed" if self.failed else "returned"
        return _SAID.get(self.state, self.state)


@dataclass
class JobProgress:
    """The progress of a job on all of its minions, for ``jobs.watch``."""

    parts: dict[str, Part] = field(default_factory=dict)

    def update(self, status: JobStatus) -> list[str]:
        """Store the minions' states from ``status``, the master's answer to ``job_status``. Return the sorted ids of
        the minions whose state changed.
        """
        changed = []
        for minion, state in sorted(status["minions"].items()):
            part = self.parts.setdefault(minion, Part(""))
            # An event may be newer than this answer.
            if part.state == "returned":
                part.late = bool(state.get("late"))
                continue
            if part.state != state["state"]:
                changed.append(minion)
            part.state, part.since, part.late = state["state"], int(state["since"]), bool(state.get("late"))
            part.seen = state.get("seen")
        return changed

    def returned(self, minion: str, *, failed: bool) -> bool:
        """Record that a minion has returned. Return False if this return and its result were known already."""
        part = self.parts.get(minion)
        if part is None or (part.state == "returned" and part.failed is not None):
            return False
        part.state, part.failed = "returned", failed
        return True

    def went(self, minion: str, of: int) -> None:
        """Count one finished state in a minion's state run. ``of``: number of all states of the run."""
        part = self.parts.get(minion)
        if part is not None:
            part.done, part.of = part.done + 1, of

    def results_wanted(self) -> list[str]:
        """Return the ids of the minions that have returned and of which it is not known whether the return is a failure."""
        return sorted(minion for minion, part in self.parts.items() if part.state == "returned" and part.failed is None)

    @property
    def complete(self) -> bool:
        """Return whether each minion of the job has returned or was given up."""
        return all(part.state == "returned" or part.state in GIVEN_UP for part in self.parts.values())

    @property
    def succeeded(self) -> bool:
        """Return whether each minion of the job has returned success."""
        return all(part.state == "returned" and not part.failed for part in self.parts.values())

    def summary(self) -> str:
        """Return the number of minions by state as text, for example ``3/5 returned, 1 failed, 1 running``; zeros are left out."""
        counts = Counter(part.shown_state for part in self.parts.values())
        back = counts["returned"] + counts["failed"]
        pieces = [f"{back}/{len(self.parts)} returned"]
        if late := sum(part.late for part in self.parts.values()):
            pieces.append(f"{late} late")
        pieces += [f"{counts[name]} {name}{self._names(name)}" for name in _ORDER if counts[name]]
        return ", ".join(pieces)

    def bar(self, seconds: float, columns: int) -> str:
        """Return the progress bar as text, cut to the terminal's width: a line that wraps cannot be overwritten."""
        ended = sum(part.state == "returned" or part.state in GIVEN_UP for part in self.parts.values())
        words = f"] {self.summary()}, {_clock(seconds)}"
        width = min(max(columns - 2 - len(words), _NARROW), _WIDTH)
        filled = width * ended // len(self.parts) if self.parts else width
        return f"[{'#' * filled}{'-' * (width - filled)}{words}"[: max(columns - 1, 1)]

    def line(self, minion: str, now_ms: int) -> str:
        """Return one line of text about the job on this minion. ``now_ms``: the master's time in milliseconds since 1970."""
        part = self.parts[minion]
        words = f"{minion}: {part.shown_state}"
        if part.late:
            words += " (late)"
        if part.state != "returned" and part.shown_state != "running":
            heard = (
                "never heard of" if part.seen is None else f"last heard of {duration((now_ms - part.seen) / 1000)} ago"
            )
            words += f", {heard}"
        return words

    def _names(self, shown_state: str) -> str:
        if shown_state != "running":
            return ""
        named = [minion for minion, part in sorted(self.parts.items()) if part.shown_state == shown_state]
        if len(named) > _NAMED:
            return ""
        parts = [f"{minion} {self.parts[minion].done}/{self.parts[minion].of} states" if self.parts[minion].of else minion
                 for minion in named]  # fmt: skip
        return f" ({', '.join(parts)})"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
