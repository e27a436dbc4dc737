"""Cron expressions: ``minute hour day month weekday [second]``, as in Salt's option ``cron``.

A field is ``*``, a number, a name (``jan``, ``mon``), a range or a list, each with an optional step. ``@hourly`` and
similar words replace a whole expression. ``L`` is the last day of a month, ``fri#2`` the second Friday, ``L5`` the last
Friday. If both day and weekday are restricted, a date matches if either of them matches, as in every cron.

The format is that of crontab(5), with the sixth field of the library croniter.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

_MONTHS: Mapping[str, int] = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_WEEKDAYS: Mapping[str, int] = {
    name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))
}

_ALIASES: Mapping[str, str] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

#: Number of years searched. 29 February falls on a given weekday every 28 years, or after up to 40 years.
_YEARS_AHEAD = 41

#: One part of a field: star, or start and end; step.
_PART = re.compile(r"(?:(\*)|([a-z0-9]+)(?:-([a-z0-9]+))?)(?:/([0-9]+))?\Z")
_NTH = re.compile(r"([a-z0-9]+)#([1-5])\Z")
_LAST = re.compile(r"l([0-7])\Z")


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of a cron expression: its name, bounds and names for its numbers."""

    name: str
    low: int
    high: int
    names: Mapping[str, int]


_FIELDS = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of the month", 1, 31, {}),
    _Field("month", 1, 12, _MONTHS),
    # Both 0 and 7 are Sunday.
    _Field("day of the week", 0, 7, _WEEKDAYS),
    _Field("second", 0, 59, {}),
)


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed cron expression of a scheduled job."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    #: Sunday is 0.
    weekdays: frozenset[int]
    #: (weekday, its number within the month); -1 for the last one.
    nth: frozenset[tuple[int, int]]
    last_day: bool
    #: True if the field does not begin with ``*``. If both are True, a match of one field is enough.
    by_day: bool
    by_weekday: bool

    @classmethod
    def parse(cls, text: object) -> Cron:
        """Parse a cron expression. Raises ValueError with the field and the reason."""
        words = str(text).lower().split()
        if len(words) == 1 and words[0].startswith("@"):
            if words[0] not in _ALIASES:
                raise ValueError(f"'{text}' is none of {', '.join(sorted(_ALIASES))}")
            words = _ALIASES[words[0]].split()
        if len(words) not in (5, 6):
            raise ValueError(f"'{text}' has {len(words)} fields; a cron expression has 5, or 6 with seconds")
        second = words[5] if len(words) == 6 else "0"
        day_words, last_day = _without_last_day(words[2])
        weekday_words, nth = _without_nth(words[4])
        weekdays = _numbers(_FIELDS[4], weekday_words) if weekday_words else frozenset()
        return cls(
            seconds=tuple(sorted(_numbers(_FIELDS[5], second))),
            minutes=tuple(sorted(_numbers(_FIELDS[0], words[0]))),
            hours=tuple(sorted(_numbers(_FIELDS[1], words[1]))),
            days=_numbers(_FIELDS[2], day_words) if day_words else frozenset(),
            months=_numbers(_FIELDS[3], words[3]),
            weekdays=frozenset(number % 7 for number in weekdays),
            nth=nth,
            last_day=last_day,
            by_day=not words[2].startswith("*"),
            by_weekday=not words[4].startswith("*"),
        )

    @property
    def every_hour(self) -> bool:
        """True if the cron expression matches in every hour of the day."""
        return len(self.hours) == 24

    def after(self, moment: datetime) -> datetime | None:
        """Return the first time later than ``moment`` that matches the cron expression; None if there is none (30
        February).
        """
        if datetime.max - moment < timedelta(seconds=1):
            return None
        start = moment.replace(microsecond=0) + timedelta(seconds=1)
        day = start.replace(hour=0, minute=0, second=0)
        last_year = start.year + _YEARS_AHEAD
        while day.year <= last_year:
            if day.month not in self.months:
                following = _next_month(day)
                if following is None:
                    return None
                day = following
                continue
            if self._fits(day):
                found = self._time_of(day, start)
                if found is not None:
                    return found
            if day.date() == day.date().max:
                return None
            day += timedelta(days=1)
        return None

    def _time_of(self, day: datetime, start: datetime) -> datetime | None:
        today = day.date() == start.date()
        for hour in self.hours:
            if today and hour < start.hour:
                continue
            this_hour = today and hour == start.hour
            for minute in self.minutes:
                if this_hour and minute < start.minute:
                    continue
                this_minute = this_hour and minute == start.minute
                for second in self.seconds:
                    if not this_minute or second >= start.second:
                        return day.replace(hour=hour, minute=minute, second=second)
        return None

    def _fits(self, day: datetime) -> bool:
        by_day = day.day in self.days or (self.last_day and day.day == _days_of(day))
        weekday = day.isoweekday() % 7
        which = (day.day - 1) // 7 + 1
        is_last = day.day + 7 > _days_of(day)
        by_weekday = weekday in self.weekdays or (weekday, which) in self.nth or (is_last and (weekday, -1) in self.nth)
        if self.by_day and self.by_weekday:
            return by_day or by_weekday
        return by_day and by_weekday


def _days_of(day: datetime) -> int:
    return calendar.monthrange(day.year, day.month)[1]


def _next_month(day: datetime) -> datetime | None:
    if day.month == 12:
        return day.replace(year=day.year + 1, month=1, day=1) if day.year < datetime.max.year else None
    return day.replace(month=day.month + 1, day=1)


def _without_last_day(field: str) -> tuple[str, bool]:
    parts = field.split(",")
    rest = [part for part in parts if part != "l"]
    return ",".join(rest), len(rest) != len(parts)


def _without_nth(field: str) -> tuple[str, frozenset[tuple[int, int]]]:
    """Split the weekday field of a cron expression into (the parts for every such weekday, set of (weekday, number
    within the month)).
    """
    rest, nth = [], set()
    for part in field.split(","):
        if match := _NTH.match(part):
            nth.add((_number(_FIELDS[4], match[1]) % 7, int(match[2])))
        elif match := _LAST.match(part):
            nth.add((int(match[1]) % 7, -1))
        else:
            rest.append(part)
    return ",".join(rest), frozenset(nth)


def _numbers(field: _Field, text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.match(part)
        if not match:
            raise ValueError(f"the {field.name} '{text}' is not a number, range, list or step")
        star, first, last, step = match.groups()
        low = field.low if star else _number(field, first)
        if star or (step and not last):
            high = field.high - 1 if field is _FIELDS[4] else field.high
        else:
            high = _number(field, last) if last else low
        if step and int(step) < 1:
            raise ValueError(f"the {field.name} '{text}' has a step of 0")
        if high < low:
            # ``fri-mon`` and ``22-2`` wrap around, as in croniter.
            top = 6 if field is _FIELDS[4] else field.high
            whole = [*range(low, top + 1), *range(field.low, high + 1)]
        else:
            whole = list(range(low, high + 1))
        found.update(whole[:: int(step or 1)])
    return frozenset(found)


def _number(field: _Field, word: str) -> int:
    if word in field.names:
        return field.names[word]
    if not word.isdecimal() or not field.low <= int(word) <= field.high:
        raise ValueError(f"the {field.name} '{word}' is not between {field.low} and {field.high}")
    return int(word)
