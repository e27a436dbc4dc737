"""Commands that run once at a later time (at): Salt's ``at`` execution module."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from statecore.model.context import Context
from statecore.model.text_lines import lines_of

_TAG = re.compile(r"^### SALT: (\w+)", re.MULTILINE)

_NUMBER = re.compile(r"^job (\S+)", re.MULTILINE)

#: Argument of ``at.jobcheck`` -> field of a job, and the part of it, which a sign separates.
_PARTS: Mapping[str, tuple[str, str, int]] = {
    "hour": ("time", ":", 0),
    "minute": ("time", ":", 1),
    "day": ("date", "-", 2),
    "month": ("date", "-", 1),
    "year": ("date", "-", 0),
}


def available(ctx: Context) -> str | None:
    """Return None if the host has at; else return the reason as text."""
    return None if ctx.host.which("at") else "the host has no at"


def atq(ctx: Context, tag: object = None) -> dict[str, Any]:
    """Return the waiting jobs: a map of ``jobs`` to a list of maps of job (its number), date, time, queue, user, tag.

    tag
        only jobs with this tag, or the job with this number

    CLI Example:

        salt '*' at.atq
        salt '*' at.atq [tag]
        salt '*' at.atq [job number]
    """
    # Of RedHat, atq is a link that need not be there.
    words = ["at", "-l"] if ctx.grains.get("os_family") == "RedHat" else ["atq"]
    jobs = []
    for row in parse(ctx.host.run(words).stdout):
        found = _TAG.findall(ctx.host.run(["at", "-c", str(row["job"])]).stdout)
        row["tag"] = found[-1] if found else ""
        if not tag or tag in (row["tag"], row["job"]):
            jobs.append(row)
    return {"jobs": jobs}


def atrm(ctx: Context, *args: object) -> dict[str, Any]:
    """Remove waiting jobs of at. Return ``{"jobs": {"removed": numbers as texts, "tag": the given tag or None}}``.

    args
        numbers of jobs; or "all", which a tag may follow

    CLI Example:

        salt '*' at.atrm <jobid> <jobid> .. <jobid>
        salt '*' at.atrm all
        salt '*' at.atrm all [tag]
    """
    words = [str(each) for each in args]
    if not words:
        return {"jobs": {"removed": [], "tag": None}}
    tag = words[1] if words[0] == "all" and len(words) > 1 else None
    known = [str(job["job"]) for job in atq(ctx, tag)["jobs"]]
    removed = known if words[0] == "all" else [job for job in known if job in words]
    if removed:
        ctx.host.run(["at", "-d", *removed])
    return {"jobs": {"removed": removed, "tag": tag}}


def at(ctx: Context, *args: str, **kwargs: Any) -> dict[str, Any]:
    """Add a job of at. Return the new job as ``at.atq`` does: ``{"jobs": [job]}``. On failure ``jobs`` is [] and
    ``error`` the reason.

    args
        the time as at has it, then the words of the command
    tag
        a word by which the job is found again
    runas
        the user who runs the command

    CLI Example:

        salt '*' at.at <timespec> <cmd> [tag=<tag>] [runas=<user>]
        salt '*' at.at 12:05am '/sbin/reboot' tag=reboot
    """
    if len(args) < 2:
        return {"jobs": []}
    head = f"### SALT: {kwargs['tag']}\n" if kwargs.get("tag") is not None else ""
    text = f"{head}{' '.join(str(each) for each in args[1:])}\n"
    done = ctx.host.run(["at", str(args[0])], stdin=text, runas=kwargs.get("runas"), merge_stderr=True)
    found = _NUMBER.search(done.stdout)
    if found is not None:
        return atq(ctx, int(found[1]))
    said = done.stdout.strip()
    return {"jobs": [], "error": "invalid timespec" if said.endswith("Garbled time") else said or "at failed"}


def atc(ctx: Context, jobid: object) -> str | dict[str, str]:
    """Return the shell script of a waiting job of at as text; a map with ``error`` if there is no such job.

    CLI Example:

        salt '*' at.atc <jobid>
    """
    text = ctx.host.run(["at", "-c", str(jobid)]).stdout.rstrip("\n")
    return text or {"error": f"invalid job id '{jobid}'"}


def jobcheck(ctx: Context, **kwargs: Any) -> dict[str, Any]:
    """Return the waiting jobs of at that fit all conditions, in the form of ``at.atq``; the key ``note`` is added if
    there are jobs but none fits.

    runas, tag, hour, minute, day, month, year
        the conditions

    CLI Example:

        salt '*' at.jobcheck runas=jam day=13
        salt '*' at.jobcheck day=13 month=12 year=13 tag=rose
    """
    if not kwargs:
        return {"error": "You have given a condition"}
    jobs = atq(ctx)["jobs"]
    found = [job for job in jobs if _fits(job, kwargs)]
    return {"jobs": found, "note": "No match jobs or time format error"} if jobs and not found else {"jobs": found}


def parse(text: str) -> list[dict[str, Any]]:
    """Return the lines of atq's output as a list of maps: job (number), date (2026-11-23), time (10:00:00), queue,
    user.

    at before 3.1.10 shows date and time as numbers, later ones the date as ``Mon Nov 23 10:00:00 2026``.
    """
    found = []
    for line in lines_of(text):
        job, _, spec = line.partition("\t")
        words = spec.split()
        if len(words) >= 7:
            moment = datetime(*time.strptime(" ".join(words[:5]))[:6])
            words = [*moment.isoformat().split("T"), *words[5:7]]
        if len(words) >= 4:
            names = ("date", "time", "queue", "user")
            found.append({"job": int(job), **dict(zip(names, words, strict=False))})
    return found


def _fits(job: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    alike = all(not wanted.get(key) or wanted[key] == job[field] for key, field in (("runas", "user"), ("tag", "tag")))
    return alike and all(
        not wanted.get(key) or _padded(key, wanted[key]) == job[field].split(sign)[part]
        for key, (field, sign, part) in _PARTS.items()
    )


def _padded(key: str, value: object) -> str:
    text = str(value)
    if key == "year":
        return f"20{text}" if len(text) == 2 else text
    return text.zfill(2)
