"""Decide if a scheduled job is due: from the clock and the job's progress to a verdict and the new progress.

Intervals use a monotonic clock (``steady``, which also counts while the machine sleeps), so they neither drift nor
depend on the time of day. ``cron``, ``when`` and ``once`` use the time of day:

- If the clock is set forward past several times, a cron job runs once. A ``when`` or ``once`` time that passed more than
  an hour ago is missed.
- If the clock is set back by less than three hours (end of summer time), a time that has run does not run again, unless
  the job runs every hour. If it is set back further, all jobs use the new time.
- Times that passed before the minion started are missed.

Source: docs/execution.md#schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from statecore.system.scheduling.dates import parse_date
from statecore.system.scheduling.job import Job, Range

_SECOND = timedelta(seconds=1)

#: Largest delay after which a date still runs, for example because the machine slept.
_LATEST = timedelta(hours=1)

#: If the clock is set back by less than this, times that have run do not run again. As in Vixie's cron.
_SMALL_STEP_BACK = timedelta(hours=3)
_TINY_STEP_BACK = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Clock:
    """The current time by two clocks: the local time of day, and a monotonic clock."""

    #: Local time of day, without a time zone.
    wall: datetime
    #: Seconds of a monotonic clock.
    steady: float


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a scheduled job between two checks: the times of its last check, its last run, its next run and its last
    skip.
    """

    #: Time of the last check.
    looked: datetime | None = None
    #: Time of the next run on the monotonic clock, without splay. For interval jobs.
    base: float | None = None
    #: Time of the next run, without splay. For other jobs.
    moment: datetime | None = None
    #: Date on which ``moment`` was computed. On another date, "5pm" is another time.
    computed: date | None = None
    #: Splay of the next run in seconds. None: not drawn yet.
    delay: int | None = None
    #: Time at which a skipped run is made up for (``run_after_skip_range``).
    made_up: datetime | None = None
    last_run: datetime | None = None
    skip_reason: str = ""
    skipped_at: datetime | None = None
    #: Time of the next run, with splay, for display.
    next_fire: datetime | None = None


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """Settings of the minion's schedule that apply to all jobs."""

    enabled: bool = True
    #: Function that runs instead of a job that is skipped because of its range or an explicit skip.
    skip_function: str = ""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of checking whether a scheduled job is due: the function to run, if any, and the job's new progress."""

    progress: Progress
    #: Function to run now; "" for none.
    function: str = ""


#: Function that draws a random number between (smallest, largest), for the splay.
Draw = Callable[[int, int], int]


def check(job: Job, before: Progress, clock: Clock, world: ScheduleSettings, draw: Draw) -> CheckResult:
    """Check whether a scheduled job is due. Return the job's new progress and the function to run.

    Raises ValueError for a date of the job that has become invalid (29 February without a year).
    """
    due, due_at, after = _timing(job, before, clock, draw)
    starting = before.looked is None and job.run_on_start
    explicit = any(_passed(one, before.looked, clock.wall) for one in job.run_explicit)
    making_up = before.made_up is not None and clock.wall >= before.made_up
    after = replace(
        after, looked=clock.wall, skip_reason="", skipped_at=None, made_up=None if making_up else before.made_up
    )
    if not (due or starting or explicit or making_up):
        kept = replace(after, skip_reason=before.skip_reason, skipped_at=before.skipped_at)
        return CheckResult(kept)
    function, reason = job.function, ""
    if not starting:
        reason, replaceable = _gate(job, clock.wall, due_at)
        if reason and replaceable and world.skip_function:
            function, reason = world.skip_function, ""
        if reason == "in_skip_range" and job.run_after_skip_range and job.skip_range is not None:
            after = replace(after, made_up=job.skip_range.bounds(clock.wall)[1] + _SECOND)
    if not (world.enabled and job.enabled):
        reason = "disabled"
    if reason:
        return CheckResult(replace(after, skip_reason=reason, skipped_at=clock.wall))
    return CheckResult(replace(after, last_run=clock.wall), function)


def skipped(progress: Progress, reason: str, now: datetime) -> Progress:
    """Return a copy of a scheduled job's progress that records a due run that was skipped at ``now``, with its ``reason``."""
    return replace(progress, skip_reason=reason, skipped_at=now)


# ------------------------------------------------------------------------------------------------------- the next time


def _timing(job: Job, before: Progress, clock: Clock, draw: Draw) -> tuple[bool, datetime, Progress]:
    """Return (True if the scheduled job's time has come, that time, the job's new progress)."""
    if job.interval:
        return _interval(job, before, clock, draw)
    if job.cron is not None or job.dates is not None:
        return _moments(job, before, clock, draw)
    return False, clock.wall, before


def _interval(job: Job, before: Progress, clock: Clock, draw: Draw) -> tuple[bool, datetime, Progress]:
    base = before.base if before.base is not None else clock.steady + job.interval
    delay = _delay(job, before, draw)
    due = clock.steady >= base + delay
    due_at = clock.wall + timedelta(seconds=base + delay - clock.steady)
    if not due:
        return False, due_at, replace(before, base=base, delay=delay, next_fire=due_at)
    # Counted from the time that the run was due, so the interval does not drift. Missed runs are not made up for.
    base += job.interval * ((clock.steady - base) // job.interval + 1)
    following = replace(before, base=base, delay=None)
    delay = _delay(job, following, draw)
    next_fire = clock.wall + timedelta(seconds=base + delay - clock.steady)
    return True, due_at, replace(following, delay=delay, next_fire=next_fire)


def _moments(job: Job, before: Progress, clock: Clock, draw: Draw) -> tuple[bool, datetime, Progress]:
    # A job that runs every hour must not pause during the repeated hour at the end of summer time.
    step_back = _TINY_STEP_BACK if job.cron is not None and job.cron.every_hour else _SMALL_STEP_BACK
    set_back = before.looked is not None and before.looked - clock.wall > step_back
    moment, computed = before.moment, before.computed
    if set_back or before.looked is None or (moment is None and computed != clock.wall.date()):
        since = before.looked if before.looked is not None and not set_back else clock.wall - _first_grace(job)
        moment, computed = _next(job, since, clock.wall), clock.wall.date()
        before = replace(before, delay=None)
    if moment is None:
        return False, clock.wall, replace(before, moment=None, computed=computed, next_fire=None)
    delay = _delay(job, before, draw)
    due_at = moment + timedelta(seconds=delay)
    if clock.wall < due_at:
        return False, due_at, replace(before, moment=moment, computed=computed, delay=delay, next_fire=due_at)
    due = job.cron is not None or clock.wall - due_at <= _LATEST
    following = _next(job, clock.wall, clock.wall)
    after = replace(before, moment=following, computed=clock.wall.date(), delay=None)
    if following is not None:
        delay = _delay(job, after, draw)
        after = replace(after, delay=delay, next_fire=following + timedelta(seconds=delay))
    else:
        after = replace(after, next_fire=None)
    return due, due_at, after


def _first_grace(job: Job) -> timedelta:
    """Return a timedelta: at a scheduled job's first check, a date of the job that passed by at most this time still
    counts as due. It is one second; zero for a cron job, as in Salt.
    """
    return timedelta() if job.cron is not None else _SECOND


def _next(job: Job, since: datetime, now: datetime) -> datetime | None:
    if job.cron is not None:
        return job.cron.after(since)
    assert job.dates is not None
    # "5pm" may have passed today. Then tomorrow's counts.
    tomorrow = datetime.combine(now.date() + timedelta(days=1), datetime.min.time())
    return min((one for day in (now, tomorrow) for one in job.dates(day) if one > since), default=None)


def _delay(job: Job, progress: Progress, draw: Draw) -> int:
    if progress.delay is not None:
        return progress.delay
    return draw(*job.splay) if job.splay else 0


# ----------------------------------------------------------------------------------------------------------- conditions


def _gate(job: Job, now: datetime, due_at: datetime) -> tuple[str, bool]:
    """Return (Salt's reason why a due job of the schedule is skipped, "" if it may run; True if ``skip_function`` may run
    instead).
    """
    if job.range is not None and (reason := _outside(job.range, now)):
        return reason, not job.range.invert
    if job.skip_range is not None and _inside(job.skip_range, now):
        return "in_skip_range", True
    if any(abs(due_at - one) <= _SECOND for one in job.skip_explicit):
        return "skip_explicit", True
    if job.until is not None and parse_date(job.until, now) <= now:
        return "until_passed", False
    if job.after is not None and parse_date(job.after, now) >= now:
        return "after_not_passed", False
    return "", False


def _outside(span: Range, now: datetime) -> str:
    start, end = span.bounds(now)
    if span.invert:
        return "in_skip_range" if start < now < end else ""
    return "" if start <= now <= end else "not_in_range"


def _inside(span: Range, now: datetime) -> bool:
    start, end = span.bounds(now)
    return start <= now <= end


def _passed(moment: datetime, looked: datetime | None, now: datetime) -> bool:
    """Return True if the date ``moment`` of a scheduled job has come since the job's last check at ``looked``."""
    since = looked if looked is not None else now - _SECOND
    return since < moment <= now and now - moment <= _LATEST
