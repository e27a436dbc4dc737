"""Due times of jobs: whole days simulated second by second or with clock changes, and properties of any schedule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statecore.system.scheduling.due import Clock, Progress, ScheduleSettings, check, skipped
from statecore.system.scheduling.job import Job

#: A Saturday.
START = datetime(2026, 3, 14, 12, 0, 0)


@dataclass
class Played:
    """A job and a simulated clock."""

    job: Job
    world: ScheduleSettings = field(default_factory=ScheduleSettings)
    drawn: int = 0
    wall: datetime = START
    steady: float = 1000.0
    progress: Progress = field(default_factory=Progress)
    #: What ran, when by the clock on the wall.
    ran: list[tuple[str, str]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def look(self) -> None:
        seen = check(
            self.job, self.progress, Clock(self.wall, self.steady), self.world, lambda low, high: low + self.drawn
        )
        self.progress = seen.progress
        if seen.function:
            self.ran.append((seen.function, str(self.wall)))
        if seen.progress.skip_reason and seen.progress.skipped_at == self.wall:
            self.reasons.append(seen.progress.skip_reason)

    def sleep(self, seconds: float, every: float = 1.0) -> None:
        """Advance the clocks and check the job every second."""
        for _ in range(round(seconds / every)):
            self.wall += timedelta(seconds=every)
            self.steady += every
            self.look()

    def leap(self, seconds: float) -> None:
        """Set the time of day."""
        self.wall += timedelta(seconds=seconds)

    def suspend(self, seconds: float) -> None:
        """Advance the clocks without checking the job."""
        self.wall += timedelta(seconds=seconds)
        self.steady += seconds

    @property
    def times(self) -> list[str]:
        return [moment[11:] for _, moment in self.ran]


def played(data: Mapping[str, Any], *, whole: Mapping[str, Any] | None = None, drawn: int = 0, **world: Any) -> Played:
    job = Job.of("j", {"function": "test.ping", **data}, whole or {}, {"lunch": "12:00:20"}, START)
    return Played(job, ScheduleSettings(**world), drawn)


#: What the job is, for how many seconds it is looked at from noon, when it ran.
TABLE: Sequence[tuple[Mapping[str, Any], int, Iterable[str]]] = (
    ({"seconds": 20}, 60, ["12:00:00", "12:00:20", "12:00:40", "12:01:00"]),
    ({"seconds": "20"}, 20, ["12:00:00", "12:00:20"]),
    # As a stock minion saves it.
    ({"seconds": 20.5, "run": True, "splay": None, "cron": None, "maxrunning": None}, 20, ["12:00:00", "12:00:20"]),
    ({"minutes": 1, "seconds": 30}, 200, ["12:00:00", "12:01:30", "12:03:00"]),
    ({"hours": 1}, 3600, ["12:00:00", "13:00:00"]),
    ({"days": 1}, 3600, ["12:00:00"]),
    ({"seconds": 20, "run_on_start": False}, 45, ["12:00:20", "12:00:40"]),
    ({"seconds": 20, "enabled": False}, 60, []),
    ({"seconds": 20, "splay": 5}, 60, ["12:00:00", "12:00:21", "12:00:41"]),
    ({"seconds": 20, "splay": {"start": 3, "end": 6}, "run_on_start": False}, 60, ["12:00:23", "12:00:43"]),
    ({"cron": "* * * * *"}, 150, ["12:01:00", "12:02:00"]),
    ({"cron": "* * * * *", "run_on_start": True}, 90, ["12:00:00", "12:01:00"]),
    ({"cron": "* * * * *", "splay": 10}, 150, ["12:01:01", "12:02:01"]),
    ({"cron": "* * * * * */30"}, 60, ["12:00:30", "12:01:00"]),
    ({"when": "12:00:30"}, 60, ["12:00:30"]),
    ({"when": ["12:00:10pm", "Saturday 12:00:30", "3:00pm"]}, 60, ["12:00:10", "12:00:30"]),
    ({"when": "lunch"}, 60, ["12:00:20"]),
    ({"when": "12:00:30", "splay": {"start": 4, "end": 9}}, 60, ["12:00:34"]),
    ({"when": "Sunday 12:00:30"}, 60, []),
    ({"when": "11:59:30"}, 60, []),
    # Just now is not the past.
    ({"when": "12:00pm"}, 60, ["12:00:00"]),
    ({"once": "2026-03-14T12:00:30"}, 60, ["12:00:30"]),
    ({"once": datetime(2026, 3, 14, 12, 0, 30)}, 60, ["12:00:30"]),
    ({"once": "14.3.26 12:00", "once_fmt": "%d.%m.%y %H:%M"}, 60, ["12:00:00"]),
    ({"once": "2026-03-14T11:00:30"}, 60, []),
    ({"once": "2027-03-14T12:00:30"}, 60, []),
    ({"seconds": 20, "range": {"start": "12:00:30", "end": "12:01:10"}}, 100, ["12:00:00", "12:00:40", "12:01:00"]),
    (
        {"seconds": 20, "range": {"start": "12:00:30", "end": "12:01:10", "invert": True}, "run_on_start": False},
        100,
        ["12:00:20", "12:01:20", "12:01:40"],
    ),
    (
        {"seconds": 20, "skip_during_range": {"start": "12:00:30", "end": "12:01:10"}, "run_on_start": False},
        100,
        ["12:00:20", "12:01:20", "12:01:40"],
    ),
    (
        {
            "cron": "* * * * *",
            "skip_during_range": {"start": "12:00:30", "end": "12:01:10"},
            "run_after_skip_range": True,
        },
        130,
        ["12:01:11", "12:02:00"],
    ),
    ({"seconds": 20, "until": "12:00:30"}, 100, ["12:00:00", "12:00:20"]),
    ({"seconds": 20, "after": "12:00:30", "run_on_start": False}, 60, ["12:00:40", "12:01:00"]),
    # Each gate counts, not the last one alone.
    (
        {"seconds": 20, "range": {"start": "12:00:30", "end": "12:02"}, "until": "12:00:50", "run_on_start": False},
        100,
        ["12:00:40"],
    ),
    ({"seconds": 20, "skip_explicit": [{"time": "2026-03-14T12:00:40"}]}, 60, ["12:00:00", "12:00:20", "12:01:00"]),
    # One that is still to come holds nothing up.
    ({"seconds": 20, "skip_explicit": ["2026-03-15T12:00:40"]}, 40, ["12:00:00", "12:00:20", "12:00:40"]),
    (
        {"seconds": 20, "skip_explicit": ["2026-03-14T12:00:40"], "run_explicit": ["2026-03-14T12:00:45"]},
        60,
        ["12:00:00", "12:00:20", "12:00:45", "12:01:00"],
    ),
    ({"run_explicit": ["2026-03-14T12:00:45", "2026-03-14T11:00:00"]}, 60, ["12:00:45"]),
    # Without a time it runs when somebody says so.
    ({}, 60, []),
)


@pytest.mark.parametrize(("data", "seconds", "times"), TABLE, ids=[str(row[0]) for row in TABLE])
def test_when_jobs_run(data: Mapping[str, Any], seconds: int, times: Iterable[str]) -> None:
    one = played(data)
    one.look()
    one.sleep(seconds)
    assert one.times == times


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"range": {"start": "1pm", "end": "2pm"}}, "not_in_range"),
        ({"range": {"start": "11am", "end": "2pm", "invert": True}}, "in_skip_range"),
        ({"skip_during_range": {"start": "11am", "end": "1pm"}}, "in_skip_range"),
        ({"skip_explicit": ["2026-03-14T12:00:20"]}, "skip_explicit"),
        ({"until": "11am"}, "until_passed"),
        ({"after": "1pm"}, "after_not_passed"),
        ({"enabled": False}, "disabled"),
    ],
)
def test_why_a_job_does_not_run(data: Mapping[str, Any], reason: str) -> None:
    one = played({"seconds": 20, "run_on_start": False, **data})
    one.look()
    one.sleep(20)
    assert (one.times, one.reasons) == ([], [reason])


@pytest.mark.parametrize(
    "data",
    [
        {"range": {"start": "1pm", "end": "2pm"}},
        {"skip_during_range": {"start": "11am", "end": "1pm"}},
        {"skip_explicit": ["2026-03-14T12:00:20"]},
    ],
)
def test_another_function_runs_in_place_of_what_is_skipped(data: Mapping[str, Any]) -> None:
    one = played({"seconds": 20, "run_on_start": False, **data}, skip_function="test.version")
    one.look()
    one.sleep(20)
    assert one.ran == [("test.version", "2026-03-14 12:00:20")]


def test_what_holds_for_all_jobs() -> None:
    one = played({"seconds": 20}, whole={"splay": 5, "skip_during_range": {"start": "12:00:30", "end": "1pm"}}, drawn=2)
    one.look()
    one.sleep(60)
    assert (one.times, one.reasons) == (["12:00:00", "12:00:23"], ["in_skip_range"])
    other = played({"seconds": 20}, enabled=False)
    other.look()
    other.sleep(60)
    assert other.times == []


# ------------------------------------------------------------------------------------------------- clocks that are set


def test_an_interval_does_not_drift_however_late_it_is_noticed() -> None:
    one = played({"seconds": 10, "run_on_start": False})
    one.look()
    one.sleep(100.8, every=0.7)
    assert len(one.ran) == 10
    assert one.progress.base == 1000 + 110


@pytest.mark.parametrize("seconds", [-7200, -100000, 7200, 100000])
def test_an_interval_takes_no_notice_of_a_clock_that_is_set(seconds: int) -> None:
    one = played({"seconds": 20, "run_on_start": False})
    one.look()
    one.sleep(15)
    one.leap(seconds)
    one.sleep(4)
    assert one.ran == []
    one.sleep(1)
    assert len(one.ran) == 1
    one.sleep(20)
    assert len(one.ran) == 2


def test_what_was_missed_asleep_runs_once() -> None:
    for data in ({"seconds": 20}, {"cron": "* * * * *"}):
        one = played({**data, "run_on_start": False})
        one.look()
        one.suspend(600)
        one.look()
        one.look()
        assert one.times == ["12:10:00"]


def test_a_date_of_more_than_an_hour_ago_is_missed() -> None:
    for data in ({"when": "12:30pm"}, {"once": "2026-03-14T12:30:00"}):
        late = played(data)
        late.look()
        late.suspend(3600)
        late.look()
        assert late.times == ["13:00:00"]
        too_late = played(data)
        too_late.look()
        too_late.suspend(2 * 3600)
        too_late.look()
        assert too_late.times == []


@pytest.mark.parametrize("data", [{"cron": "30 12 * * *"}, {"when": "12:30pm"}, {"once": "2026-03-14T12:30:00"}])
def test_set_back_by_an_hour_what_has_run_does_not_run_again(data: Mapping[str, Any]) -> None:
    one = played(data)
    one.look()
    one.sleep(1900)
    one.leap(-3600)
    one.sleep(3700)
    assert one.times == ["12:30:00"]


def test_set_back_by_an_hour_what_runs_every_hour_goes_on() -> None:
    one = played({"cron": "30 * * * *"})
    one.look()
    one.sleep(1900)
    one.leap(-3600)
    one.sleep(3700)
    assert one.times == ["12:30:00", "12:30:00"]


@pytest.mark.parametrize("data", [{"cron": "30 12 * * *"}, {"when": "12:30pm"}])
def test_set_back_by_a_day_jobs_go_by_the_new_time(data: Mapping[str, Any]) -> None:
    one = played(data)
    one.look()
    one.sleep(1900)
    one.leap(-86400 - 1800)
    one.sleep(1900)
    assert [moment for _, moment in one.ran] == ["2026-03-14 12:30:00", "2026-03-13 12:30:00"]


def test_a_time_of_day_comes_every_day_and_midnight_is_not_lost() -> None:
    for moment in ("12:00am", "11:59:59pm"):
        one = played({"when": moment})
        one.look()
        one.sleep(3 * 86400, every=7)
        assert len(one.ran) == 3
    days = played({"when": "Monday 5pm"})
    days.look()
    days.sleep(15 * 86400, every=60)
    assert [moment for _, moment in days.ran] == ["2026-03-16 17:00:00", "2026-03-23 17:00:00"]


def test_the_next_time_is_told() -> None:
    one = played({"cron": "0 3 * * *"})
    one.look()
    assert one.progress.next_fire == datetime(2026, 3, 15, 3)
    one.suspend(86400)
    one.look()
    assert one.progress.next_fire == datetime(2026, 3, 16, 3)
    past = played({"once": "2026-03-14T11:00:30"})
    past.look()
    assert past.progress.next_fire is None


def test_a_date_that_can_no_more_be_read_is_an_error_that_names_it() -> None:
    leap_day = Job.of("j", {"function": "test.ping", "when": "Feb 29"}, {}, {}, datetime(2028, 1, 1))
    with pytest.raises(ValueError, match="'Feb 29': day is out of range"):
        check(leap_day, Progress(), Clock(datetime(2029, 1, 1), 0.0), ScheduleSettings(), lambda low, _: low)


def test_a_run_that_did_not_take_place_says_why() -> None:
    progress = skipped(Progress(), "maxrunning", START)
    assert (progress.skip_reason, progress.skipped_at) == ("maxrunning", START)


# ------------------------------------------------------------------------------------------ what holds of any schedule

STEPS = st.lists(st.floats(0.05, 400.0), min_size=1, max_size=60)


@settings(max_examples=150)
@given(
    interval=st.integers(1, 300),
    splay=st.integers(0, 40),
    steps=STEPS,
    leaps=st.lists(st.integers(-9000, 9000), max_size=5),
)
def test_intervals_are_kept_whatever_happens(interval: int, splay: int, steps: list[float], leaps: list[int]) -> None:
    """Each interval has at most one run, no run is early, and a run follows after a whole interval and its splay."""
    one = played(
        {"seconds": interval, "run_on_start": False, **({"splay": splay} if splay else {})}, drawn=max(0, splay - 1)
    )
    one.look()
    begun, runs = one.steady, 0
    for number, step in enumerate(steps):
        one.steady += step
        one.wall += timedelta(seconds=step)
        if number < len(leaps):
            one.leap(leaps[number])
        one.look()
        assert len(one.ran) - runs <= 1
        runs = len(one.ran)
        assert runs <= (one.steady - begun) // interval
        assert (runs == 0) == (one.steady < begun + interval + splay)
        assert one.progress.base is not None
        assert (one.progress.base - begun) % interval == 0


@settings(max_examples=150)
@given(
    minutes=st.lists(st.integers(0, 59), min_size=1, max_size=3, unique=True),
    hours=st.lists(st.integers(0, 23), min_size=1, max_size=3, unique=True),
    steps=st.lists(st.floats(0.1, 7000.0), min_size=1, max_size=60),
)
def test_cron_runs_exactly_when_one_of_its_times_has_passed(
    minutes: list[int], hours: list[int], steps: list[float]
) -> None:
    one = played({"cron": f"{','.join(map(str, minutes))} {','.join(map(str, hours))} * * *"})
    one.look()
    moments = [one.wall]
    for step in steps:
        one.suspend(step)
        one.look()
        moments.append(one.wall)
    ran = {moment for _, moment in one.ran}
    for before, after in pairwise(moments):
        passed = any(
            before < moment.replace(hour=hour, minute=minute, second=0, microsecond=0) <= after
            for hour in hours
            for minute in minutes
            for moment in (before, after)
        )
        assert (str(after) in ran) == passed


# ------------------------------------------------------------------------------------------------------- bad schedules


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("text", "a job is a map of options, not 'text'"),
        ({"seconds": 5}, "function is missing"),
        ({"function": 5, "seconds": 5}, "function is missing"),
        ({"function": "f", "seconds": 0}, "the interval must be at least one second"),
        ({"function": "f", "seconds": -5}, "seconds must be at least 0, not -5"),
        ({"function": "f", "seconds": "often"}, "seconds must be a whole number, not 'often'"),
        ({"function": "f", "seconds": 0.5}, "the interval must be at least one second"),
        ({"function": "f", "seconds": True}, "seconds must be a whole number, not True"),
        ({"function": "f", "seconds": 5, "cron": "* * * * *"}, "these options exclude each other: seconds, cron"),
        ({"function": "f", "when": "5pm", "once": "x"}, "these options exclude each other: when, once"),
        ({"function": "f", "cron": "* * *"}, "Invalid cron string: '\\* \\* \\*': Exactly 5, 6 or 7"),
        ({"function": "f", "when": "sometime"}, "Invalid date string: 'sometime'"),
        ({"function": "f", "when": ["5pm", 5]}, "Invalid date string: 5 is not a date"),
        ({"function": "f", "once": "5pm"}, "once: Date string could not be parsed: 5pm, %Y-%m-%dT%H:%M:%S"),
        ({"function": "f", "splay": "x"}, "splay must be a whole number, not 'x'"),
        ({"function": "f", "splay": {"start": 5}}, "splay is a number, or a map of start and end"),
        ({"function": "f", "splay": {"start": 5, "end": 1}}, "Invalid Splay, end must be larger than start: 5, 1"),
        ({"function": "f", "range": "5pm"}, "range must be specified as a dictionary of start and end, not '5pm'"),
        ({"function": "f", "range": {"start": "5pm"}}, "range must be specified as a dictionary"),
        ({"function": "f", "range": {"start": "8pm", "end": "6am"}}, "the end of the range, 6am, must be later"),
        ({"function": "f", "skip_during_range": {"start": "x", "end": "6am"}}, "'x': Unknown string format"),
        ({"function": "f", "until": "x"}, "'x': Unknown string format"),
        ({"function": "f", "skip_explicit": ["x"]}, "skip_explicit: Date string could not be parsed: x"),
        ({"function": "f", "run_explicit": [{"tme": 1}]}, "run_explicit: Date string could not be parsed: None"),
        ({"function": "f", "maxrunning": 0}, "maxrunning must be at least 1, not 0"),
        ({"function": "f", "args": "x"}, "args is a list, not 'x'"),
        ({"function": "f", "kwargs": ["x"]}, "kwargs is a map, not \\['x'\\]"),
    ],
)
def test_a_job_that_is_none_says_why(data: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("(", r"\(")):
        Job.of("j", data, {}, {}, START)
