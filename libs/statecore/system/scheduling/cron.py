"""Cron expressions of a schedule: ``minute hour day month weekday [second [year]]``, as in Salt's option ``cron``.

The library croniter, which Salt uses, reads them and finds their times. So each form that croniter knows may be used:
names (``jan``, ``mon``), ranges, lists, steps, ``@hourly``, ``L``, ``fri#2``, ``L5``, ``15W``. If both day and weekday
are restricted, a date matches if either of them matches. Unlike in other crons, that holds for ``*/2`` too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from statecore.model.lazy import lazy_module

if TYPE_CHECKING:
    import croniter
else:
    # 1 MB and 20 ms with dateutil, which only a minion with such a job pays.
    croniter = lazy_module("croniter")


@dataclass(frozen=True, slots=True)
class Cron:
    """A validated cron expression of a scheduled job."""

    text: str
    #: True if the expression matches in every hour of the day.
    every_hour: bool

    @classmethod
    def parse(cls, text: object) -> Cron:
        """Return the Cron for a cron expression. Raises ValueError with croniter's reason if it is invalid."""
        try:
            fields = croniter.croniter.expand(str(text))[0]
        except (ValueError, KeyError) as error:
            raise ValueError(f"'{text}': {error}") from error
        return cls(str(text), fields[1] == ["*"] or len(set(fields[1])) == 24)

    def after(self, moment: datetime) -> datetime | None:
        """Return the first time later than ``moment`` that matches the cron expression; None if there is none (30
        February).
        """
        try:
            found: datetime = croniter.croniter(self.text, moment).get_next(datetime)
        except (croniter.CroniterBadDateError, OverflowError):
            return None
        return found
