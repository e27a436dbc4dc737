"""Questions about jobs that are answered at once, for commands that ask again and again: who watches a job, who exports many."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from masterstore.jobs import Job, failed
from saltern.kit.links.control import ControlError
from saltern.mworker.job_queries.filters import FilterFault, filter_of, minions_like
from saltern.mworker.job_queries.status import not_a_jid, status_of, unknown_job
from saltern.mworker.worker_context import WorkerContext
from saltwire.jid import is_jid

#: Jobs of one answer: what a message between roles can carry without weight.
_PAGE = 500

#: Returns of one answer; each may be as large as ``max_return_bytes`` lets it.
_RETURNS = 100


def job_status(context: WorkerContext, client: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Where a job is, as ``job_status.status_of`` tells. Refuses with JidError for what is no JID, with UnknownJob."""
    return status_of(context.store, _job(context, fields.get("jid")), int(time.time() * 1000))


def failed_of(context: WorkerContext, client: str, fields: Mapping[str, Any]) -> dict[str, int]:
    """{minion: 1 when it returned a failure, else 0} of those of ``minions`` (100 at most) that returned."""
    returns = context.store.jobs.returns(str(fields.get("jid", "")), _names(fields.get("minions")))
    return {minion: int(failed(ret)) for minion, ret in returns.items()}


def find_jobs(context: WorkerContext, client: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A page of the jobs that ``filters`` mean: {jobs: [{jid, load, meta}], cursor}; newest first, 500 at most.

    ``cursor`` is that of the next page, empty at the end. Refuses with FilterError.
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


def _job(context: WorkerContext, jid: Any) -> Job:
    text = str(jid)
    if not is_jid(text):
        raise ControlError("JidError", not_a_jid(text))
    found = context.store.jobs.described([text], meta=True)
    if not found:
        raise ControlError("UnknownJob", unknown_job(text, context.options.keep_jobs_seconds))
    return found[0]


def _names(given: Any) -> list[str]:
    if not isinstance(given, list) or len(given) > _RETURNS:
        raise ControlError("InvocationError", f"minions must be a list of {_RETURNS} ids at most")
    return list(map(str, given))
