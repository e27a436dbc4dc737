"""Dates and times of day in a schedule (``when``, ``range``, ``after``, ``until``, ``once``).

The library dateutil, which Salt uses, reads them, so a text has the value that it has in Salt::

    5:00pm   5pm   17:00   17:00:30          a time of day; without one it is midnight
    2026-01-31   2026/01/31   20260131       a date
    01/31/2026   1/31/26   31.01.2026        month first, unless that number is above 12
    Jan 31, 2026   31 January   Jan 31       a date; without a year it is this year
    Monday   Tue                             the next such day, today included; ignored beside a date

``now``, ``today`` and ``tomorrow`` are known besides. All are in the minion's local time. Two kinds of text that dateutil
accepts are refused, because the job would run at a time that nobody wrote: a date of which the month or the day is
missing (``17`` is the 17th of this month, ``1700`` a year), and a time zone (``Z``, ``+01:00``, ``10:00-17:00``).
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING

from statecore.model.lazy import lazy_module

if TYPE_CHECKING:
    from dateutil import parser
else:
    # 1 MB and 16 ms, which only a minion with a date in its schedule pays.
    parser = lazy_module("dateutil.parser")

_WORDS = re.compile(r"\b(today|tomorrow)\b")

#: Most characters of a date: the parser of dates takes quadratic time.
_LONGEST = 200

#: Abbreviations of weekdays that dateutil does not know -> the letters that it knows.
_WEEKDAYS = re.compile(r"\b(tue|wed|thu)(?:s|r|rs)\b")

#: Two dates that differ in year, month and day, for each day of the week that follows them. Both years have a 29 February.
_DEFAULTS = (datetime(2000, 1, 1), datetime(2004, 3, 13))


def parse_date(value: object, now: datetime) -> datetime:
    """Return the date and time that a value in a schedule describes, in local time.

    ``now`` supplies the day, week and year that the text leaves out. Raises ValueError with the reason if the text is
    not a date.
    """
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise ValueError(f"{value} has a time zone; write it in the minion's local time")
        return value
    if isinstance(value, date):
        return datetime.combine(value, time())
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a date; write a text such as 2026-01-31 or 5:00pm")
    if len(value) > _LONGEST:
        raise ValueError(f"a date has at most {_LONGEST} characters, not {len(value)}")
    text = value.strip().lower()
    if text == "now":
        return now
    day = datetime.combine(now.date(), time())
    if word := _WORDS.search(text):
        day += timedelta(days=word[1] == "tomorrow")
        text = _WORDS.sub("", text, count=1).strip() or "00:00"
    text = _WEEKDAYS.sub(r"\1", text)
    try:
        _check_parts(text)
        return _parsed(text, day)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"'{value}': {error}") from error


def _check_parts(text: str) -> None:
    """Raise ValueError if a text has a month without a day, a day without a month, or a year without both. The text is
    parsed with two default dates: a part that is the same in both results comes from the text.
    """
    one, two = (_parsed(text, default) for default in _DEFAULTS)
    year, month, day = one.year == two.year, one.month == two.month, one.day == two.day
    if month != day or (year and not month):
        raise ValueError("month or day is missing; write a date such as 2026-01-31, or a time such as 17:00 or 5pm")


def _parsed(text: str, default: datetime) -> datetime:
    found: datetime = parser.parse(text, default=default, tzinfos=_refuse_zone)
    return found


def _refuse_zone(name: str | None, offset: int | None) -> None:
    """Raise ValueError if dateutil found a time zone in a text."""
    if name is not None or offset is not None:
        raise ValueError("it has a time zone; write it in the minion's local time")
