"""``salt.utils.jid`` for users' modules: job ids (JIDs), which are times in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def gen_jid(opts: object = None) -> str:
    """Return a new JID: the current time in UTC with microseconds, as 20 digits. ``opts`` is ignored."""
    return f"{datetime.now(UTC):%Y%m%d%H%M%S%f}"


def is_jid(jid: object) -> bool:
    """Return whether the value is a JID: a text of 20 digits, optionally followed by ``_`` and a process id."""
    if not isinstance(jid, str) or not (len(jid) == 20 or (len(jid) > 21 and jid[20] == "_")):
        return False
    return jid[:20].isdecimal()


def jid_to_time(jid: object) -> str:
    """Return the time of a JID as text such as ``2026, Nov 21 12:00:00.000000``; "" if the value is not a JID."""
    text = str(jid)
    return f"{datetime.strptime(text[:20], '%Y%m%d%H%M%S%f'):%Y, %b %d %H:%M:%S.%f}" if is_jid(text) else ""


def format_job_instance(job: Mapping[str, Any]) -> dict[str, object]:
    """Return a job's load as a map for display, with the keys Function, Arguments, Target, Target-type, User, and
    Metadata if given.
    """
    shown: dict[str, object] = {
        "Function": job.get("fun", "unknown-function"),
        "Arguments": list(job.get("arg", [])),
        "Target": job.get("tgt", "unknown-target"),
        "Target-type": job.get("tgt_type", "list"),
        "User": job.get("user", "root"),
    }
    by_keyword = [each for each in job.get("arg") or () if isinstance(each, Mapping) and each.get("__kwarg__") is True]
    for place in (job, job.get("kwargs", {}), *by_keyword):
        if "metadata" in place:
            return {**shown, "Metadata": place["metadata"]}
    return shown


def format_jid_instance(jid: object, job: Mapping[str, Any]) -> dict[str, object]:
    """Return a job's load as a map for display, as ``format_job_instance``, with the key StartTime."""
    return {**format_job_instance(job), "StartTime": jid_to_time(jid)}


def format_jid_instance_ext(jid: object, job: Mapping[str, Any]) -> dict[str, object]:
    """Return a job's load as a map for display, as ``format_job_instance``, with the keys JID and StartTime."""
    return {**format_job_instance(job), "JID": jid, "StartTime": jid_to_time(jid)}
