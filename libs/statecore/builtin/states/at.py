"""Salt's ``at`` states: commands that run once at a later time.

rose:
  at.present:
    - job: echo "I love saltstack" > love
    - timespec: 9:09 11/09/26
    - tag: love
    - user: jam
    - unique_tag: True
"""

from __future__ import annotations

from typing import Any

from statecore.model.context import Context
from statecore.model.errors import HostError
from statecore.model.types import Outcome, Plan, Step


def available(ctx: Context) -> str | None:
    """Return None if the host has at; else return the reason as text."""
    return None if ctx.host.which("at") else "the host has no at"


def present(
    ctx: Context,
    name: str,
    timespec: str,
    tag: str | None = None,
    user: str | None = None,
    job: str | None = None,
    unique_tag: bool = False,
) -> Plan:
    """Add a job (a command that at runs once, at the time ``timespec``), in each run unless ``unique_tag`` is set. The
    state fails if the user does not exist or at refuses the time.

    timespec
        the time as at has it: ``9:09 11/09/26``, ``now + 1 hour``
    tag
        a word by which the job is found again
    user
        the user who runs the command
    job
        the command; without it, ``name``
    unique_tag
        True: add nothing if a job with this tag is waiting
    """
    command = job or name
    as_user = f" as {user}" if user else ""
    would = f"job {command} added and will run on {timespec}"

    def work() -> Outcome:
        if unique_tag and not tag:
            return Outcome("no tag provided and unique_tag is set to True", ok=False)
        if unique_tag and ctx.call("at.jobcheck", tag=tag)["jobs"]:
            return Outcome(f"atleast one job with tag {tag} exists.")
        if user and not _known(ctx, user):
            return Outcome(f"user {user} does not exists", ok=False)
        done = ctx.call("at.at", timespec, command, tag=tag, **({"runas": user} if user else {}))
        if "error" in done:
            return Outcome(done["error"], ok=False)
        changes = done["jobs"][0] if done["jobs"] else {}
        return Outcome(f"job {command} added and will run{as_user} on {timespec}", changes)

    return Plan.change(would, [Step(f"add the job {command}", work)])


def absent(ctx: Context, name: str, jobid: object = None, **kwargs: Any) -> Plan:
    """Remove jobs that wait in at's queue: the one with the number ``jobid``, those that fit all conditions, or without
    either all jobs.

    runas, tag, hour, minute, day, month, year
        the conditions
    """
    if "limit" in kwargs:
        return Plan.failed(f"limit parameter not supported {name}")

    def work() -> Outcome:
        if jobid:
            return _one(ctx, jobid)
        fitting = [job["job"] for job in ctx.call("at.jobcheck", **kwargs)["jobs"]] if kwargs else ["all"]
        removed = ctx.call("at.atrm", *fitting)["jobs"]["removed"]
        return Outcome(f"removed {len(removed)} job(s)", {"removed": removed} if removed else {})

    return Plan.change("removed ? job(s)", [Step("remove jobs", work)])


def watch(
    ctx: Context,
    name: str,
    timespec: str,
    tag: str | None = None,
    user: str | None = None,
    job: str | None = None,
    unique_tag: bool = False,
) -> Plan:
    """Add a job only if a watched state changed. The arguments are those of ``at.present``."""
    return Plan.unchanged("")


def mod_watch(ctx: Context, name: str, sfun: str = "", **kwargs: Any) -> Plan:
    """Add the job of ``at.watch``, because a watched state changed."""
    if sfun != "watch":
        return Plan.failed("")
    return present(ctx, name, **kwargs)


def _known(ctx: Context, user: str) -> bool:
    try:
        ctx.host.uid(user)
    except HostError:
        return False
    return True


def _one(ctx: Context, jobid: object) -> Outcome:
    number = int(str(jobid)) if str(jobid).isdecimal() else jobid
    jobs = ctx.call("at.atq", number)["jobs"]
    if not jobs:
        return Outcome(f"job with id {jobid} not present")
    if len(jobs) > 1:
        return Outcome(f"more than one job was return for job with id {jobid}", ok=False)
    removed = ctx.call("at.atrm", jobid)["jobs"]["removed"]
    if str(jobid) not in removed:
        return Outcome(f"failed to remove job with id {jobid}", {"removed": removed}, ok=False)
    return Outcome(f"job with id {jobid} was removed", {"removed": removed})
