"""Queries about jobs for commands that repeat them often: following one job, exporting many."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from masterstore.jobs import Job, failed
from saltern.kit.links.control import ControlError
from saltern.mworker.commands.job_views import JobViews
from saltern.mworker.job_queries.filters import FilterFault, filter_of, minions_like
from saltern.mworker.job_queries.status import not_a_jid, status_of, unknown_job
from saltern.mworker.senders import Sender
from saltern.mworker.worker_context import WorkerContext
from saltwire.jid import is_jid

#: Most jobs in one answer.
_PAGE = 500

#: Most pages that are read for one answer, if the sender sees no job of the pages before.
_SCANNED_PAGES = 10

#: Most returns in one answer; each may have ``max_return_bytes`` bytes.
_RETURNS = 100


def job_returns(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """Return {minion id: return} from the job cache, for all minions of a job or for those in the field ``minions``, as far
    as the sender sees the job.
    """
    given = fields.get("minions")
    if given is not None and not isinstance(given, list):
        raise ControlError("InvocationError", f"minions must be a list, not {given!r}")
    return seen_returns(context, sender, str(fields.get("jid", "")), None if given is None else list(map(str, given)))


def seen_returns(
    context: WorkerContext, sender: Sender, jid: str, minions: Sequence[str] | None
) -> dict[str, dict[str, object]]:
    """Return {minion id: return} of those of ``minions`` (None: all of the job) that the sender sees."""
    views = JobViews(context, sender)
    if views.everything:
        return context.store.jobs.returns(jid, minions)
    view = views.of_load(jid, context.store.jobs.load(jid))
    return {} if view is None else context.store.jobs.returns(jid, view.of(minions))


def job_status(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> dict[str, object]:
    """Return the state of a job on each of its minions: {jid, fun, user, tgt, now, created, ended, complete, counts,
    minions: {id: {state, since, late, times, seen}}}. Times are milliseconds since 1970. Minions that the sender does not
    see are left out.

    Raises ControlError with the name JidError or UnknownJob.
    """
    job = _job(context, fields.get("jid"))
    view = JobViews(context, sender).of_load(job.jid, job.load)
    if view is None:
        raise _unknown(context, job.jid)
    seen = replace(job, load=view.load(job.load), meta=view.meta(job.meta))
    return status_of(context.store, seen, int(time.time() * 1000), view.minions)


def failed_of(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> dict[str, int]:
    """Return the map of minion id to 1 (its return is a failure) or 0, for those of ``minions`` that have returned and
    that the sender sees.

    ``minions`` are at most 100.
    """
    returns = seen_returns(context, sender, str(fields.get("jid", "")), _names(fields.get("minions")))
    return {minion: int(failed(ret)) for minion, ret in returns.items()}


def find_jobs(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> dict[str, object]:
    """Return one page of the jobs that ``filters`` match and of which the sender sees anything, newest first, at most 500:
    {jobs: [{jid, load, meta}], cursor}.

    Pass ``cursor`` as a filter to get the next page; it is empty on the last page. A page can have fewer jobs than the
    filter's limit, also none. Raises ControlError with the name FilterError.
    """
    filters = fields.get("filters") or {}
    if not isinstance(filters, Mapping):
        raise ControlError("InvocationError", f"filters must be a map, not {filters!r}")
    try:
        words = {str(name): value for name, value in filters.items()}
        wanted = filter_of({"limit": _PAGE, **words}, int(time.time() * 1000), partial(minions_like, context.store))
    except FilterFault as error:
        raise ControlError("FilterError", str(error)) from error
    views = JobViews(context, sender)
    if wanted.minions and not views.everything and views.covered is not None:
        # Which jobs another minion had is not for this sender.
        wanted = replace(wanted, minions=tuple(name for name in wanted.minions if name in views.covered) or ("",))
    # A result, a state and a target tell about what the sender does not see of a job.
    only_whole = wanted.success is not None or bool(wanted.states or wanted.targets)
    found: list[dict[str, object]] = []
    for _ in range(_SCANNED_PAGES):
        page = context.store.found_jobs.page(wanted, meta=True)
        seen = views.of_jobs(page.jobs)
        found += [
            {"jid": job.jid, "load": view.load(job.load), "meta": view.meta(job.meta)}
            for job in page.jobs
            if (view := seen.get(job.jid)) is not None and (view.whole or not only_whole)
        ]
        wanted = replace(wanted, cursor=page.cursor)
        if found or not page.cursor:
            break
    return {"jobs": found, "cursor": wanted.cursor}


def _job(context: WorkerContext, jid: object) -> Job:
    text = str(jid)
    if not is_jid(text):
        raise ControlError("JidError", not_a_jid(text))
    found = context.store.jobs.described([text], meta=True)
    if not found:
        raise _unknown(context, text)
    return found[0]


def _unknown(context: WorkerContext, jid: str) -> ControlError:
    """Return the error for a job that is not there, or of which the sender sees nothing."""
    return ControlError("UnknownJob", unknown_job(jid, context.options.keep_jobs_seconds))


def _names(given: object) -> list[str]:
    if not isinstance(given, list) or len(given) > _RETURNS:
        raise ControlError("InvocationError", f"minions must be a list of {_RETURNS} ids at most")
    return list(map(str, given))
