"""Jobs read from a user's returner, which the argument ``ext_source`` of the runners ``jobs.*`` names.

The returner comes from ``returner_dirs`` or ``salt://_returners`` and has Salt's functions ``get_load(jid)``,
``get_jid(jid)`` and ``get_jids()``. Salt: salt/runners/jobs.py; salt/utils/jid.py (form of listed jobs)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from masterstore.job_filter import JobFilter
from masterstore.jobs import Job
from saltern.kit.config.reactor_rows import REDIS
from saltern.mworker.runners.runner import RunnerFault, RunnerTools
from saltern.mworker.runners.state import runtime_of
from saltwire.jid import is_jid, jid_time
from statecore.model.errors import NotAvailable
from statecore.runtime.runtime import Runtime

#: Name in a listing of jobs -> field of the load.
_SHOWN: Mapping[str, str] = {
    "Function": "fun",
    "Arguments": "arg",
    "Target": "tgt",
    "Target-type": "tgt_type",
    "User": "user",
    "Metadata": "metadata",
}

#: Fields of JobFilter that a returner does not support -> name of the runner's argument.
_UNKNOWN: Mapping[str, str] = {"minions": "minion", "success": "success", "states": "state"}


def source_of(tools: RunnerTools, ext_source: object) -> ReturnerJobs | None:
    """Return the returner that ``ext_source`` names; None for this master's job cache. Raises RunnerFault if it is no name."""
    if not ext_source or ext_source in REDIS:
        return None
    if not isinstance(ext_source, str):
        raise RunnerFault(f"ext_source is the name of a returner, not {ext_source!r}")
    return ReturnerJobs(runtime_of(tools), ext_source)


class ReturnerJobs:
    """Reads jobs from one returner. All methods raise RunnerFault if the returner is missing, lacks the function, or fails."""

    def __init__(self, runtime: Runtime, name: str) -> None:
        self._runtime = runtime
        self._name = name

    def job(self, jid: str) -> Job:
        """Return the job ``jid`` from the returner, with its returns: {minion id: {"return": value, further fields}}."""
        load, returns = self._ask("get_load", jid), self._ask("get_jid", jid)
        if not load and not returns:
            raise RunnerFault(f"the returner {self._name} has no job with the JID {jid}")
        job_load = _map(load, f"{self._name}.get_load")
        minions = job_load.pop("Minions", None) or job_load.pop("minions", None) or []
        found = {
            str(minion): _map(ret, f"{self._name}.get_jid of {minion}")
            for minion, ret in _map(returns, f"{self._name}.get_jid").items()
        }
        return Job(jid, job_load, tuple(sorted(map(str, minions))), found)

    def jobs(self, wanted: JobFilter) -> list[Job]:
        """Return all jobs that match the filter, newest first, with the listed part of their loads. The filter's limit
        is ignored.
        """
        for field, word in _UNKNOWN.items():
            if getattr(wanted, field) not in ((), None):
                raise RunnerFault(f"{word}: jobs of the returner {self._name} are not found by that; leave it out")
        listed = _map(self._ask("get_jids"), f"{self._name}.get_jids")
        found = [Job(str(jid), _load(_map(row, f"{self._name}.get_jids: {jid}"))) for jid, row in listed.items()]
        return sorted((job for job in found if _fits(job, wanted)), key=lambda job: job.jid, reverse=True)

    def _ask(self, function: str, *args: object) -> object:
        fun = f"{self._name}.{function}"
        try:
            served, name = self._runtime.loader.function("returners", fun, self._runtime.context)
        except NotAvailable as missing:
            raise RunnerFault(
                f"ext_source: {str(missing).rstrip('.')}; docs/jobs.md says what such a returner has"
            ) from missing
        try:
            return served.bound(name, self._runtime.context)(*args)
        except Exception as error:  # a user's returner may raise anything
            raise RunnerFault(f"ext_source: {fun} failed: {type(error).__name__}: {error}") from error


def _map(value: object, whose: str) -> dict[str, Any]:
    if not value:
        return {}
    if not isinstance(value, Mapping):
        raise RunnerFault(f"ext_source: {whose} must return a map, not {type(value).__name__}")
    return dict(value)


def _load(row: Mapping[str, object]) -> dict[str, object]:
    return {field: row[name] for name, field in _SHOWN.items() if name in row}


def _fits(job: Job, wanted: JobFilter) -> bool:
    if not is_jid(job.jid):
        return False
    made, load = jid_time(job.jid).timestamp() * 1000, job.load
    fun, target = load.get("fun"), load.get("tgt")
    functions = fun if isinstance(fun, list) else str(fun).split(",")
    return (
        (wanted.after_ms is None or made >= wanted.after_ms)
        and (wanted.before_ms is None or made < wanted.before_ms)
        and (not wanted.cursor or job.jid < wanted.cursor)
        and _any(functions, wanted.functions)
        and _any([load.get("user")], wanted.users)
        and _any([",".join(map(str, target)) if isinstance(target, list) else target], wanted.targets)
    )


def _any(names: Iterable[object], globs: tuple[str, ...]) -> bool:
    return not globs or any(fnmatchcase(str(name), glob) for name in names for glob in globs)
