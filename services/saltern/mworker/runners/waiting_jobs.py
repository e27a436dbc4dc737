"""Runners about jobs that wait for minions to reconnect (``salt --when-back``), and cancellation of jobs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime

from masterstore.life import UNDELIVERED, Life, State
from saltern.mworker.runners.runner import RunnerFault, RunnerTools
from saltwire.jid import is_jid
from statecore.model.redaction import shown_arguments

#: Number of listed jobs: those that expire first.
_MOST = 1000


def list_waiting(tools: RunnerTools) -> dict[str, object]:
    """Return the jobs that wait for minions to reconnect:
    {jid: {Function, Arguments, Target, Target-type, User, Until, Waits for: [minion]}}.

    ``Until`` is the UTC time at which the job expires. At most 1000 jobs are listed, those that expire first.

    CLI Example:

        salt-run jobs.list_waiting
    """
    deadlines = tools.store.jobs.waiting_jobs(int(time.time() * 1000), _MOST)
    found: dict[str, object] = {}
    for job in tools.store.jobs.described(list(deadlines)):
        arguments = job.load.get("arg")
        minions = [name for name, life in tools.store.jobs.life(job.jid).items() if life.state in UNDELIVERED]
        if minions:
            found[job.jid] = {
                "Function": job.load.get("fun", "unknown-function"),
                "Arguments": shown_arguments(job.load.get("fun"), arguments)
                if isinstance(arguments, list | tuple)
                else [],
                "Target": job.load.get("tgt", "unknown-target"),
                "Target-type": job.load.get("tgt_type", "list"),
                "User": job.load.get("user", "root"),
                "Until": _moment(deadlines[job.jid]),
                "Waits for": minions,
            }
    return found


def cancel(tools: RunnerTools, jid: str, *minions: str) -> dict[str, object]:
    """Cancel a job on minions that have not started it: {Cancelled: [minion], Too late for: {minion: its state}}.

    The job is not sent to these minions any more. Jobs that already run are not ended; use
    ``salt MINION saltutil.term_job JID`` for those.

    jid
        the job
    minions
        cancel the job on these minions only; default: on all

    CLI Example:

        salt-run jobs.cancel 20260101120000000000
        salt-run jobs.cancel 20260101120000000000 web1 web2
    """
    jid = str(jid)
    if not is_jid(jid):
        raise RunnerFault(f"'{jid}' is not a JID (20 digits: UTC time to the microsecond)")
    lives = tools.store.jobs.life(jid)
    if not lives:
        raise RunnerFault(f"There is no job {jid} that was published to minions in the job cache.")
    strangers = sorted({str(name) for name in minions} - lives.keys())
    if strangers:
        raise RunnerFault(f"The job {jid} is not for {', '.join(strangers)}; nothing was called off.")
    wanted = [name for name in lives if not minions or name in map(str, minions)]
    cancelled = tools.store.jobs.cancel(jid, wanted, int(time.time() * 1000))
    return {"Cancelled": cancelled, "Too late for": _too_late(tools.store.jobs.life(jid), wanted)}


def _too_late(lives: Mapping[str, Life], wanted: list[str]) -> dict[str, str]:
    return {
        name: lives[name].state.value for name in wanted if name in lives and lives[name].state is not State.CANCELLED
    }


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
