"""Dates and times of day in a schedule (``when``, ``range``, ``after``, ``until``, ``once``).

Salt uses dateutil, which guesses. This parser accepts the following forms, each at most once and in any order. A text
that has anything else in it is an error:

    5:00pm   5pm   17:00   17:00:30          a time of day; without one it is midnight
    2026-01-31   2026/01/31   20260131       a date
    01/31/2026   31.01.2026                  month first with slashes, day first with dots
    Jan 31, 2026   31 January   Jan 31       a date; without a year it is this year
    Monday   Tue                             the next such day, today included; ignored beside a date
    2026-01-31T17:00:30   now   today   tomorrow

All are in the minion's local time. A time zone (``Z``, ``+01:00``) is refused, because dates with and without one
cannot be compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta

_MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_MONTHS: Mapping[str, int] = {
    **{name: number for number, name in enumerate(_MONTH_NAMES, 1)},
    **{name[:3]: number for number, name in enumerate(_MONTH_NAMES, 1)},
    "sept": 9,
}
_WEEKDAYS: Mapping[str, int] = {
    **{name: number for number, name in enumerate(_DAY_NAMES)},
    **{name[:3]: number for number, name in enumerate(_DAY_NAMES)},
    "tues": 1,
    "weds": 2,
    "thur": 3,
    "thurs": 3,
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_WEEKDAY = "|".join(sorted(_WEEKDAYS, key=len, reverse=True))

#: End of a pattern: the word or number must end there too.
_END = r"(?![\w:])"

_TIMES = (
    re.compile(rf"(?:(?<=\d)t|\b)(\d\d?):(\d\d)(?::(\d\d)(?:\.\d+)?)?\s*([ap])\.?m\.?{_END}"),
    re.compile(rf"(?:(?<=\d)t|\b)(\d\d?):(\d\d)(?::(\d\d)(?:\.\d+)?)?{_END}"),
    re.compile(rf"\b(\d\d?)()()\s*([ap])\.?m\.?{_END}"),
)


def _ymd(match: re.Match[str], today: date) -> date:
    return date(int(match[1]), int(match[2]), int(match[3]))


def _mdy(match: re.Match[str], today: date) -> date:
    return date(int(match[3]), int(match[1]), int(match[2]))


def _dmy(match: re.Match[str], today: date) -> date:
    return date(int(match[3]), int(match[2]), int(match[1]))


def _month_day(match: re.Match[str], today: date) -> date:
    return date(int(match[3] or today.year), _MONTHS[match[1]], int(match[2]))


def _day_month(match: re.Match[str], today: date) -> date:
    return date(int(match[3] or today.year), _MONTHS[match[2]], int(match[1]))


_DATES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], date]], ...] = (
    (re.compile(r"(?<![\d-])(\d{4})-(\d\d?)-(\d\d?)(?![\d-])"), _ymd),
    (re.compile(r"(?<![\d/])(\d{4})/(\d\d?)/(\d\d?)(?![\d/])"), _ymd),
    (re.compile(rf"\b(\d{{4}})(\d\d)(\d\d){_END}"), _ymd),
    (re.compile(r"(?<![\d/])(\d\d?)/(\d\d?)/(\d{4})(?![\d/])"), _mdy),
    (re.compile(r"(?<![\d.])(\d\d?)\.(\d\d?)\.(\d{4})(?![\d.])"), _dmy),
    (re.compile(rf"\b({_MONTH})\.?\s+(\d\d?)(?:st|nd|rd|th)?(?:,?\s+(\d{{4}}))?{_END}"), _month_day),
    (re.compile(rf"\b(\d\d?)(?:st|nd|rd|th)?\s+({_MONTH})\.?(?:,?\s+(\d{{4}}))?{_END}"), _day_month),
)
_DAY_OF_WEEK = re.compile(rf"\b({_WEEKDAY})\b\.?")
_WORDS = re.compile(r"\b(now|today|tomorrow)\b")
_FILL = re.compile(r"\b(?:at|on|and)\b|[\s,]+")


def parse_date(value: object, now: datetime) -> datetime:
    """Return the date and time that a value in a schedule describes, in local time.

    ``now`` supplies the day, week and year that the text leaves out. Raises ValueError with the part of the text that
    cannot be parsed.
    """
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise ValueError(f"{value} has a time zone; write it in the minion's local time")
        return value
    if isinstance(value, date):
        return datetime.combine(value, time())
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a date")
    rest = value.strip().lower()
    if not rest:
        raise ValueError("'' is not a date")
    if rest == "now":
        return now
    try:
        clock, rest = _time_of_day(rest)
        day, rest = _day(rest, now.date())
    except ValueError as error:
        raise ValueError(f"'{value}': {error}") from error
    if left := _FILL.sub(" ", rest).strip():
        raise ValueError(f"'{value}': '{left}' is not understood")
    return datetime.combine(day, clock)


def _time_of_day(text: str) -> tuple[time, str]:
    for pattern in _TIMES:
        if match := pattern.search(text):
            hour, minute, second = int(match[1]), int(match[2] or 0), int(match[3] or 0)
            if half := match[4] if match.lastindex == 4 else None:
                if not 1 <= hour <= 12:
                    raise ValueError(f"hour {hour} is not between 1 and 12")
                hour = hour % 12 + (12 if half == "p" else 0)
            return time(hour, minute, second), text[: match.start()] + " " + text[match.end() :]
    return time(), text


def _day(text: str, today: date) -> tuple[date, str]:
    found: date | None = None
    for pattern, read in _DATES:
        if match := pattern.search(text):
            found = read(match, today)
            text = text[: match.start()] + " " + text[match.end() :]
            break
    if match := _DAY_OF_WEEK.search(text):
        text = text[: match.start()] + " " + text[match.end() :]
        if found is None:
            found = today + timedelta(days=(_WEEKDAYS[match[1]] - today.weekday()) % 7)
    elif found is None and (match := _WORDS.search(text)):
        text = text[: match.start()] + " " + text[match.end() :]
        found = today + timedelta(days=match[1] == "tomorrow")
    return found or today, text
