"""Queries about jobs for commands that repeat them often: following one job, exporting many."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

from masterstore.jobs import Job, failed
from saltern.kit.links.control import ControlError
from saltern.mworker.job_queries.filters import FilterFault, filter_of, minions_like
from saltern.mworker.job_queries.status import not_a_jid, status_of, unknown_job
from saltern.mworker.senders import Sender
from saltern.mworker.worker_context import WorkerContext
from saltwire.jid import is_jid

#: Most jobs in one answer.
_PAGE = 500

#: Most returns in one answer; each may have ``max_return_bytes`` bytes.
_RETURNS = 100


def job_status(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> dict[str, object]:
    """Return the state of a job on each of its minions: {jid, fun, user, tgt, now, created, ended, complete, counts,
    minions: {id: {state, since, late, times, seen}}}. Times are milliseconds since 1970.

    Raises ControlError with the name JidError or UnknownJob.
    """
    return status_of(context.store, _job(context, fields.get("jid")), int(time.time() * 1000))


def failed_of(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> dict[str, int]:
    """Return the map of minion id to 1 (its return is a failure) or 0, for those of ``minions`` that have returned.

    ``minions`` are at most 100.
    """
    returns = context.store.jobs.returns(str(fields.get("jid", "")), _names(fields.get("minions")))
    return {minion: int(failed(ret)) for minion, ret in returns.items()}


def find_jobs(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> dict[str, object]:
    """Return one page of the jobs that ``filters`` match, newest first, at most 500: {jobs: [{jid, load, meta}], cursor}.

    Pass ``cursor`` as a filter to get the next page; it is empty on the last page. Raises ControlError with the name FilterError.
    """
    filters = fields.get("filters") or {}
    if not isinstance(filters, Mapping):
        raise ControlError("InvocationError", f"filters must be a map, not {filters!r}")
    try:
        words = {str(name): value for name, value in filters.items()}
        wanted = filter_of({"limit": _PAGE, **words}, int(time.time() * 1000), partial(minions_like, context.store))
    except FilterFault as error:
        raise ControlError("FilterError", str(error)) from error
    page = context.store.found_jobs.page(wanted, meta=True)
    return {
        "jobs": [{"jid": job.jid, "load": job.load, "meta": job.meta} for job in page.jobs],
        "cursor": page.cursor,
    }


def _job(context: WorkerContext, jid: object) -> Job:
    text = str(jid)
    if not is_jid(text):
        raise ControlError("JidError", not_a_jid(text))
    found = context.store.jobs.described([text], meta=True)
    if not found:
        raise ControlError("UnknownJob", unknown_job(text, context.options.keep_jobs_seconds))
    return found[0]


def _names(given: object) -> list[str]:
    if not isinstance(given, list) or len(given) > _RETURNS:
        raise ControlError("InvocationError", f"minions must be a list of {_RETURNS} ids at most")
    return list(map(str, given))
