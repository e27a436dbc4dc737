"""Questions about jobs, answered from the job cache."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from masterstore.jobs import Job
from saltwire import tags
from saltwire.jid import is_jid, jid_time
from services.mworker.runners.runner import RunnerFault, RunnerTools

#: Newest jobs that are listed when no limit is given; the job cache may hold millions.
DEFAULT_LIMIT = 200

#: Jobs that are read at once.
_PAGE = 500

#: Forms of a time besides ISO 8601; the first is that of StartTime.
_TIME_FORMS = (
    *("%Y, %b %d %H:%M:%S.%f", "%Y, %b %d %H:%M:%S", "%Y, %b %d %H:%M", "%Y, %b %d", "%b %d %Y %H:%M:%S"),
    *("%b %d %Y %H:%M", "%b %d %Y", "%b %d, %Y", "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y/%m/%d", "%m/%d/%Y"),
)


def active(tools: RunnerTools, display_progress: bool = False) -> dict[str, Any]:
    """Jobs that run on some minion now: {jid: {Function, ..., Running: [{minion: pid}], Returned: [minion]}}."""
    answers = tools.ask("*", "glob", "saltutil.running")
    if display_progress:
        for minion in sorted(answers.returns):
            _progress(tools, f"Received reply from minion {minion}")
    found: dict[str, Any] = {}
    for minion, answer in answers.returns.items():
        for job in _listed(answer.get("return")):
            jid = str(job.get("jid", ""))
            entry = found.setdefault(jid, _shown_load(job) | {"Running": [], "Returned": []})
            entry["Running"].append({minion: job.get("pid")})
    for jid, entry in found.items():
        running = {minion for row in entry["Running"] for minion in row}
        entry["Returned"] = sorted(set(tools.store.jobs.returns(jid)) - running)
    return found


def master(tools: RunnerTools) -> list[dict[str, Any]]:
    """Runners that work now: jid, fun, user, fun_args and where, this one too."""
    return [
        {
            "jid": jid,
            "fun": load.get("fun", ""),
            "user": load.get("user", ""),
            "fun_args": load.get("arg", []),
            "where": load["where"],
        }
        for jid, load in tools.store.runner_jobs.running().items()
    ]


def lookup_jid(
    tools: RunnerTools,
    jid: Any,
    ext_source: Any = None,
    returned: bool = True,
    missing: bool = False,
    display_progress: bool = False,
) -> dict[str, Any]:
    """What the minions returned: {minion: return}, or {"outputter": ..., "data": that} where returns name an outputter.

    returned, missing
        ``False``: without the returns; ``True``: who did not return, too

    Raises RunnerFault for an unknown JID.
    """
    _own_cache(ext_source)
    job = _job(tools, jid)
    if display_progress:
        for minion in sorted(job.returns):
            _progress(tools, minion)
    data: dict[str, Any] = (
        {minion: ret.get("return") for minion, ret in sorted(job.returns.items())} if returned else {}
    )
    if missing:
        data |= dict.fromkeys(sorted(set(job.expected) - set(job.returns)), "Minion did not return")
    out = next((str(ret["out"]) for ret in job.returns.values() if ret.get("out")), None)
    return data if out is None else {"outputter": out, "data": data}


def list_job(tools: RunnerTools, jid: Any, ext_source: Any = None, display_progress: bool = False) -> dict[str, Any]:
    """One job with its load, its minions and every return. Raises RunnerFault for an unknown JID."""
    _own_cache(ext_source)
    if display_progress:
        _progress(tools, "Querying returner: redis")
    job = _job(tools, jid)
    result = {minion: _result(ret) for minion, ret in sorted(job.returns.items())}
    return {"jid": job.jid, **_shown(job), "Minions": sorted(job.expected), "Result": result}


def print_job(tools: RunnerTools, jid: Any, ext_source: Any = None) -> dict[str, Any]:
    """{jid: the job as list_job shows it}."""
    job = list_job(tools, jid, ext_source)
    return {job.pop("jid"): job}


def list_jobs(
    tools: RunnerTools,
    ext_source: Any = None,
    outputter: Any = None,
    search_metadata: Mapping[str, Any] | None = None,
    search_function: Any = None,
    search_target: Any = None,
    start_time: str | None = None,
    end_time: str | None = None,
    display_progress: bool = False,
    limit: int = DEFAULT_LIMIT,
) -> dict[str, Any]:
    """Newest jobs that match, at most ``limit``: {jid: {Function, Arguments, Target, Target-type, User, StartTime}}, oldest first.

    search_metadata
        a map; one of its pairs in a job's metadata is enough
    search_function, search_target
        globs, as a list or with commas; one is enough
    start_time, end_time
        as ``2026-11-21T14:00:00``, ``2026-11-21``, or as StartTime is shown; UTC
    outputter
        how the result is to be shown
    """
    _own_cache(ext_source)
    if display_progress:
        _progress(tools, "Querying returner redis for jobs.")
    if search_metadata is not None and not isinstance(search_metadata, Mapping):
        raise RunnerFault(f"search_metadata is a map, not {type(search_metadata).__name__}")
    search = _Search(
        _patterns(search_function),
        _patterns(search_target),
        search_metadata or {},
        None if start_time is None else _moment(start_time),
        None if end_time is None else _moment(end_time),
    )
    found = {job.jid: _shown(job) for job in islice(filter(search.finds, _newest(tools)), _whole(limit))}
    jobs = dict(sorted(found.items()))
    return jobs if not outputter else {"outputter": outputter, "data": jobs}


def list_jobs_filter(
    tools: RunnerTools,
    count: int,
    filter_find_job: bool = True,
    ext_source: Any = None,
    outputter: Any = None,
    display_progress: bool = False,
) -> dict[str, Any]:
    """The newest ``count`` jobs as list_jobs shows them; without those by which the master asks what became of others."""
    _own_cache(ext_source)
    wanted = (job for job in _newest(tools) if not (filter_find_job and job.load.get("fun") == "saltutil.find_job"))
    jobs = dict(sorted((job.jid, _shown(job)) for job in islice(wanted, _whole(count))))
    return jobs if not outputter else {"outputter": outputter, "data": jobs}


def last_run(
    tools: RunnerTools,
    ext_source: Any = None,
    outputter: Any = None,
    metadata: Any = None,
    function: Any = None,
    target: Any = None,
    display_progress: bool = False,
) -> dict[str, Any] | bool:
    """The newest job that matches, as print_job shows it; False when there is none."""
    found = list_jobs(tools, ext_source, None, metadata, function, target, display_progress=display_progress, limit=1)
    return print_job(tools, max(found)) if found else False


def exit_success(tools: RunnerTools, jid: Any, ext_source: Any = None) -> dict[str, bool]:
    """{minion: whether it returned success}; minions that have not returned are False."""
    _own_cache(ext_source)
    job = _job(tools, jid)
    return {minion: _succeeded(job.returns.get(minion)) for minion in sorted({*job.expected, *job.returns})}


@dataclass(frozen=True)
class _Search:
    """Which jobs are asked for."""

    functions: list[str]
    targets: list[str]
    metadata: Mapping[str, Any]
    start: datetime | None
    end: datetime | None

    def finds(self, job: Job) -> bool:
        moment = jid_time(job.jid)
        return (
            (not self.functions or _any_match(job.load.get("fun"), self.functions))
            and (not self.targets or _any_match(job.load.get("tgt"), self.targets))
            and (not self.metadata or _holds(_metadata(job.load), self.metadata))
            and (self.start is None or moment >= self.start)
            and (self.end is None or moment <= self.end)
        )


def _newest(tools: RunnerTools) -> Iterator[Job]:
    """Every job of the job cache, newest first, read in pages."""
    seen: set[str] = set()
    for skip in range(0, tools.store.jobs.count(), _PAGE):
        jobs = tools.store.jobs.recent(_PAGE, skip=skip)
        # What came meanwhile moved the pages: a job may be on two of them.
        yield from (job for job in jobs if job.jid not in seen)
        seen.update(job.jid for job in jobs)


def _progress(tools: RunnerTools, message: str) -> None:
    tools.sender.fire(f"{tags.run(tools.jid)}/progress", {"message": message})


def _own_cache(ext_source: Any) -> None:
    if ext_source and ext_source != "redis":
        raise RunnerFault(
            f"ext_source: the job cache is Redis; '{ext_source}' is written by a returner, and not read here"
        )


def _job(tools: RunnerTools, jid: Any) -> Job:
    text = str(jid)
    if not is_jid(text):
        raise RunnerFault(f"'{text}' is not a JID: 20 digits, the UTC time of the job to the microsecond")
    job = tools.store.jobs.job(text)
    if job is None:
        raise RunnerFault(
            f"no job with the JID {text} is in the job cache; jobs are kept for {tools.options.keep_jobs_seconds} s "
            "(keep_jobs_seconds), and jobs.list_jobs lists them"
        )
    return job


def _shown(job: Job) -> dict[str, Any]:
    return _shown_load(job.load) | {"StartTime": _start_time(job.jid)}


def _shown_load(load: Mapping[str, Any]) -> dict[str, Any]:
    shown = {
        "Function": load.get("fun", "unknown-function"),
        "Arguments": list(load.get("arg") or []),
        "Target": load.get("tgt", "unknown-target"),
        "Target-type": load.get("tgt_type", "list"),
        "User": load.get("user", "root"),
    }
    metadata = _metadata(load)
    return shown | ({} if metadata is None else {"Metadata": metadata})


def _start_time(jid: str) -> str:
    return jid_time(jid).strftime("%Y, %b %d %H:%M:%S.%f")


def _result(ret: Mapping[str, Any]) -> dict[str, Any]:
    return {name: ret[name] for name in ("return", "retcode", "success", "out") if name in ret}


def _succeeded(ret: Mapping[str, Any] | None) -> bool:
    return ret is not None and bool(ret.get("success", True)) and not ret.get("retcode")


def _listed(value: Any) -> list[Mapping[str, Any]]:
    return [job for job in value if isinstance(job, Mapping)] if isinstance(value, list) else []


def _patterns(value: Any) -> list[str]:
    if value is None:
        return []
    return [str(part).strip() for part in (value if isinstance(value, list) else str(value).split(","))]


def _any_match(value: Any, patterns: list[str]) -> bool:
    names = value if isinstance(value, list) else [value]
    return any(fnmatch.fnmatchcase(str(name), pattern) for name in names for pattern in patterns)


def _metadata(load: Mapping[str, Any]) -> Any:
    """What a job was given as metadata, as an option of ``salt`` or as an argument."""
    if load.get("metadata"):
        return load["metadata"]
    named = [each for each in load.get("arg") or [] if isinstance(each, Mapping) and each.get("__kwarg__") is True]
    return next((each["metadata"] for each in named if "metadata" in each), None)


def _holds(metadata: Any, wanted: Mapping[str, Any]) -> bool:
    return isinstance(metadata, Mapping) and any(
        name in metadata and metadata[name] == value for name, value in wanted.items()
    )


def _moment(text: str) -> datetime:
    for form in ("", *_TIME_FORMS):
        try:
            moment = datetime.strptime(str(text), form) if form else datetime.fromisoformat(str(text))
        except ValueError:
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    raise RunnerFault(f"'{text}' is not a time; write it as 2026-11-21T14:00:00")


def _whole(limit: Any) -> int:
    try:
        return max(1, int(limit))
    except (TypeError, ValueError) as error:
        raise RunnerFault(f"limit must be a whole number, not {limit!r}") from error
