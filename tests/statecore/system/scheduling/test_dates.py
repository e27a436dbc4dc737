"""Dates in schedules: the value of each form, compared with dateutil (which Salt uses), and invalid dates."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest

from statecore.system.scheduling.dates import parse_date
from tests.conftest import Oracle

#: A Saturday.
NOW = datetime(2026, 3, 14, 15, 9, 26, 5)

FORMS = [
    ("5:00pm", "2026-03-14 17:00:00"),
    ("5:00 PM", "2026-03-14 17:00:00"),
    ("5pm", "2026-03-14 17:00:00"),
    ("12am", "2026-03-14 00:00:00"),
    ("12:30 pm", "2026-03-14 12:30:00"),
    ("5 p.m.", "2026-03-14 17:00:00"),
    ("17:00", "2026-03-14 17:00:00"),
    ("17:00:30", "2026-03-14 17:00:30"),
    ("8:05am", "2026-03-14 08:05:00"),
    ("Monday 5:00pm", "2026-03-16 17:00:00"),
    ("Mon 17:00", "2026-03-16 17:00:00"),
    ("Saturday 3:00pm", "2026-03-14 15:00:00"),
    ("5pm Friday", "2026-03-20 17:00:00"),
    ("Tuesday", "2026-03-17 00:00:00"),
    ("2026-01-31", "2026-01-31 00:00:00"),
    ("2026-01-31 17:00", "2026-01-31 17:00:00"),
    ("2026-01-31T17:00:30", "2026-01-31 17:00:30"),
    ("2026/1/31 5pm", "2026-01-31 17:00:00"),
    ("20260131", "2026-01-31 00:00:00"),
    ("01/31/2026 5:00pm", "2026-01-31 17:00:00"),
    ("31.01.2026 17:00", "2026-01-31 17:00:00"),
    ("Jan 31, 2026 5:00pm", "2026-01-31 17:00:00"),
    ("January 31 2026", "2026-01-31 00:00:00"),
    ("31 January 2026 17:00", "2026-01-31 17:00:00"),
    ("Jan 31st 5pm", "2026-01-31 17:00:00"),
    ("November 5, 2013 1:00PM", "2013-11-05 13:00:00"),
    ("Sat Jan 31 17:00:30 2026", "2026-01-31 17:00:30"),
    ("5pm on January 31", "2026-01-31 17:00:00"),
    ("05.06.2026", "2026-05-06 00:00:00"),
    ("31/01/2026", "2026-01-31 00:00:00"),
    ("1/2/26", "2026-01-02 00:00:00"),
    ("17h30", "2026-03-14 17:30:00"),
    ("31. January 2026", "2026-01-31 00:00:00"),
    ("20260131T170030", "2026-01-31 17:00:30"),
]

#: Ours alone.
MORE = [
    ("now", str(NOW)),
    ("Thurs 1am", "2026-03-19 01:00:00"),
    ("today 5pm", "2026-03-14 17:00:00"),
    ("tomorrow", "2026-03-15 00:00:00"),
]


@pytest.mark.parametrize(("text", "expected"), [*FORMS, *MORE])
def test_forms(text: str, expected: str) -> None:
    assert parse_date(text, NOW) == datetime.fromisoformat(expected)


@pytest.mark.oracle
def test_dateutil_says_the_same(oracle: Oracle) -> None:
    texts = [text for text, _ in FORMS]
    program = (
        "import json, sys; from datetime import datetime; from dateutil import parser\n"
        "day = datetime(2026, 3, 14)\n"
        "print(json.dumps([str(parser.parse(text, default=day)) for text in json.load(sys.stdin)]))"
    )
    told = json.loads(oracle.run("python", "-c", program, stdin=json.dumps(texts)))
    assert dict(zip(texts, told, strict=True)) == dict(FORMS)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2026, 1, 31, 17), datetime(2026, 1, 31, 17)),
        (date(2026, 1, 31), datetime(2026, 1, 31)),
    ],
)
def test_what_yaml_has_read_already(value: Any, expected: datetime) -> None:
    assert parse_date(value, NOW) == expected


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("", "'': String does not contain a date"),
        ("  ", "String does not contain a date"),
        (17, "17 is not a date"),
        (None, "None is not a date"),
        ("whenever", "'whenever': Unknown string format"),
        ("5pm whenever", "Unknown string format"),
        ("25:00", "hour must be in 0..23"),
        ("5:61", "minute must be in 0..59"),
        ("2026-02-30", "day is out of range"),
        ("13/32/2026", "month must be in 1..12"),
        ("99999999999999", "'99999999999999': "),
        *(
            (text, "month or day is missing")
            for text in ("17", "1700", "17.30", "Jan", "January 2026", "2026-01", "32")
        ),
        ("2026-01-31T17:00:30Z", "it has a time zone"),
        ("2026-01-31T17:00:30+01:00", "it has a time zone"),
        ("10:00-17:00", "it has a time zone"),
        ("5pm CET", "Unknown string format"),
        (datetime(2026, 1, 31, tzinfo=UTC), "has a time zone"),
    ],
)
def test_what_is_refused(value: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("(", r"\(").replace("+", r"\+")):
        parse_date(value, NOW)
