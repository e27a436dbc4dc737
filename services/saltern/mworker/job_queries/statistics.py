"""How often functions and minions worked, failed, and how long they took: fed with returns one by one, in bounded memory. Pure.

Durations are kept as counts of steps that are 2 % apart, so a percentile is right to one part in a hundred whatever the number of
returns, and a row of the table takes at most a few kilobytes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_STEP = math.log(1.02)


@dataclass
class Durations:
    """Durations in milliseconds, as counts of steps."""

    count: int = 0
    _steps: Counter[int] = field(default_factory=Counter)

    def add(self, ms: float) -> None:
        """One more; what is below a millisecond counts as one."""
        self.count += 1
        self._steps[round(math.log(max(ms, 1.0)) / _STEP)] += 1

    def percentile(self, percent: float) -> int | None:
        """Milliseconds that this part of the durations does not go beyond; None without any."""
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
    """What is known of one function, or of one minion."""

    jobs: int = 0
    returns: int = 0
    failures: int = 0
    #: Expected, and not returned.
    missing: int = 0
    durations: Durations = field(default_factory=Durations)

    def add(self, took_ms: float | None, *, failed: bool) -> None:
        """A return; ``took_ms`` None: nobody knows how long it took."""
        self.returns += 1
        self.failures += failed
        if took_ms is not None:
            self.durations.add(took_ms)

    def shown(self) -> dict[str, Any]:
        """As jobs.stats shows it; durations in milliseconds."""
        counts = {"jobs": self.jobs, "returns": self.returns, "failures": self.failures, "missing": self.missing}
        return {**counts, "p50_ms": self.durations.percentile(50), "p95_ms": self.durations.percentile(95)}


@dataclass
class Statistics:
    """Rows by function and by minion."""

    functions: dict[str, Row] = field(default_factory=dict)
    minions: dict[str, Row] = field(default_factory=dict)

    def job(
        self, functions: list[str], minions: Mapping[str, float | None], failed: set[str], missing: set[str]
    ) -> None:
        """One job: ``minions`` that returned -> milliseconds that each took; those of them that ``failed``; those ``missing``."""
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


def most_used(rows: Mapping[str, Row], count: int) -> dict[str, dict[str, Any]]:
    """The rows with the most jobs, the most first."""
    order = sorted(rows, key=lambda name: (-rows[name].jobs, name))
    return {name: rows[name].shown() for name in order[:count]}
