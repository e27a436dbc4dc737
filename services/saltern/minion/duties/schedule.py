"""The schedule of the running minion: its jobs and when each ran last and runs next.

Jobs come from the configuration, from the pillar, and from the minion itself (names that begin with ``__``). As in Salt, a
job of the configuration replaces one of the same name in pillar, and functions cannot change a job of the pillar. Changes are
saved to ``schedule_file``. Source: docs/execution.md#schedule
"""

from __future__ import annotations

import copy
import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from saltern.minion.ipc.messages import JobLoad
from saltwire.jid import next_jid
from statecore.runtime.return_delivery import named
from statecore.system.scheduling.due import CheckResult, Clock, Progress, ScheduleSettings, check, skipped
from statecore.system.scheduling.job import GLOBAL, TIME_FORMAT, Job, arguments_of, check_new, unknown_options
from statecore.system.scheduling.schedule_file import ScheduleFileError, load, save

_LOG = logging.getLogger("saltern.minion")

#: Beginnings of the names of jobs that a stock minion adds by itself, and saves with the others. Ours has its own for these duties.
_STOCK_JOBS = ("__mine_interval", "__update_grains", "__master_", "__proxy_keepalive")

#: Returns the number of running jobs with a name in the schedule.
Running = Callable[[str], int]


@dataclass
class ScheduleEntry:
    """One job of the minion's schedule, with the times of its last and next run."""

    data: Mapping[str, object]
    job: Job | None
    #: Reason why ``job`` is None; else empty.
    error: str
    progress: Progress = field(default_factory=Progress)


def now() -> Clock:
    """Return the current wall clock time and the seconds since boot."""
    return Clock(datetime.now(), time.clock_gettime(time.CLOCK_BOOTTIME))


class Schedule:
    """All jobs of the minion's schedule. The main loop calls ``due``; ``manage`` serves the execution module ``schedule``."""

    def __init__(
        self,
        minion_id: str,
        configured: Mapping[str, object],
        file: Path,
        *,
        own: Mapping[str, object] | None = None,
        returners: list[str] | str = "",
        draw: Callable[[int, int], int] = random.randint,
        clock: Callable[[], Clock] = now,
    ) -> None:
        """Create the schedule. ``configured``: the option ``schedule``. ``file``: path of ``schedule_file``, to which
        changes are saved.

        ``own``: definitions of the jobs that the minion adds itself. ``returners``: the option ``schedule_returner``.
        ``draw(low, high)``: returns a random whole number for the option ``splay``.
        """
        self._id = minion_id
        self._file = file
        self._own = dict(own or {})
        self._returners = returners
        self._draw = draw
        self._clock = clock
        self._configured = _without_stock_jobs(copy.deepcopy(dict(configured)))
        self._pillar: dict[str, object] = {}
        self._named_dates: dict[str, object] = {}
        self._entries: dict[str, ScheduleEntry] = {}
        #: Names of jobs to run at once (``schedule.run_job``).
        self._requested: list[str] = []
        self._last_jid = ""
        #: Job -> last logged error. The pillar is read often, and each error is logged once.
        self._said: dict[str, str] = {}
        self._rebuild()

    # --------------------------------------------------------------------------------------------------------- sources

    def update(
        self, pillar: Mapping[str, object], grains: Mapping[str, object], own: Mapping[str, object] | None = None
    ) -> None:
        """Apply new pillar, grains and jobs of the minion's own to the schedule. An unchanged job keeps its next run."""
        jobs = pillar.get("schedule") or {}
        if not isinstance(jobs, Mapping):
            _LOG.error("pillar: schedule must be a map of jobs and is ignored: %r", jobs)
            jobs = {}
        self._pillar = dict(jobs)
        if own is not None:
            self._own = dict(own)
        self._named_dates = {}
        for name_of_source, source in (("grains", grains), ("pillar", pillar)):
            named = source.get("whens") or {}
            if isinstance(named, Mapping):
                self._named_dates |= named
            else:
                _LOG.error("%s: whens must be a map of dates and is ignored: %r", name_of_source, named)
        self._rebuild()

    def resume(self) -> None:
        """Load the schedule that another process of the minion saved, and do not run ``run_on_start`` jobs again."""
        try:
            self._configured = _without_stock_jobs(load(self._file)) or self._configured
        except ScheduleFileError as error:
            _LOG.error("changes of the schedule by another process cannot be read: %s", error)
        self._rebuild()
        wall = self._clock().wall
        for entry in self._entries.values():
            entry.progress = replace(entry.progress, looked=wall)

    @property
    def whole(self) -> dict[str, object]:
        """Return the map of scheduled job name to definition, and the settings of the whole schedule (``enabled`` ...)."""
        return {**self._own, **self._pillar, **self._configured}

    def _rebuild(self) -> None:
        before, whole, clock = self._entries, self.whole, self._clock()
        self._entries = {}
        for name, data in whole.items():
            if name in GLOBAL:
                continue
            entry = self._entry(str(name), data, whole, clock)
            known = before.get(name)
            if known is not None and _same_job(known.data, data):
                entry.progress = known.progress
            self._entries[name] = entry

    def _entry(self, name: str, data: object, whole: Mapping[str, object], clock: Clock) -> ScheduleEntry:
        definition = data if isinstance(data, Mapping) else {}
        try:
            entry = ScheduleEntry(definition, Job.of(name, data, whole, self._named_dates, clock.wall), "")
            self._warn(
                name,
                f"schedule: the job {name}: {'; '.join(unknown)}" if (unknown := unknown_options(definition)) else "",
            )
            return entry
        except ValueError as error:
            self._warn(name, f"schedule: the job {name} is ignored: {error}", logging.ERROR)
            return ScheduleEntry(definition, None, f"{error}. Ignoring job {name}.")

    def _warn(self, name: str, fault: str, level: int = logging.WARNING) -> None:
        """Log the fault of a job's definition, unless the same fault was logged before. With an empty ``fault``
        nothing is logged, and a later fault of the job is logged again.
        """
        if fault and self._said.get(name) != fault:
            _LOG.log(level, "%s", fault)
        if fault:
            self._said[name] = fault
        else:
            self._said.pop(name, None)

    # -------------------------------------------------------------------------------------------------------- due jobs

    def due(self, running: Running) -> Iterator[JobLoad]:
        """Yield the loads of the scheduled jobs to run now. ``running``: returns the number of running jobs with a name."""
        clock = self._clock()
        world = ScheduleSettings(
            enabled=bool(self.whole.get("enabled", True)), skip_function=str(self.whole.get("skip_function") or "")
        )
        request, self._requested = self._requested, []
        for entry in [self._entries[name] for name in request if name in self._entries]:
            if entry.job is not None:
                entry.progress, wanted = _unless_running(entry.job, entry.progress, clock, running)
                if wanted:
                    yield from self._load(entry.job, entry.data, entry.job.function)
        for entry in self._entries.values():
            if entry.job is None:
                continue
            seen = self._look(entry, entry.job, clock, world)
            if seen.function:
                entry.progress, wanted = _unless_running(entry.job, entry.progress, clock, running)
                if wanted:
                    yield from self._load(entry.job, entry.data, seen.function)

    def _look(self, entry: ScheduleEntry, job: Job, clock: Clock, world: ScheduleSettings) -> CheckResult:
        try:
            seen = check(job, entry.progress, clock, world, self._draw)
        except ValueError as error:
            # A date may become invalid while the minion runs.
            _LOG.error("schedule: the job %s is ignored: %s", job.name, error)
            entry.job, entry.error = None, f"{error}. Ignoring job {job.name}."
            return CheckResult(entry.progress)
        entry.progress = seen.progress
        return seen

    def _load(self, job: Job, data: Mapping[str, object], function: str) -> Iterator[JobLoad]:
        if job.dry_run:
            _LOG.info("schedule: the job %s is due and not run (dry_run)", job.name)
            return
        args, kwargs = arguments_of(data)
        return_job, metadata = data.get("return_job", True), data.get("metadata")
        self._last_jid = next_jid(time.time(), self._last_jid)
        load: JobLoad = {
            "jid": self._last_jid,
            "fun": function,
            "arg": [*args, *([{"__kwarg__": True, **kwargs}] if kwargs else [])],
            "tgt": self._id,
            "tgt_type": "glob",
            "own": True,
            "schedule": job.name,
            "jid_include": job.jid_include,
            "return_job": return_job if isinstance(return_job, str) else bool(return_job),
        }
        load["ret"] = ",".join(named(data.get("returner"), self._returners))
        if "return_config" in data:
            load["ret_config"] = data["return_config"]
        if "return_kwargs" in data:
            load["ret_kwargs"] = data["return_kwargs"]
        if isinstance(metadata, Mapping):
            load["metadata"] = {**metadata, **_time_marks()}
        _LOG.info("schedule: running the job %s: %s", job.name, function, extra={"jid": load["jid"]})
        yield load

    # ------------------------------------------------------------------------------------------------------------- changes

    def manage(self, request: Mapping[str, object]) -> dict[str, object]:
        """Carry out a control request about the schedule ({"verb": "add", "list", ...}), and return the map that answers it.

        Raise ValueError for an unknown verb or an invalid job.
        """
        verbs: Mapping[str, Callable[[Mapping[str, object]], dict[str, object]]] = {
            "list": self._list,
            "add": self._put,
            "modify": self._put,
            "delete": self._delete,
            "enable_job": lambda request: self._set_in_job(request, {"enabled": True}),
            "disable_job": lambda request: self._set_in_job(request, {"enabled": False}),
            "enable": lambda request: self._set_global(request, {"enabled": True}),
            "disable": lambda request: self._set_global(request, {"enabled": False}),
            "postpone_job": self._postpone,
            "skip_job": self._skip,
            "run_job": self._run_job,
            "save": lambda request: self._changed(persist=True),
            "reload": self._reload,
            "next_fire_time": self._next_fire_time,
            "job_status": self._job_status,
        }
        verb = str(request.get("verb"))
        if verb not in verbs:
            raise ValueError(f"unknown verb {verb} for the schedule; use one of {', '.join(verbs)}")
        return verbs[verb](request)

    def _list(self, request: Mapping[str, object]) -> dict[str, object]:
        sources = {"pillar": self._pillar, "opts": {**self._own, **self._configured}}
        shown = sources.get(str(request.get("where")), self.whole)
        errors = {name: entry.error for name, entry in self._entries.items() if entry.error and name in shown}
        return {"schedule": shown, "errors": errors}

    def _put(self, request: Mapping[str, object]) -> dict[str, object]:
        name, data = str(request.get("name")), request.get("schedule")
        check_new(data)
        Job.of(name, data, self.whole, self._named_dates, self._clock().wall)
        if name in self._pillar:
            raise ValueError(f"Cannot modify job {name}, it's in the pillar!")
        self._configured[name] = data
        # The job starts anew, even if its definition is unchanged.
        self._entries.pop(name, None)
        return self._changed(persist=bool(request.get("persist", True)))

    def _delete(self, request: Mapping[str, object]) -> dict[str, object]:
        name = str(request.get("name"))
        if self._configured.pop(name, None) is None and name in self._pillar:
            _LOG.warning("Cannot delete job %s, it's in the pillar!", name)
        return self._changed(persist=bool(request.get("persist", True)))

    def _set_in_job(self, request: Mapping[str, object], values: Mapping[str, object]) -> dict[str, object]:
        name = str(request.get("name"))
        known = self._configured.get(name)
        if isinstance(known, Mapping):
            self._configured[name] = {**known, **values}
        elif name in self._pillar:
            _LOG.warning("Cannot modify job %s, it's in the pillar!", name)
        return self._changed(persist=bool(request.get("persist", True)))

    def _set_global(self, request: Mapping[str, object], values: Mapping[str, object]) -> dict[str, object]:
        self._configured |= values
        return self._changed(persist=bool(request.get("persist", True)))

    def _skip(self, request: Mapping[str, object]) -> dict[str, object]:
        return self._with_times(request, {"skip_explicit": request.get("time")})

    def _postpone(self, request: Mapping[str, object]) -> dict[str, object]:
        return self._with_times(
            request, {"skip_explicit": request.get("time"), "run_explicit": request.get("new_time")}
        )

    def _with_times(self, request: Mapping[str, object], times: Mapping[str, object]) -> dict[str, object]:
        data = self._configured.get(str(request.get("name")))
        if not isinstance(data, Mapping):
            return self._set_in_job({**request, "persist": False}, {})
        form = request.get("time_fmt") or TIME_FORMAT
        values = {option: [*(data.get(option) or ()), {"time": at, "time_fmt": form}] for option, at in times.items()}
        # As in Salt, this change is not saved: it concerns a single run.
        return self._set_in_job({**request, "persist": False}, values)

    def _run_job(self, request: Mapping[str, object]) -> dict[str, object]:
        name = str(request.get("name"))
        entry = self._entries.get(name)
        if entry is None:
            raise ValueError(f"Job {name} does not exist.")
        if entry.job is None:
            raise ValueError(entry.error)
        self._requested.append(name)
        return {"schedule": self.whole}

    def _reload(self, request: Mapping[str, object]) -> dict[str, object]:
        jobs = request.get("schedule")
        if not isinstance(jobs, Mapping):
            raise ValueError("a schedule is a map of jobs")
        self._configured |= jobs
        self._entries.clear()
        return self._changed(persist=False)

    def _changed(self, *, persist: bool) -> dict[str, object]:
        """Recompute the schedule after a change, save it with ``persist``, and return {"schedule": jobs, "unsaved": error}.

        ``unsaved`` is empty unless the file could not be written.
        """
        self._rebuild()
        unsaved = ""
        if persist:
            try:
                save(self._file, self._configured)
            except ScheduleFileError as error:
                _LOG.error("%s", error)
                unsaved = str(error)
        return {"schedule": self.whole, "unsaved": unsaved}

    # --------------------------------------------------------------------------------------------------------------- answers

    def _next_fire_time(self, request: Mapping[str, object]) -> dict[str, object]:
        entry = self._entries.get(str(request.get("name")))
        moment = entry.progress.next_fire if entry is not None else None
        return {"next_fire_time": moment.strftime(TIME_FORMAT) if moment is not None else None}

    def _job_status(self, request: Mapping[str, object]) -> dict[str, object]:
        entry = self._entries.get(str(request.get("name")))
        if entry is None:
            return {"data": {}}
        form = str(request.get("time_fmt") or TIME_FORMAT)
        return {"data": {**entry.data, **_noted(str(request.get("name")), entry, form)}}


def _noted(name: str, entry: ScheduleEntry, form: str) -> dict[str, object]:
    """Return the fields that Salt's scheduler adds to a scheduled job's definition (``_next_fire_time`` ...)."""
    progress = entry.progress

    def shown(moment: datetime | None) -> str | None:
        return moment.strftime(form) if moment is not None else None

    noted: dict[str, object] = {"name": entry.data.get("name", name), "_next_fire_time": shown(progress.next_fire)}
    noted["_splay"] = shown(progress.next_fire) if progress.delay else None
    if entry.error:
        noted["_error"] = entry.error
    if entry.job is not None:
        noted["_run_on_start"] = entry.job.run_on_start and progress.looked is None
        if entry.job.interval:
            noted["_seconds"] = entry.job.interval
    if progress.last_run is not None:
        noted["_last_run"] = shown(progress.last_run)
    if progress.skip_reason:
        noted |= {"_skip_reason": progress.skip_reason, "_skipped": True, "_skipped_time": shown(progress.skipped_at)}
    return noted


def _without_stock_jobs(jobs: Mapping[str, object]) -> dict[str, object]:
    """Return a saved schedule without the jobs that a stock minion added by itself."""
    return {name: data for name, data in jobs.items() if not str(name).startswith(_STOCK_JOBS)}


def _unless_running(job: Job, progress: Progress, clock: Clock, running: Running) -> tuple[Progress, bool]:
    if job.jid_include and running(job.name) >= job.maxrunning:
        _LOG.info(
            "schedule: the job %s is not started: it runs %d times already (maxrunning)", job.name, job.maxrunning
        )
        return skipped(progress, "maxrunning", clock.wall), False
    return progress, True


def _same_job(before: object, after: object) -> bool:
    """Return whether two definitions of a scheduled job differ only in options that are read at each run.

    The job then keeps its next run.
    """
    passing = ("enabled", "skip_explicit", "run_explicit")
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return False
    return {k: v for k, v in before.items() if k not in passing} == {k: v for k, v in after.items() if k not in passing}


def _time_marks() -> dict[str, str]:
    """Return the metadata that Salt adds to a scheduled job: offset from UTC, local time, and UTC in a format of its own."""
    return {
        "_TOS": time.strftime("%z"),
        "_TS": time.ctime(),
        "_TT": time.strftime("%Y %B %d %a %H %m", time.gmtime()),
    }
