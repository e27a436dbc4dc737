"""Jobs that run on this minion."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from statecore.host.content import kept_files
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError

_LOG = logging.getLogger(__name__)


def running(ctx: Context) -> list[dict[str, Any]]:
    """The jobs that run on this minion now but this one, as they were published, each with its pid.

    CLI Example:

        salt '*' saltutil.running
    """
    return _others(ctx)


def is_running(ctx: Context, fun: str) -> list[dict[str, Any]]:
    """The running jobs whose function matches a glob (``state.*``)."""
    return [job for job in _others(ctx) if fnmatchcase(str(job.get("fun", "")), fun)]


def find_job(ctx: Context, jid: str) -> dict[str, Any]:
    """The running job with this id, {} when it does not run (any more)."""
    return next((job for job in _others(ctx) if str(job.get("jid")) == str(jid)), {})


def signal_job(ctx: Context, jid: str, sig: int | str) -> str:
    """Sends a signal (number or name) to a job's process; the sentence says what was done, "" when there is no such job."""
    return ctx.jobs.signal(str(jid), _number(sig))


def term_job(ctx: Context, jid: str) -> str:
    """Asks a job to end (SIGTERM).

    CLI Example:

        salt '*' saltutil.term_job <job id>
    """
    return ctx.jobs.signal(str(jid), signal.SIGTERM)


def kill_job(ctx: Context, jid: str) -> str:
    """Ends a job at once (SIGKILL)."""
    return ctx.jobs.signal(str(jid), signal.SIGKILL)


def term_all_jobs(ctx: Context) -> list[str]:
    """Asks every other running job to end."""
    return [ctx.jobs.signal(str(job["jid"]), signal.SIGTERM) for job in _others(ctx)]


def kill_all_jobs(ctx: Context) -> list[str]:
    """Ends every other running job at once."""
    return [ctx.jobs.signal(str(job["jid"]), signal.SIGKILL) for job in _others(ctx)]


def find_cached_job(ctx: Context, jid: str) -> Any:
    """What a job returned, of those that this minion keeps (option ``cache_jobs``); a sentence where it keeps none with this id.

    CLI Example:

        salt '*' saltutil.find_cached_job <job id>
    """
    if not kept_files.is_plain(str(jid)):
        raise InvocationError(f"{jid!r} is no job id")
    place = _kept(ctx) / str(jid)
    told = kept_files.load(place / "return.p")
    if isinstance(told, dict):
        return told
    if not ctx.opts.get("cache_jobs"):
        return "Local jobs cache directory not found; you may need to enable cache_jobs on this minion"
    return f"Local jobs cache directory {place} not found"


def clear_job_cache(ctx: Context, hours: float = 24) -> bool:
    """Forgets the returns that this minion has kept for so many hours; False where one of them cannot be removed.

    CLI Example:

        salt '*' saltutil.clear_job_cache hours=12
    """
    try:
        last = time.time() - float(hours) * 3600
    except (TypeError, ValueError):
        raise InvocationError(f"hours is a number, not {hours!r}") from None
    failed: list[BaseException] = []
    top = _kept(ctx)
    for place in sorted(top.iterdir()) if top.is_dir() else ():
        if place.is_dir() and place.stat().st_mtime < last:
            shutil.rmtree(place, onerror=lambda _, path, why: failed.append(why[1]))
    for error in failed:
        _LOG.error("a kept return cannot be removed: %s", error)
    return not failed


def _kept(ctx: Context) -> Path:
    return Path(str(ctx.opts["cachedir"])) / "minion_jobs"


def _others(ctx: Context) -> list[dict[str, Any]]:
    """The job that asks does not count, as in Salt: it would find, or end, itself."""
    return [job for job in ctx.jobs.running() if job.get("pid") != os.getpid()]


def _number(sig: int | str) -> int:
    text = str(sig).upper()
    if text.isdigit():
        return int(text)
    try:
        return signal.Signals[text if text.startswith("SIG") else f"SIG{text}"].value
    except KeyError:
        raise CommandError(f"There is no signal '{sig}'") from None
