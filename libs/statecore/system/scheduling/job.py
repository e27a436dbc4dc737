"""One job of a schedule, with its options validated once so that checking the time is cheap.

An invalid option raises ValueError with the option's name.

Salt: salt/utils/schedule.py.
Source: docs/execution.md#schedule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from statecore.model.nearest import close_matches
from statecore.system.scheduling.cron import Cron
from statecore.system.scheduling.dates import parse_date

#: Keys of a schedule that are not jobs but options of all jobs.
GLOBAL = ("enabled", "skip_function", "skip_during_range", "splay")

INTERVALS: Mapping[str, int] = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}
_MOMENTS = ("when", "cron", "once")

#: All options of a job. Names that begin with ``_`` are internal to the scheduler.
OPTIONS = frozenset(
    {
        "name",
        "function",
        "func",
        "fun",
        "args",
        "kwargs",
        *INTERVALS,
        *_MOMENTS,
        "once_fmt",
        "splay",
        "range",
        "skip_during_range",
        "run_after_skip_range",
        "skip_explicit",
        "run_explicit",
        "after",
        "until",
        "enabled",
        "maxrunning",
        "jid_include",
        "return_job",
        "returner",
        "return_config",
        "return_kwargs",
        "metadata",
        "run_on_start",
        "dry_run",
    }
)

#: Options that Salt's scheduler writes into a job and saves with it. They mean nothing when the job is read.
_SAVED_BY_SALT = frozenset({"run"})

#: Format of the times in ``once``, ``skip_explicit`` and ``run_explicit``.
TIME_FORMAT = "%Y-%m-%dT%H:%M:%S"

#: Function from the current time to the job's dates, because "5pm" depends on the day.
DatesAt = Callable[[datetime], Sequence[datetime]]


@dataclass(frozen=True, slots=True)
class Range:
    """A span of time in a job's options (``range``). Start and end are parsed at each check, so that times of day refer
    to today.
    """

    start: object
    end: object
    #: True if the job runs outside of the span.
    invert: bool = False

    def bounds(self, now: datetime) -> tuple[datetime, datetime]:
        """Return (start, end) of the span of time. Raises ValueError if the end is not later than the start."""
        start, end = parse_date(self.start, now), parse_date(self.end, now)
        if end <= start:
            raise ValueError(f"the end of the range, {self.end}, must be later than its start, {self.start}")
        return start, end


@dataclass(frozen=True, slots=True)
class Job:
    """A job of the minion's schedule, with validated options."""

    name: str
    function: str
    #: Seconds between two runs. 0 for a job that uses the time of day or runs only by hand.
    interval: int
    cron: Cron | None
    #: The dates of ``when`` or ``once``.
    dates: DatesAt | None
    #: (smallest, largest) random delay of a run in seconds. None: no delay.
    splay: tuple[int, int] | None
    range: Range | None
    skip_range: Range | None
    run_after_skip_range: bool
    skip_explicit: tuple[datetime, ...]
    run_explicit: tuple[datetime, ...]
    after: object
    until: object
    run_on_start: bool
    enabled: bool
    maxrunning: int
    jid_include: bool
    dry_run: bool

    @classmethod
    def of(
        cls, name: str, data: object, whole: Mapping[str, object], named_dates: Mapping[str, object], now: datetime
    ) -> Job:
        """Return the scheduled job that a map of options describes. Raises ValueError with the invalid option.

        As in Salt, an option without a value (null) counts as absent, and one that does not exist has no effect:
        ``unknown_options`` names these.

        ``whole`` is the job's schedule, with the options for all jobs. ``named_dates`` maps names that ``when`` may use
        to dates (``whens`` in pillar or grains). ``now`` is used only to validate dates.
        """
        if name in GLOBAL:
            raise ValueError(f"no job can be called '{name}': in a schedule that is an option of all jobs")
        if not isinstance(data, Mapping):
            raise ValueError(f"a job is a map of options, not {data!r}")
        arguments_of(data)
        data = {key: value for key, value in data.items() if value is not None}
        kinds = [key for key in (*INTERVALS, *_MOMENTS) if key in data]
        used = {key if key in _MOMENTS else "an interval" for key in kinds}
        if len(used) > 1:
            raise ValueError(f"these options exclude each other: {', '.join(kinds)}")
        interval = _interval(data) if "an interval" in used else 0
        splay = data.get("splay", whole.get("splay"))
        skip_range = data.get("skip_during_range") or whole.get("skip_during_range")
        job = cls(
            name=name,
            function=function_of(data),
            interval=interval,
            cron=_cron(data["cron"]) if "cron" in data else None,
            dates=_dates(data, named_dates),
            splay=_splay(splay) if splay else None,
            range=_range("range", data["range"]) if data.get("range") else None,
            skip_range=_range("skip_during_range", skip_range) if skip_range else None,
            run_after_skip_range=bool(data.get("run_after_skip_range")),
            skip_explicit=_explicit("skip_explicit", data),
            run_explicit=_explicit("run_explicit", data),
            after=data.get("after"),
            until=data.get("until"),
            run_on_start=bool(data.get("run_on_start", bool(interval))),
            enabled=bool(data.get("enabled", True)),
            maxrunning=_whole("maxrunning", data.get("maxrunning", 1), 1),
            jid_include=bool(data.get("jid_include", True)),
            dry_run=bool(data.get("dry_run")),
        )
        job.check(now)
        return job

    def check(self, now: datetime) -> None:
        """Raise ValueError if a date in the options of the scheduled job is invalid."""
        if self.dates is not None:
            self.dates(now)
        for one in (self.range, self.skip_range):
            if one is not None:
                one.bounds(now)
        for option in (self.after, self.until):
            if option is not None:
                parse_date(option, now)


def function_of(data: Mapping[str, object]) -> str:
    """Return the name of the function that a scheduled job runs, from its key "function", "func" or "fun".

    Raises ValueError if no key names a function.
    """
    for key in ("function", "func", "fun"):
        if isinstance(data.get(key), str) and data[key]:
            return str(data[key])
    raise ValueError("function is missing")


def arguments_of(data: Mapping[str, object]) -> tuple[list[object], dict[str, object]]:
    """Return (positional arguments, keyword arguments) of the function that a scheduled job runs.

    Raises ValueError if ``args`` is not a list or ``kwargs`` is not a map.
    """
    args, kwargs = data.get("args") or [], data.get("kwargs") or {}
    if not isinstance(args, list | tuple):
        raise ValueError(f"args is a list, not {args!r}")
    if not isinstance(kwargs, Mapping):
        raise ValueError(f"kwargs is a map, not {kwargs!r}")
    return list(args), {str(key): value for key, value in kwargs.items()}


def unknown_options(data: Mapping[str, object]) -> list[str]:
    """Return an error text for each key in ``data``, the options of a scheduled job, that is not an option of jobs.
    The text names the key and the most similar option.
    """
    found = []
    for key in data:
        if key not in OPTIONS and key not in _SAVED_BY_SALT and not str(key).startswith("_"):
            near = close_matches(str(key), OPTIONS, n=1)
            found.append(f"'{key}' is not an option of a job" + (f"; the nearest is '{near[0]}'" if near else ""))
    return found


def check_new(data: object) -> None:
    """Raise ValueError if ``data``, the options of a job that a user adds, has a key that is not an option of jobs."""
    if isinstance(data, Mapping) and (unknown := unknown_options(data)):
        raise ValueError(unknown[0])


def _interval(data: Mapping[str, object]) -> int:
    total = sum(_whole(key, data[key], 0) * factor for key, factor in INTERVALS.items() if key in data)
    if total < 1:
        raise ValueError("the interval must be at least one second")
    return total


def _whole(name: str, value: object, least: int) -> int:
    # As in Salt, a fraction is cut off.
    value = int(value) if isinstance(value, float) and math.isfinite(value) else value
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, str) and value.isdecimal())):
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    if int(value) < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
    return int(value)


def _cron(text: object) -> Cron:
    try:
        return Cron.parse(text)
    except ValueError as error:
        raise ValueError(f"Invalid cron string: {error}") from error


def _dates(data: Mapping[str, object], named: Mapping[str, object]) -> DatesAt | None:
    if "once" in data:
        moment = data["once"]
        if not isinstance(moment, datetime):
            moment = _strptime("once", moment, str(data.get("once_fmt", TIME_FORMAT)))
        return lambda now: (moment,)
    if "when" not in data:
        return None
    listed = data["when"] if isinstance(data["when"], list) else [data["when"]]
    texts = [named.get(one, one) if isinstance(one, str) else one for one in listed]

    def at(now: datetime) -> Sequence[datetime]:
        try:
            return [parse_date(text, now) for text in texts]
        except ValueError as error:
            raise ValueError(f"Invalid date string: {error}") from error

    return at


def _strptime(option: str, value: object, form: str) -> datetime:
    try:
        if not isinstance(value, str):
            raise TypeError(f"{value!r} is not a text")
        return datetime.strptime(value, form)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{option}: Date string could not be parsed: {value}, {form}") from error


def _splay(value: object) -> tuple[int, int]:
    if not isinstance(value, Mapping):
        return 1, _whole("splay", value, 1)
    if not {"start", "end"} <= set(value):
        raise ValueError(f"splay is a number, or a map of start and end, not {value!r}")
    start, end = _whole("splay: start", value["start"], 0), _whole("splay: end", value["end"], 0)
    if end < start:
        raise ValueError(f"Invalid Splay, end must be larger than start: {start}, {end}")
    return start, end


def _range(option: str, value: object) -> Range:
    if not isinstance(value, Mapping) or not {"start", "end"} <= set(value):
        raise ValueError(f"{option} must be specified as a dictionary of start and end, not {value!r}")
    return Range(value["start"], value["end"], bool(value.get("invert")))


def _explicit(option: str, data: Mapping[str, Any]) -> tuple[datetime, ...]:
    found = []
    for one in data.get(option) or ():
        if isinstance(one, Mapping):
            found.append(_strptime(option, one.get("time"), str(one.get("time_fmt", TIME_FORMAT))))
        else:
            found.append(one if isinstance(one, datetime) else _strptime(option, one, TIME_FORMAT))
    return tuple(sorted(found))
