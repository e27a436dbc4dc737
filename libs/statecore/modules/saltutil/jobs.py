"""Jobs that run on this minion."""

from __future__ import annotations

import os
import signal
from fnmatch import fnmatchcase
from typing import Any

from statecore.context import Context
from statecore.errors import CommandError


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
