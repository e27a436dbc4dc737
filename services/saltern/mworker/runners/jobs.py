"""Runner ``jobs``: queries to the job cache."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any

from masterstore.job_filter import JobFilter
from masterstore.jobs import Job
from masterstore.life import Life, State
from saltern.mworker.job_queries.filters import FilterFault, filter_of, minions_like, moment
from saltern.mworker.job_queries.status import not_a_jid, shown_states, silence, unknown_job
from saltern.mworker.runners.returner_jobs import ReturnerJobs, source_of
from saltern.mworker.runners.runner import RunnerFault, RunnerTools
from saltwire import tags
from saltwire.jid import is_jid, jid_time
from statecore.model.redaction import shown_arguments

#: Salt's names of filters, which list_jobs reads itself.
_SALTS_FILTERS = ("search_function", "search_target", "search_metadata", "start_time", "end_time")

#: Jobs that are read at once while most of them may not match.
_PAGE = 500


def active(tools: RunnerTools, display_progress: bool = False) -> dict[str, dict[str, Any]]:
    """Return the jobs that run on some minion now: {jid: {Function, ..., Running: [{minion: pid}], Returned: [minion]}}."""
    answers = tools.ask("*", "glob", "saltutil.running")
    if display_progress:
        for minion in sorted(answers.returns):
            _progress(tools, f"Received reply from minion {minion}")
    found: dict[str, dict[str, Any]] = {}
    for minion, answer in answers.returns.items():
        for job in _listed(answer.get("return")):
            jid = str(job.get("jid", ""))
            entry = found.setdefault(jid, _shown_load(job) | {"Running": [], "Returned": []})
            entry["Running"].append({minion: job.get("pid")})
    for jid, entry in found.items():
        running = {minion for row in entry["Running"] for minion in row}
        entry["Returned"] = sorted(set(tools.store.jobs.returns(jid)) - running)
    return found


def master(tools: RunnerTools) -> list[dict[str, object]]:
    """Return the runners that run now, including this one: [{jid, fun, user, fun_args, where}]."""
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
    jid: object,
    ext_source: object = None,
    returned: bool = True,
    missing: bool = False,
    display_progress: bool = False,
) -> dict[str, object]:
    """Return the returns of a job: {minion: return}, or {"outputter": ..., "data": {minion: return}} if the returns name an
    outputter. For an orchestration: {"outputter": "highstate", "data": {master id: its states}}.

    returned
        ``False``: without the returns
    missing
        ``True``: with the minions that did not return

    Raises RunnerFault for an unknown JID.
    """
    source = source_of(tools, ext_source)
    job = _job(tools, jid, source)
    if display_progress:
        for minion in sorted(job.returns):
            _progress(tools, minion)
    data: dict[str, object] = (
        {minion: ret.get("return") for minion, ret in sorted(job.returns.items())} if returned else {}
    )
    if missing:
        data |= {name: silence(state) for name, state in _states(tools, job, source).items() if name not in job.returns}
    if returned and not missing and (report := _report(job)) is not None:
        return report
    out = next((str(ret["out"]) for ret in job.returns.values() if ret.get("out")), None)
    return data if out is None else {"outputter": out, "data": data}


def _report(job: Job) -> dict[str, object] | None:
    """Return {"outputter", "data"} of a runner's job whose value names an outputter, for salt-run to show it as at the
    end of the runner; None for any other job.
    """
    if not str(job.load.get("fun", "")).startswith("runner.") or len(job.returns) != 1:
        return None
    (value,) = (ret.get("return") for ret in job.returns.values())
    if not isinstance(value, Mapping) or not {"data", "outputter"} <= value.keys():
        return None
    return {"outputter": value["outputter"], "data": value["data"]}


def list_job(
    tools: RunnerTools, jid: object, ext_source: object = None, display_progress: bool = False
) -> dict[str, object]:
    """Return a job as {jid, Function, ..., Minions, Result: {minion: return}, States}: its load, minions, returns and states.

    ``States`` has the job's state on each minion, with its time: expected, delivered, started, returned, offline, lost,
    cancelled, expired. Jobs from a returner (``ext_source``) have none. Raises RunnerFault for an unknown JID.
    """
    if display_progress:
        _progress(tools, f"Querying returner: {ext_source or 'redis'}")
    source = source_of(tools, ext_source)
    job = _job(tools, jid, source)
    result = {minion: _result(ret) for minion, ret in sorted(job.returns.items())}
    lives = {} if source else _lives(tools, job)
    seen = tools.store.presence.last_seen([minion for minion in lives if minion not in job.returns])
    states = {"States": shown_states(lives, seen)} if lives else {}
    return {"jid": job.jid, **shown(job), "Minions": sorted(job.expected), "Result": result, **states}


def print_job(tools: RunnerTools, jid: object, ext_source: object = None) -> dict[str, object]:
    """Return {jid: job}, where the job is the map that list_job returns, without ``jid``."""
    job = list_job(tools, jid, ext_source)
    return {str(job.pop("jid")): job}


def list_jobs(
    tools: RunnerTools,
    ext_source: object = None,
    outputter: object = None,
    search_metadata: Mapping[str, object] | None = None,
    search_function: object = None,
    search_target: object = None,
    start_time: str | None = None,
    end_time: str | None = None,
    display_progress: bool = False,
    **filters: object,
) -> dict[str, object]:
    """Return the newest jobs that match: {jid: {Function, Arguments, Target, Target-type, User, StartTime}}, oldest first.

    A job must match all filters. Times are UTC: ``2026-11-21T14:00:00``, ``2026-11-21``, a JID, the form of StartTime, or
    a time before now: ``2h``, ``7d``.

    after, before
        only jobs created at or after, and before this time
    limit
        largest number of jobs (200)
    cursor
        the oldest JID of the previous page: continue with the jobs before it
    function
        globs, as a list or separated by commas; one must match
    minion
        ids or globs; one minion of the job must match
    user, target
        names or globs: user who published the job, and its target as written
    success
        True: every minion returned success; False: some minion returned a failure
    state
        running, late, offline, lost, cancelled, expired: the state of some minion of the job
    search_metadata
        a map; one of its pairs must be in the job's metadata
    search_function, search_target
        globs, as a list or separated by commas; one must match. In a list of targets each name is compared
    start_time, end_time
        as after and before, but jobs created at end_time are included
    outputter
        outputter for the result

    CLI Example:

    .. code-block:: bash

        salt-run jobs.list_jobs after=2h function='state.*' success=False
        salt-run jobs.list_jobs minion=web1 limit=20 cursor=20261121140000000000
    """
    if display_progress:
        _progress(tools, f"Querying returner {ext_source or 'redis'} for jobs.")
    found = {job.jid: shown(job) for job in _found(tools, source_of(tools, ext_source), filters, search_metadata, search_function,
                                                     search_target, start_time, end_time)}  # fmt: skip
    jobs: dict[str, object] = dict(sorted(found.items()))
    return jobs if not outputter else {"outputter": outputter, "data": jobs}


def list_jobs_filter(
    tools: RunnerTools,
    count: int,
    filter_find_job: bool = True,
    ext_source: object = None,
    outputter: object = None,
    display_progress: bool = False,
    **filters: object,
) -> list[dict[str, object]] | dict[str, object]:
    """Return a list of the newest ``count`` jobs, oldest first: each as list_jobs shows it, with its JID. Filters are those of
    list_jobs.

    filter_find_job
        ``True``: leave out the jobs by which the master asks minions about other jobs (saltutil.find_job)

    CLI Example:

    .. code-block:: bash

        salt-run jobs.list_jobs_filter 50
        salt-run jobs.list_jobs_filter 100 filter_find_job=False
    """
    source = source_of(tools, ext_source)
    wanted = wanted_jobs(tools, {"limit": count, **filters})
    newest = (
        job
        for job in _every(tools, source, wanted)
        if not (filter_find_job and job.load.get("fun") == "saltutil.find_job")
    )
    jobs = [{"JID": job.jid, **shown(job)} for job in sorted(islice(newest, wanted.limit), key=lambda job: job.jid)]
    return jobs if not outputter else {"outputter": outputter, "data": jobs}


def last_run(
    tools: RunnerTools,
    ext_source: object = None,
    outputter: object = None,
    metadata: Mapping[str, object] | None = None,
    function: object = None,
    target: object = None,
    display_progress: bool = False,
    **filters: object,
) -> dict[str, object] | bool:
    """Return {jid: job} of the newest job that matches, as print_job shows it; False if no job matches. Filters are
    those of list_jobs.
    """
    found = list_jobs(
        tools, ext_source, None, metadata, function, target, None, None, display_progress, **filters, limit=1
    )
    return print_job(tools, max(found), ext_source) if found else False


def exit_success(tools: RunnerTools, jid: object, ext_source: object = None) -> dict[str, bool]:
    """Return {minion: whether it returned success}; minions that have not returned are False."""
    job = _job(tools, jid, source_of(tools, ext_source))
    return {minion: _succeeded(job.returns.get(minion)) for minion in sorted({*job.expected, *job.returns})}


def wanted_jobs(
    tools: RunnerTools,
    words: Mapping[str, object],
    others: Sequence[str] = (),
    said: Mapping[str, str] = MappingProxyType({}),
) -> JobFilter:
    """Return the JobFilter of a runner's named arguments, as ``filter_of`` reads them. Raises RunnerFault."""
    try:
        return filter_of(words, int(time.time() * 1000), partial(minions_like, tools.store), others, said)
    except FilterFault as error:
        raise RunnerFault(str(error)) from error


def every(tools: RunnerTools, wanted: JobFilter, *, meta: bool = False) -> Iterator[Job]:
    """Yield all jobs that match a filter, newest first, read in pages. ``meta``: with the counters of the jobs."""
    for page in tools.store.found_jobs.pages(replace(wanted, limit=_PAGE), meta=meta):
        yield from page.jobs


def _every(tools: RunnerTools, source: ReturnerJobs | None, wanted: JobFilter) -> Iterator[Job]:
    """Yield all jobs that match a filter from the job cache or from a returner, newest first."""
    return iter(source.jobs(wanted)) if source else every(tools, wanted)


def _found(
    tools: RunnerTools,
    source: ReturnerJobs | None,
    filters: Mapping[str, object],
    metadata: object,
    function: object,
    target: object,
    start: object,
    end: object,
) -> Iterator[Job]:
    """Yield the jobs that match the arguments of the runner jobs.list_jobs, newest first.

    Raises RunnerFault for an invalid filter, or for a filter that is given under two names.
    """
    if metadata is not None and not isinstance(metadata, Mapping):
        raise RunnerFault(f"search_metadata is a map, not {type(metadata).__name__}")
    twice = [(new, old) for new, old, value in (("function", "search_function", function), ("after", "start_time", start),
                                                ("before", "end_time", end)) if value and filters.get(new)]  # fmt: skip
    if twice:
        raise RunnerFault(f"{twice[0][0]} and {twice[0][1]} say the same: give one of them")
    words, said = dict(filters), {}
    if function:
        words["function"], said["function"] = function, "search_function"
    if start is not None:
        words["after"], said["after"] = start, "start_time"
    wanted = wanted_jobs(tools, words, _SALTS_FILTERS, said)
    if end is not None:
        try:
            # A JID has microseconds, the index milliseconds: jobs of the last millisecond are included.
            wanted = replace(wanted, before_ms=moment(end, int(time.time() * 1000), "end_time") + 1)
        except FilterFault as error:
            raise RunnerFault(str(error)) from error
    targets = _patterns(target)
    if not targets and not metadata and not source:
        return iter(tools.store.found_jobs.page(wanted).jobs)
    meant = (job for job in _every(tools, source, wanted) if (not targets or _any_match(job.load.get("tgt"), targets))
             and (not metadata or _holds(_metadata(job.load), metadata)))  # fmt: skip
    return islice(meant, wanted.limit)


def _progress(tools: RunnerTools, message: str) -> None:
    tools.sender.fire(f"{tags.run(tools.jid)}/progress", {"message": message})


def known_job(tools: RunnerTools, jid: object) -> Job:
    """Return a job with its load and counters. Raises RunnerFault for an invalid or unknown JID."""
    found = tools.store.jobs.described([_jid(jid)], meta=True)
    if not found:
        raise RunnerFault(unknown_job(str(jid), tools.options.keep_jobs_seconds))
    return found[0]


def _job(tools: RunnerTools, jid: object, source: ReturnerJobs | None) -> Job:
    """Return a job with its returns, from the job cache or from the returner ``source``. Raises RunnerFault for an unknown JID."""
    job = source.job(_jid(jid)) if source else tools.store.jobs.job(_jid(jid))
    if job is None:
        raise RunnerFault(unknown_job(str(jid), tools.options.keep_jobs_seconds))
    return job


def _states(tools: RunnerTools, job: Job, source: ReturnerJobs | None) -> dict[str, State]:
    """Return the map of minion id to the state of the job there. A returner only knows the state ``expected``."""
    if source:
        return dict.fromkeys(job.expected, State.EXPECTED)
    return {minion: life.state for minion, life in _lives(tools, job).items()}


def _lives(tools: RunnerTools, job: Job) -> dict[str, Life]:
    return dict(sorted(tools.store.found_jobs.lives([job])[job.jid].items()))


def _jid(jid: object) -> str:
    text = str(jid)
    if not is_jid(text):
        raise RunnerFault(not_a_jid(text))
    return text


def shown(job: Job) -> dict[str, object]:
    return _shown_load(job.load) | {"StartTime": start_time(job.jid)}


def _shown_load(load: Mapping[str, Any]) -> dict[str, object]:
    shown = {
        "Function": load.get("fun", "unknown-function"),
        "Arguments": shown_arguments(load.get("fun"), list(load.get("arg") or [])),
        "Target": load.get("tgt", "unknown-target"),
        "Target-type": load.get("tgt_type", "list"),
        "User": load.get("user", "root"),
    }
    metadata = _metadata(load)
    return shown | ({} if metadata is None else {"Metadata": metadata})


def start_time(jid: str) -> str:
    return jid_time(jid).strftime("%Y, %b %d %H:%M:%S.%f")


def _result(ret: Mapping[str, object]) -> dict[str, object]:
    return {name: ret[name] for name in ("return", "retcode", "success", "out") if name in ret}


def _succeeded(ret: Mapping[str, object] | None) -> bool:
    return ret is not None and bool(ret.get("success", True)) and not ret.get("retcode")


def _listed(value: object) -> list[Mapping[str, object]]:
    return [job for job in value if isinstance(job, Mapping)] if isinstance(value, list) else []


def _patterns(value: object) -> list[str]:
    if value is None:
        return []
    return [str(part).strip() for part in (value if isinstance(value, list) else str(value).split(","))]


def _any_match(value: object, patterns: list[str]) -> bool:
    names = value if isinstance(value, list) else [value]
    return any(fnmatch.fnmatchcase(str(name), pattern) for name in names for pattern in patterns)


def _metadata(load: Mapping[str, Any]) -> object:
    """Return the metadata of a job, from its load or from its argument ``metadata``; None if it has none."""
    if load.get("metadata"):
        return load["metadata"]
    named = [each for each in load.get("arg") or [] if isinstance(each, Mapping) and each.get("__kwarg__") is True]
    return next((each["metadata"] for each in named if "metadata" in each), None)


def _holds(metadata: object, wanted: Mapping[str, object]) -> bool:
    return isinstance(metadata, Mapping) and any(
        name in metadata and metadata[name] == value for name, value in wanted.items()
    )
