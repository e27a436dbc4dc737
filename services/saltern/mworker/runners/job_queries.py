"""Runners that Salt does not have: statistics over many jobs, and repetition of a job."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from masterstore.jobs import Job, failed
from masterstore.life import Life, State
from masterstore.store import Store
from saltern.mworker.job_queries.filters import FilterFault, whole
from saltern.mworker.job_queries.statistics import Statistics, most_used
from saltern.mworker.runners.jobs import every, known_job, start_time, wanted_jobs
from saltern.mworker.runners.runner import RunnerFault, RunnerTools
from statecore.model.redaction import is_masked

#: Defaults of ``stats``: number of newest jobs to read, and rows of each table.
_JOBS, _ROWS = 10_000, 100

#: Jobs whose minions are read at once, and returns that are read at once; a return may be large.
_TOGETHER, _RETURNS = 50, 100

#: States of a job on a minion that did not return and will not.
_LOST = frozenset({State.LOST, State.EXPIRED, State.OFFLINE})

#: Fields of a load that are published again, beside function and arguments.
_PASSED_ON = ("delimiter", "metadata", "module_executors", "executor_opts", "ret_config", "ret_kwargs", "start_event")

#: Key in a job's metadata: JID of the job that this job repeats.
REPEATS = "repeats"


def stats(tools: RunnerTools, window: object = None, rows: object = _ROWS, **filters: object) -> dict[str, object]:
    """Return how often functions and minions ran jobs and failed, and the durations, over the newest jobs that match.

    {jobs, Since, Until, functions: {name: row}, minions: {id: row}}; a row is {jobs, returns, failures, missing,
    p50_ms, p95_ms}. A duration begins when the minion reports that it started the job (without such a report: at the
    publication) and ends with the return. Durations are accurate to one percent, and None if no return has one.

    window
        only jobs of this last period: ``2h``, ``7d``; the same as ``after``
    limit
        number of newest jobs to read (10000)
    rows
        number of functions and of minions to show, those with the most jobs first (100)

    Further filters are those of list_jobs.

    CLI Example:

    .. code-block:: bash

        salt-run jobs.stats window=24h function='state.*'
    """
    if window is not None and filters.get("after") is not None:
        raise RunnerFault("window and after say the same: give one of them")
    words = {"limit": _JOBS, **filters} | ({} if window is None else {"after": window})
    wanted = wanted_jobs(tools, words)
    try:
        most = whole(rows, "rows", 1_000_000)
    except FilterFault as error:
        raise RunnerFault(str(error)) from error
    found = Statistics()
    newest = oldest = ""
    count = 0
    for jobs in _groups(islice(every(tools, wanted, meta=True), wanted.limit), _TOGETHER):
        newest, oldest = newest or jobs[0].jid, jobs[-1].jid
        count += len(jobs)
        lives = tools.store.found_jobs.lives(jobs)
        for job in jobs:
            _count(found, tools.store, job, lives[job.jid])
    return {
        "jobs": count,
        "Since": start_time(oldest) if oldest else None,
        "Until": start_time(newest) if newest else None,
        "functions": most_used(found.functions, most),
        "minions": most_used(found.minions, most),
    }


def rerun(
    tools: RunnerTools, jid: object, failed: bool = False, lost: bool = False, all: bool = False
) -> dict[str, object]:
    """Publish a job again, with its function, arguments and options, to the selected minions of the job.

    Returns {jid of the new job, repeats, minions, missing} without waiting for returns; ``salt-run jobs.watch`` shows
    them. The new job's metadata contains the old JID (``repeats``). Whoever repeats a job needs the right to run it, with
    these arguments on these minions.

    failed
        minions that returned a failure
    lost
        minions that did not return and will not: lost, offline, expired
    all
        every minion of the job

    Raises RunnerFault for an unknown JID, for a runner's job, and if no minion is selected.

    CLI Example:

    .. code-block:: bash

        salt-run jobs.rerun 20261121140000000000 --failed
        salt-run jobs.rerun 20261121140000000000 failed=True lost=True
    """
    for name, value in (("failed", failed), ("lost", lost), ("all", all)):
        if not isinstance(value, bool):
            raise RunnerFault(f"{name} must be True or False, not {value!r}")
    if not (failed or lost or all):
        raise RunnerFault("which minions? Give failed=True, lost=True or all=True (or --failed, --lost, --all)")
    job = known_job(tools, jid)
    load = job.load
    fun = load.get("fun")
    if not fun:
        raise RunnerFault(f"the load of job {job.jid} is not in the job cache: nobody knows what it ran")
    if isinstance(fun, str) and fun.startswith(("runner.", "wheel.")):
        raise RunnerFault(
            f"job {job.jid} is one of the master ({fun}): run it again with salt-run {fun.partition('.')[2]}"
        )
    # Whoever writes to Redis could otherwise have an operator publish another function, or a minion's own job for others.
    published = tools.store.jobs.check_load(job.jid)
    lives = tools.store.found_jobs.lives([job])[job.jid]
    minions = _chosen(tools.store, job, lives, failed=failed, lost=lost, everyone=all)
    if not published:
        minions = [minion for minion in minions if minion == load.get("tgt")]
    if not minions:
        states = ", ".join(f"{count} {state}" for state, count in _counts(lives).items())
        raise RunnerFault(f"no minion of job {job.jid} is left for that: {states or 'nobody was expected to do it'}")
    kwargs = {name: load[name] for name in _PASSED_ON if name in load}
    arguments = load.get("arg")
    if is_masked(arguments):
        raise RunnerFault(
            f"job {job.jid} had secret arguments, which the job cache does not have: its minion started it itself. Start it"
            " again with all its arguments"
        )
    answer = tools.control.call(
        "publish",
        # Whoever repeats a job needs the right to run it: `@runner` alone is none.
        by_sender=True,
        request_id=os.urandom(16).hex(),
        tgt=minions,
        tgt_type="list",
        fun=fun,
        arg=list(arguments) if isinstance(arguments, list | tuple) else [],
        kwargs=kwargs | {"metadata": _noted(load.get("metadata"), job.jid)},
        ret=_own_returners(load, tools.options.ext_job_cache),
        user=tools.user,
    )
    if not answer["jid"]:
        raise RunnerFault(f"none of {', '.join(minions)} has an accepted key any more")
    return {"jid": answer["jid"], "repeats": job.jid, "minions": answer["minions"], "missing": answer["missing"]}


def _groups(jobs: Iterator[Job], size: int) -> Iterator[list[Job]]:
    while group := list(islice(jobs, size)):
        yield group


def _count(found: Statistics, store: Store, job: Job, lives: Mapping[str, Life]) -> None:
    fun = job.load.get("fun")
    functions = [str(name) for name in fun] if isinstance(fun, list) else [str(fun)]
    came = {minion: _took(life) for minion, life in lives.items() if life.state is State.RETURNED}
    # Most jobs have no failure, and their returns need not be read.
    bad = _failed(store, job.jid, list(came)) if job.meta.get("failed", "0") != "0" else set()
    found.job(functions, came, bad, lives.keys() - came.keys())


def _took(life: Life) -> float | None:
    began = life.times.get(State.STARTED, life.times[State.EXPECTED])
    took = life.times[State.RETURNED] - began
    # A job that a minion began itself is told of when it has ended.
    return took if took > 0 else None


def _failed(store: Store, jid: str, minions: Sequence[str]) -> set[str]:
    """Return the set of those of ``minions`` whose return for the job is a failure."""
    bad: set[str] = set()
    for at in range(0, len(minions), _RETURNS):
        returns = store.jobs.returns(jid, minions[at : at + _RETURNS])
        bad.update(minion for minion, ret in returns.items() if failed(ret))
    return bad


def _chosen(
    store: Store, job: Job, lives: Mapping[str, Life], *, failed: bool, lost: bool, everyone: bool
) -> list[str]:
    if everyone:
        return sorted(lives)
    found: set[str] = set()
    if failed:
        found |= _failed(store, job.jid, [minion for minion, life in lives.items() if life.state is State.RETURNED])
    if lost:
        found |= {minion for minion, life in lives.items() if life.state in _LOST}
    return sorted(found)


def _counts(lives: Mapping[str, Life]) -> dict[str, int]:
    states = [life.state.value for life in lives.values()]
    return {state: states.count(state) for state in dict.fromkeys(states)}


def _noted(metadata: object, jid: str) -> dict[str, object]:
    """Return the metadata of a job with the field ``repeats``: the JID of the repeated job."""
    if metadata is None:
        return {REPEATS: jid}
    return {**metadata, REPEATS: jid} if isinstance(metadata, Mapping) else {"metadata": metadata, REPEATS: jid}


def _own_returners(load: Mapping[str, object], added: str) -> str:
    """Return the names of the job's returners, separated by commas, without the returner ``added`` that the master
    adds to every job.
    """
    names = str(load.get("ret") or "").split(",")
    return ",".join(name for name in names if name and name != added)
