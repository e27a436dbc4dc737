"""Cron expressions: next times compared with croniter (which Salt uses), and invalid expressions."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statecore.system.scheduling.cron import Cron
from tests.conftest import Oracle

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
]


@pytest.mark.parametrize(("text", "expected"), NEXT)
def test_next(text: str, expected: str) -> None:
    assert Cron.parse(text).after(START) == datetime.fromisoformat(expected)


@pytest.mark.oracle
def test_croniter_says_the_same(oracle: Oracle) -> None:
    """Compare the next five times of every expression in the table, from several start times."""
    starts = [START, datetime(2024, 2, 28, 23, 59, 59), datetime(2025, 12, 31, 23, 0)]
    asked = [(text, start.isoformat()) for text, _ in NEXT for start in starts]
    program = (
        "import json, sys; from datetime import datetime; from croniter import croniter\n"
        "print(json.dumps([[str(each.get_next(datetime)) for _ in range(5)] for each in"
        " (croniter(t, datetime.fromisoformat(s)) for t, s in json.load(sys.stdin))]))"
    )
    told = json.loads(oracle.run("python", "-c", program, stdin=json.dumps(asked)))
    for (text, start), theirs in zip(asked, told, strict=True):
        cron, moment, ours = Cron.parse(text), datetime.fromisoformat(start), []
        for _ in range(5):
            found = cron.after(moment)
            assert found is not None
            ours.append(str(found))
            moment = found
        assert ours == theirs, (text, start)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "has 0 fields"),
        ("* * * *", "has 4 fields"),
        ("* * * * * * *", "has 7 fields"),
        ("60 * * * *", "the minute '60' is not between 0 and 59"),
        ("* 24 * * *", "the hour '24' is not between 0 and 23"),
        ("* * 0 * *", "the day of the month '0' is not between 1 and 31"),
        ("* * * 13 *", "the month '13' is not between 1 and 12"),
        ("* * * foo *", "the month 'foo' is not between 1 and 12"),
        ("* * * * 8", "the day of the week '8' is not between 0 and 7"),
        ("*/0 * * * *", "has a step of 0"),
        ("a-b-c * * * *", "is not a number, range, list or step"),
        ("1,,2 * * * *", "is not a number, range, list or step"),
        ("-5 * * * *", "is not a number, range, list or step"),
        ("@often", "'@often' is none of"),
        (None, "has 1 fields"),
    ],
)
def test_what_is_refused(text: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Cron.parse(text)


def test_a_day_that_no_month_has_never_comes() -> None:
    assert Cron.parse("0 0 30 2 *").after(START) is None


def test_the_end_of_time_is_no_error() -> None:
    assert Cron.parse("0 0 1 1 *").after(datetime(9999, 12, 31, 23, 59, 59)) is None


def _field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    step = st.integers(1, high - low).map(lambda n: f"*/{n}")
    listed = st.lists(number, min_size=1, max_size=4).map(lambda ns: ",".join(map(str, ns)))
    return st.one_of(st.just("*"), number.map(str), step, listed)


EXPRESSIONS = st.tuples(_field(0, 59), _field(0, 23), _field(1, 28), _field(1, 12), _field(0, 6)).map(" ".join)


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS, st.datetimes(datetime(2000, 1, 1), datetime(2060, 1, 1)))
def test_the_next_time_is_the_first_minute_that_fits(text: str, start: datetime) -> None:
    cron = Cron.parse(text)
    found = cron.after(start)
    assert found is not None
    assert found > start
    assert cron.after(found - timedelta(seconds=1)) == found
    # None between: from any moment before it, it is the next.
    assert cron.after(start + (found - start) / 2) == found
