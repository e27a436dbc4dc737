"""Functions of ``saltutil`` for jobs that run, or ran, on this minion."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import time
from fnmatch import fnmatchcase
from pathlib import Path

from statecore.host.content import data_files
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError

_LOG = logging.getLogger(__name__)


def running(ctx: Context) -> list[dict[str, object]]:
    """Return a list of all jobs that run on this minion, except this one. Each job is its publication's map with the
    jobber's ``pid``.

    CLI Example:

        salt '*' saltutil.running
    """
    return _others(ctx)


def is_running(ctx: Context, fun: str) -> list[dict[str, object]]:
    """Return a list of the running jobs of this minion whose function matches a glob such as ``state.*``. Each job is
    its publication's map with the jobber's ``pid``.
    """
    return [job for job in _others(ctx) if fnmatchcase(str(job.get("fun", "")), fun)]


def find_job(ctx: Context, jid: str) -> dict[str, object]:
    """Return the running job of this minion with a JID: its publication's map with the jobber's ``pid``. Return {} if
    it does not run.
    """
    return next((job for job in _others(ctx) if str(job.get("jid")) == str(jid)), {})


def signal_job(ctx: Context, jid: str, sig: int | str) -> str:
    """Send a signal (number or name) to the process of a job on this minion. Return a sentence that names the signal
    and the job, "" if no such job runs.
    """
    return ctx.jobs.signal(str(jid), _number(sig))


def term_job(ctx: Context, jid: str) -> str:
    """Send SIGTERM to a job on this minion, which asks it to end. Return a sentence that names the signal and the job,
    "" if no such job runs.

    CLI Example:

        salt '*' saltutil.term_job <job id>
    """
    return ctx.jobs.signal(str(jid), signal.SIGTERM)


def kill_job(ctx: Context, jid: str) -> str:
    """Send SIGKILL to a job on this minion, which ends it at once. Return a sentence that names the signal and the job,
    "" if no such job runs.
    """
    return ctx.jobs.signal(str(jid), signal.SIGKILL)


def term_all_jobs(ctx: Context) -> list[str]:
    """Send SIGTERM to every other running job of this minion. Return a list with one sentence for each job that names
    the signal and the job.
    """
    return [ctx.jobs.signal(str(job["jid"]), signal.SIGTERM) for job in _others(ctx)]


def kill_all_jobs(ctx: Context) -> list[str]:
    """Send SIGKILL to every other running job of this minion. Return a list with one sentence for each job that names
    the signal and the job.
    """
    return [ctx.jobs.signal(str(job["jid"]), signal.SIGKILL) for job in _others(ctx)]


def find_cached_job(ctx: Context, jid: str) -> object:
    """Return the map of a job's return that this minion has stored (option ``cache_jobs``), or a sentence with the
    reason if it has none.

    CLI Example:

        salt '*' saltutil.find_cached_job <job id>
    """
    if not data_files.is_plain(str(jid)):
        raise InvocationError(f"{jid!r} is not a JID")
    directory = _kept(ctx) / str(jid)
    stored = data_files.load(directory / "return.p")
    if isinstance(stored, dict):
        return stored
    if not ctx.opts.get("cache_jobs"):
        return "Local jobs cache directory not found; you may need to enable cache_jobs on this minion"
    return f"Local jobs cache directory {directory} not found"


def clear_job_cache(ctx: Context, hours: float = 24) -> bool:
    """Delete the stored returns of jobs that are older than ``hours``. Return True; False if one cannot be deleted; the
    log has the reason.

    CLI Example:

        salt '*' saltutil.clear_job_cache hours=12
    """
    try:
        last = time.time() - float(hours) * 3600
    except (TypeError, ValueError):
        raise InvocationError(f"hours is a number, not {hours!r}") from None
    failed: list[BaseException] = []
    top = _kept(ctx)
    for directory in sorted(top.iterdir()) if top.is_dir() else ():
        if directory.is_dir() and directory.stat().st_mtime < last:
            shutil.rmtree(directory, onerror=lambda _, path, why: failed.append(why[1]))
    for error in failed:
        _LOG.error("a kept return cannot be removed: %s", error)
    return not failed


def _kept(ctx: Context) -> Path:
    return Path(str(ctx.opts["cachedir"])) / "minion_jobs"


def _others(ctx: Context) -> list[dict[str, object]]:
    """Return the running jobs of this minion, without the calling one, as a list of publication maps with ``pid``. As
    in Salt, a job neither finds nor ends itself.
    """
    return [job for job in ctx.jobs.running() if job.get("pid") != os.getpid()]


def _number(sig: int | str) -> int:
    text = str(sig).upper()
    if text.isdigit():
        return int(text)
    try:
        return signal.Signals[text if text.startswith("SIG") else f"SIG{text}"].value
    except KeyError:
        raise CommandError(f"There is no signal '{sig}'") from None
