"""Cron expressions of a schedule: their next times, and invalid expressions. That croniter finds the times is Salt's choice."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime

import pytest

from statecore.system.scheduling.cron import Cron

START = datetime(2026, 3, 14, 15, 9, 26)

NEXT = [
    ("* * * * *", "2026-03-14 15:10:00"),
    ("*/15 * * * *", "2026-03-14 15:15:00"),
    ("0 3 * * *", "2026-03-15 03:00:00"),
    ("9 15 * * *", "2026-03-15 15:09:00"),
    ("30 4 1,15 * *", "2026-03-15 04:30:00"),
    ("0 0 * * mon", "2026-03-16 00:00:00"),
    ("0 0 * * 0", "2026-03-15 00:00:00"),
    ("0 0 * * 7", "2026-03-15 00:00:00"),
    ("0 0 * * sat-mon", "2026-03-15 00:00:00"),
    ("0 12 * * mon-fri", "2026-03-16 12:00:00"),
    ("0 22-2 * * *", "2026-03-14 22:00:00"),
    ("0 0 13 * fri", "2026-03-20 00:00:00"),
    ("0 0 1 jan *", "2027-01-01 00:00:00"),
    ("0 0 29 2 *", "2028-02-29 00:00:00"),
    ("0 0 31 * *", "2026-03-31 00:00:00"),
    ("0 0 l * *", "2026-03-31 00:00:00"),
    ("0 0 * * fri#2", "2026-04-10 00:00:00"),
    ("0 0 * * L5", "2026-03-27 00:00:00"),
    ("5-59/20 * * * *", "2026-03-14 15:25:00"),
    ("10/20 * * * *", "2026-03-14 15:10:00"),
    ("0 0 */10 * *", "2026-03-21 00:00:00"),
    ("0 0 1 */3 *", "2026-04-01 00:00:00"),
    ("@hourly", "2026-03-14 16:00:00"),
    ("@daily", "2026-03-15 00:00:00"),
    ("@weekly", "2026-03-15 00:00:00"),
    ("@monthly", "2026-04-01 00:00:00"),
    ("@yearly", "2027-01-01 00:00:00"),
    ("* * * * * */10", "2026-03-14 15:09:30"),
    ("9 15 * * * 30", "2026-03-14 15:09:30"),
    ("0 0 1 1 * 0 2030", "2030-01-01 00:00:00"),
    ("0 0 15W * *", "2026-03-16 00:00:00"),
    # Vixie's cron takes "*/2" for unrestricted and waits for a Monday.
    ("0 0 */2 * mon", "2026-03-15 00:00:00"),
]


@pytest.mark.parametrize(("text", "expected"), NEXT)
def test_next(text: str, expected: str) -> None:
    assert Cron.parse(text).after(START) == datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "'': Exactly 5, 6 or 7 columns"),
        ("* * * *", "Exactly 5, 6 or 7 columns"),
        ("60 * * * *", "out of range"),
        ("* * 0 * *", "out of range"),
        ("* * * * 8", "out of range"),
        ("* * * foo *", "is not acceptable"),
        ("*/0 * * * *", "step '0' in field 0 is not acceptable"),
        ("1,,2 * * * *", "is not acceptable"),
        ("@often", "'@often': Exactly 5, 6 or 7 columns"),
        (None, "'None': Exactly 5, 6 or 7 columns"),
    ],
)
def test_what_is_refused(text: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Cron.parse(text)


def test_a_day_that_no_month_has_never_comes() -> None:
    assert Cron.parse("0 0 30 2 *").after(START) is None


def test_the_end_of_time_is_no_error() -> None:
    assert Cron.parse("0 0 1 1 *").after(datetime(9999, 12, 31, 23, 59, 59)) is None


@pytest.mark.parametrize(
    ("text", "every"), [("0 * * * *", True), ("0 */1 * * *", True), ("0 0-23 * * *", True), ("0 */2 * * *", False)]
)
def test_an_expression_of_every_hour(text: str, every: bool) -> None:
    assert Cron.parse(text).every_hour is every


def test_croniter_is_imported_by_the_first_expression_only() -> None:
    program = (
        "import sys; from statecore.system.scheduling import due, job\n"
        "from datetime import datetime as d\n"
        "job.Job.of('j', {'function': 'f', 'hours': 1}, {}, {}, d.now())\n"
        "print(sorted({'croniter', 'dateutil'} & set(sys.modules)))\n"
        "job.Job.of('j', {'function': 'f', 'cron': '@daily'}, {}, {}, d.now())\n"
        "job.Job.of('j', {'function': 'f', 'when': '5pm'}, {}, {}, d.now())\n"
        "print(sorted({'croniter', 'dateutil'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == ["[]", "['croniter', 'dateutil']"]
