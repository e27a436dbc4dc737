"""Questions about jobs, answered from the job cache."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from masterstore.jobs import Job
from saltwire.jid import is_jid, jid_time
from services.mworker.runners.runner import RunnerFault, RunnerTools

#: Newest jobs that are listed when no limit is given; the job cache may hold millions.
DEFAULT_LIMIT = 200


def active(tools: RunnerTools) -> dict[str, Any]:
    """Jobs that run on some minion now: {jid: {Function, ..., Running: [{minion: pid}], Returned: [minion]}}."""
    answers = tools.ask("*", "glob", "saltutil.running")
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


def lookup_jid(
    tools: RunnerTools,
    jid: Any,
    ext_source: Any = None,
    returned: bool = True,
    missing: bool = False,
    display_progress: bool = False,
) -> dict[str, Any]:
    """What the minions returned: {"outputter": ..., "data": {minion: return}}. Raises RunnerFault for an unknown JID."""
    job = _job(tools, jid)
    data: dict[str, Any] = (
        {minion: ret.get("return") for minion, ret in sorted(job.returns.items())} if returned else {}
    )
    if missing:
        data |= dict.fromkeys(sorted(set(job.expected) - set(job.returns)), "Minion did not return")
    out = next((str(ret["out"]) for ret in job.returns.values() if ret.get("out")), "nested")
    return {"outputter": out, "data": data}


def list_job(tools: RunnerTools, jid: Any, ext_source: Any = None, display_progress: bool = False) -> dict[str, Any]:
    """One job with its load, its minions and every return. Raises RunnerFault for an unknown JID."""
    job = _job(tools, jid)
    result = {minion: _result(ret) for minion, ret in sorted(job.returns.items())}
    return {"jid": job.jid, **_shown(job), "Minions": sorted(job.expected), "Result": result}


def print_job(tools: RunnerTools, jid: Any, ext_source: Any = None) -> dict[str, Any]:
    """{jid: the job as list_job shows it}."""
    job = list_job(tools, jid)
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
    limit: int = DEFAULT_LIMIT,
    display_progress: bool = False,
) -> dict[str, Any]:
    """Newest jobs, at most ``limit``: {jid: {Function, Arguments, Target, Target-type, User, StartTime}}, oldest first."""
    functions, targets = _patterns(search_function), _patterns(search_target)
    found = {}
    for job in tools.store.jobs.recent(_whole(limit)):
        load = job.load
        if functions and not _any_match(load.get("fun"), functions):
            continue
        if targets and not _any_match(load.get("tgt"), targets):
            continue
        if search_metadata and not _holds(load.get("metadata"), search_metadata):
            continue
        if not _between(job.jid, start_time, end_time):
            continue
        found[job.jid] = _shown(job)
    return dict(sorted(found.items()))


def list_jobs_filter(
    tools: RunnerTools,
    count: int,
    filter_find_job: bool = True,
    ext_source: Any = None,
    outputter: Any = None,
    display_progress: bool = False,
) -> dict[str, Any]:
    """The newest ``count`` jobs as list_jobs shows them; without those by which the master asks what became of others."""
    wanted = _whole(count)
    # Each job may have been asked about a few times.
    found = list_jobs(tools, limit=wanted * 4 if filter_find_job else wanted)
    kept = [jid for jid, job in found.items() if not (filter_find_job and job["Function"] == "saltutil.find_job")]
    return {jid: found[jid] for jid in kept[-wanted:]}


def last_run(tools: RunnerTools, function: Any = None, target: Any = None, metadata: Any = None) -> dict[str, Any]:
    """The newest job that matches, as print_job shows it; {} when there is none."""
    found = list_jobs(tools, search_function=function, search_target=target, search_metadata=metadata)
    return print_job(tools, max(found)) if found else {}


def exit_success(tools: RunnerTools, jid: Any, ext_source: Any = None) -> dict[str, bool]:
    """{minion: whether it returned success}; minions that have not returned are False."""
    job = _job(tools, jid)
    return {minion: _succeeded(job.returns.get(minion)) for minion in sorted({*job.expected, *job.returns})}


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
    return shown | ({"Metadata": load["metadata"]} if load.get("metadata") else {})


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


def _holds(metadata: Any, wanted: Mapping[str, Any]) -> bool:
    return isinstance(metadata, Mapping) and all(metadata.get(name) == value for name, value in wanted.items())


def _between(jid: str, start: str | None, end: str | None) -> bool:
    moment = jid_time(jid)
    return (start is None or moment >= _moment(start)) and (end is None or moment <= _moment(end))


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError as error:
        raise RunnerFault(f"'{text}' is not a time; write it as 2026-11-21T14:00:00") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _whole(limit: Any) -> int:
    try:
        return max(1, int(limit))
    except (TypeError, ValueError) as error:
        raise RunnerFault(f"limit must be a whole number, not {limit!r}") from error
