"""The master's commands for pages about the whole fleet: lists of minions, the parts of the master, and jobs as tables."""

from __future__ import annotations

import time
from collections.abc import Mapping

from saltern.kit.links.control import ControlError
from saltern.mworker.commands.control import targets
from saltern.mworker.commands.job_views import JobViews
from saltern.mworker.commands.jobs import seen_returns
from saltern.mworker.fleet import rows_of, topology_of
from saltern.mworker.job_queries.matrix import matrix_of
from saltern.mworker.senders import Sender
from saltern.mworker.worker_context import WorkerContext
from statecore.model.redaction import shown_arguments

#: Most minions in one table of a job; each return may have ``max_return_bytes`` bytes.
_ROWS = 100

#: Most bytes of the figures that a reqserver reports.
_MOST_FIGURES = 64 * 1024


def fleet(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> dict[str, object]:
    """Return {minions: [row], missing, now, window}: the accepted minions that a target matches, with their last message,
    whether they are present, and some grains. With ``ids`` the list ``minions`` has ids only.

    Raises ControlError with the name TargetError.
    """
    found = targets(context, sender, fields)
    minions: list[object] = [*found["minions"]]
    if not fields.get("ids"):
        minions = [*rows_of(context.store, found["minions"], context.options.presence_window)]
    return {
        "minions": minions,
        "missing": list(found["missing"]),
        "now": int(time.time() * 1000),
        "window": context.options.presence_window,
    }


def topology(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> dict[str, object]:
    """Return the parts of the master: Redis, its clients, reqservers with their queues, publishers, reactors' backlog,
    and the numbers of minions and jobs.
    """
    return topology_of(context.store, context.options.id, context.options.presence_window)


def job_matrix(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> dict[str, object]:
    """Return one page of a job as a table: {columns, rows, more, cursor}. Rows are the minions that have returned.

    ``minions``: only these, at most 100. Otherwise the page has the first 100 minions after the id ``cursor``; the
    answer's ``cursor`` is None on the last page.
    """
    jid, given = str(fields.get("jid", "")), fields.get("minions")
    cursor: str | None = None
    if given is None:
        after = str(fields.get("cursor") or "")
        names = [name for name in _expected(context, sender, jid) if name > after]
        cursor = names[_ROWS - 1] if len(names) > _ROWS else None
        names = names[:_ROWS]
    elif isinstance(given, list) and len(given) <= _ROWS:
        names = [str(name) for name in given]
    else:
        raise ControlError("InvocationError", f"minions must be a list of {_ROWS} ids at most")
    return {**matrix_of(seen_returns(context, sender, jid, names)), "cursor": cursor}


def _expected(context: WorkerContext, sender: Sender, jid: str) -> list[str]:
    """Return the minions of a job that the sender sees, sorted."""
    views = JobViews(context, sender)
    if views.everything:
        return context.store.jobs.expected(jid)
    view = views.of_load(jid, context.store.jobs.load(jid))
    return [] if view is None else view.of(context.store.jobs.expected(jid)) or []


def job_call(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> dict[str, object]:
    """Return how a job was called: {jid, fun, arg, tgt, tgt_type, user, metadata}, with secrets in arguments masked. Raises
    ControlError with the name UnknownJob. Arguments, target and metadata are empty if the sender might not have run the job.
    """
    jid = str(fields.get("jid", ""))
    load = context.store.jobs.load(jid)
    view = JobViews(context, sender).of_load(jid, load)
    if load is None or view is None:
        raise ControlError("UnknownJob", f"no job with the JID {jid} is in the job cache")
    load = view.load(load)
    fun = load.get("fun")
    arg = load.get("arg")
    named = {name: load.get(name) for name in ("tgt", "tgt_type", "user", "metadata")}
    return {"jid": jid, "fun": fun, "arg": shown_arguments(fun, arg if isinstance(arg, list) else []), **named}


def report_figures(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> None:
    """Store what a reqserver reports about its queues: ``name``, and ``figures`` as a map."""
    name, figures = fields.get("name"), fields.get("figures")
    if not isinstance(name, str) or not isinstance(figures, Mapping) or len(str(figures)) > _MOST_FIGURES:
        raise ControlError("InvocationError", "name must be text, figures a map")
    context.store.overview.report_reqserver(name[:256], figures)
