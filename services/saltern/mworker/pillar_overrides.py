"""Decides what a pillar override in a minion's pillar request may do.

An override that the master itself published to the minion (``state.apply pillar=...``) counts as in Salt: templates, the top
file and external pillars see it. Any other override is the minion's own word: it is merged last, where nothing is chosen by it
and nothing in it is decrypted. The option ``pillar_override_from_minions`` lets each override count as in Salt.

A pillar request names no JID. So the override is compared with the jobs of which this minion's return is missing. Jobs that
a minion published, or started itself, do not count.

Source: docs/pillar.md#overrides
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping

from masterstore.errors import StoreCorrupt
from masterstore.jobs import Job
from saltern.kit.command.arguments import read_arguments
from saltern.mworker.worker_context import WorkerContext

#: How many of the newest jobs are read first, and at most. Nearly always the job is among the first.
_READ = (50, 1000)


def is_published(context: WorkerContext, minion_id: str, override: Mapping[str, object]) -> bool:
    """Return whether a pillar override may count as in Salt: it is that of a job that this master published to the minion for
    an operator or a runner and that the minion has not answered, or ``pillar_override_from_minions`` is set.
    """
    if context.options.pillar_override_from_minions:
        return True
    wanted, seen = _text(override), set[str]()
    since_ms = int((time.time() - context.options.keep_jobs_seconds) * 1000)
    for limit in _READ:
        for job in context.store.jobs.active(since_ms, limit):
            if job.jid not in seen and wanted in _overrides(job) and _is_for(context, minion_id, job.jid):
                return True
            seen.add(job.jid)
    return False


def _is_for(context: WorkerContext, minion_id: str, jid: str) -> bool:
    """Return whether the master published this job and misses the return of this minion."""
    jobs = context.store.jobs
    try:
        return jobs.waits_for(jid, minion_id) and jobs.check_load(jid)
    except StoreCorrupt as error:
        context.log.error("%s", error, extra={"minion": minion_id, "jid": jid})
        return False


def _overrides(job: Job) -> Iterator[str]:
    """Yield the argument ``pillar`` of each function of a job as text that can be compared."""
    # A load with an id is that of a job that a minion published.
    arg, fun = job.load.get("arg"), job.load.get("fun")
    if "id" in job.load or not isinstance(arg, list):
        return
    groups = [group for group in arg if isinstance(group, list)] if isinstance(fun, list) else [arg]
    for group in groups:
        given = read_arguments(group)[1].get("pillar")
        if isinstance(given, Mapping):
            yield _text(given)


def _text(override: object) -> str:
    """Return an override as JSON with sorted keys: the job cache holds JSON, whose keys are texts."""
    return json.dumps(override, sort_keys=True, default=repr) if _is_plain(override) else repr(override)


def _is_plain(value: object) -> bool:
    """Return whether all keys are texts, so that JSON keeps them apart."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(each) for key, each in value.items())
    return all(map(_is_plain, value)) if isinstance(value, list | tuple) else True
