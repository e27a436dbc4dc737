"""Statistics of returns by function and by minion: counts, failures and durations, in bounded memory. No I/O.

Durations are kept as counts on a logarithmic scale with steps of 2 %. A percentile is therefore exact to 1 %, and a row
takes a few kilobytes, whatever the number of returns.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

_STEP = math.log(1.02)


@dataclass
class Durations:
    """Durations of jobs in milliseconds, counted by steps of a logarithmic scale."""

    count: int = 0
    _steps: Counter[int] = field(default_factory=Counter)

    def add(self, ms: float) -> None:
        """Count one duration in milliseconds; less than a millisecond counts as one millisecond."""
        self.count += 1
        self._steps[round(math.log(max(ms, 1.0)) / _STEP)] += 1

    def percentile(self, percent: float) -> int | None:
        """Return the duration in milliseconds that ``percent`` of all durations do not exceed; None if there are none."""
        if not self.count:
            return None
        wanted, passed = math.ceil(self.count * percent / 100), 0
        for step in sorted(self._steps):
            passed += self._steps[step]
            if passed >= wanted:
                return round(math.exp(step * _STEP))
        raise AssertionError("the counts are not those of the steps")


@dataclass
class Row:
    """Numbers of returns and failures, and durations, of one function or one minion (a row of jobs.stats)."""

    jobs: int = 0
    returns: int = 0
    failures: int = 0
    #: Minions that were expected and did not return.
    missing: int = 0
    durations: Durations = field(default_factory=Durations)

    def add(self, took_ms: float | None, *, failed: bool) -> None:
        """Count a return of this function or minion. ``took_ms``: duration in milliseconds, None if unknown;
        ``failed``: the return is a failure.
        """
        self.returns += 1
        self.failures += failed
        if took_ms is not None:
            self.durations.add(took_ms)

    def shown(self) -> dict[str, object]:
        """Return the row as jobs.stats shows it: {jobs, returns, failures, missing, p50_ms, p95_ms}."""
        counts = {"jobs": self.jobs, "returns": self.returns, "failures": self.failures, "missing": self.missing}
        return {**counts, "p50_ms": self.durations.percentile(50), "p95_ms": self.durations.percentile(95)}


@dataclass
class Statistics:
    """The statistics that jobs.stats returns: one row for each function name and one for each minion id."""

    functions: dict[str, Row] = field(default_factory=dict)
    minions: dict[str, Row] = field(default_factory=dict)

    def job(
        self, functions: list[str], minions: Mapping[str, float | None], failed: set[str], missing: set[str]
    ) -> None:
        """Count one job in the rows of its functions and minions.

        ``minions`` maps the id of each minion that returned to its duration in milliseconds. ``failed`` is the subset
        of these ids whose job failed; ``missing`` are the ids of minions that were expected and did not return.
        """
        rows = [self.functions.setdefault(name, Row()) for name in functions]
        for row in rows:
            row.jobs += 1
            row.missing += len(missing)
        for name in {*minions, *missing}:
            of_minion = self.minions.setdefault(name, Row())
            of_minion.jobs += 1
            of_minion.missing += name in missing
            if name in minions:
                for row in (*rows, of_minion):
                    row.add(minions[name], failed=name in failed)


def most_used(rows: Mapping[str, Row], count: int) -> dict[str, dict[str, object]]:
    """Return {name: row as jobs.stats shows it} of the ``count`` functions or minions with the most jobs, largest
    first.
    """
    order = sorted(rows, key=lambda name: (-rows[name].jobs, name))
    return {name: rows[name].shown() for name in order[:count]}
