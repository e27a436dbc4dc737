"""Requests to the minion about its schedule, and access to the saved schedule. Helpers of ``schedule``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.scheduling.job import GLOBAL
from statecore.system.scheduling.schedule_file import ScheduleFileError, load
from statecore.system.scheduling.schedule_file import save as save_file

#: Options of a job that are returned; other keys are the scheduler's internals.
_SHOWN = frozenset(
    {
        *("name", "maxrunning", "function", "splay", "range", "when", "once", "once_fmt", "returner", "jid_include"),
        *(
            "args",
            "kwargs",
            "seconds",
            "minutes",
            "hours",
            "days",
            "enabled",
            "return_job",
            "metadata",
            "cron",
            "until",
        ),
        *("after", "return_config", "return_kwargs", "run_on_start", "skip_during_range", "run_after_skip_range"),
        "dry_run",
    }
)


def jobs_of(ctx: Context, *, show_all: bool = False, where: str | None = None, offline: bool = False) -> dict[str, Any]:
    """Return the minion's schedule: a map of job to its options, and of each global option (``enabled``, ``splay``,
    ...) to its value.

    ``where``: "opts" or "pillar" limits the jobs to that source. ``show_all``: include the minion's own jobs
    (``__...``). A job that cannot run has the reason as ``_error``.
    """
    errors: Mapping[str, object] = {}
    if offline:
        whole = saved_jobs(ctx)
    else:
        listed = ctx.minion.manage("schedule", {"verb": "list", "where": where})
        whole, errors = listed["schedule"], listed.get("errors") or {}
    shown: dict[str, object] = {}
    for name, job in whole.items():
        if name in GLOBAL:
            shown[name] = job
            continue
        if not isinstance(job, Mapping):
            if name in errors:
                shown[name] = {"enabled": False, "_error": errors[name]}
            continue
        if str(name).startswith("__") and not show_all:
            continue
        options = {key: _switched(value) for key, value in job.items() if key in _SHOWN and value is not None}
        shown[name] = {"enabled": True, **options, **({"_error": errors[name]} if name in errors else {})}
    return shown


def _switched(value: object) -> object:
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def is_test(kwargs: Mapping[str, object]) -> bool:
    """Return whether the call of a ``schedule`` function has ``test=True``, so that nothing must be changed."""
    return bool(kwargs.get("test"))


def apply_change(ctx: Context, kwargs: Mapping[str, object], request: Mapping[str, Any]) -> dict[str, Any]:
    """Send a change of the schedule to the running minion, or with ``offline`` make it in the saved schedule. Return
    {"schedule": map of job to options, "unsaved": error of the save or ""}. Raise CommandError if the saved schedule
    cannot be written.
    """
    if not kwargs.get("offline"):
        return ctx.minion.manage("schedule", {**request, "persist": bool(kwargs.get("persist", True))})
    whole = saved_jobs(ctx)
    if request["verb"] == "delete":
        whole.pop(request["name"], None)
    else:
        whole[request["name"]] = request["schedule"]
    try:
        save_file(schedule_file(ctx), whole)
    except ScheduleFileError as error:
        raise CommandError(str(error)) from error
    return {"schedule": whole, "unsaved": ""}


def with_save_warning(answer: dict[str, object], done: Mapping[str, object]) -> dict[str, object]:
    """Return ``answer``, the result map of a ``schedule`` function. If the minion could not save the change, the
    result's comment says that the change is lost when the minion ends.
    """
    return (
        answer | {"comment": f"{answer['comment']} It is not saved: {done['unsaved']}"} if done["unsaved"] else answer
    )


def schedule_file(ctx: Context) -> Path:
    """Return the path of the file with the saved schedule (option ``schedule_file``). Raise CommandError if it is not
    configured.
    """
    file = ctx.opts.get("schedule_file")
    if not file:
        raise CommandError("no file is configured for the saved schedule: set 'schedule_file'")
    return Path(str(file))


def saved_jobs(ctx: Context) -> dict[str, object]:
    """Return the saved schedule as a map of job to options; {} if no file is configured for it. Raise CommandError if
    the file cannot be read.
    """
    if not ctx.opts.get("schedule_file"):
        return {}
    try:
        return load(schedule_file(ctx))
    except ScheduleFileError as error:
        raise CommandError(str(error)) from error
