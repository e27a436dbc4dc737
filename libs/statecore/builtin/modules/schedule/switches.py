"""Functions of ``schedule`` that run, enable, disable, postpone and skip jobs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from statecore.builtin.modules.schedule.minion_schedule import apply_change, is_test, jobs_of, with_save_warning
from statecore.model.context import Context
from statecore.system.scheduling.job import TIME_FORMAT


def run_job(ctx: Context, name: str, force: bool = False) -> dict[str, object]:
    """Run a job of the minion's schedule now; with ``force`` even if it is disabled. Return a map with ``result`` and
    ``comment``.

    CLI Example:

        salt '*' schedule.run_job job1
    """
    if not name:
        return {"comment": "Job name is required.", "result": False}
    whole = jobs_of(ctx, show_all=True)
    if name not in whole:
        return {"comment": f"Job {name} does not exist.", "result": False}
    if not whole[name]["enabled"] and not force:
        return {"comment": f"Job {name} is disabled.", "result": True}
    ctx.minion.manage("schedule", {"verb": "run_job", "name": name})
    return {"comment": f"Scheduling Job {name} on minion.", "result": True}


def enable_job(ctx: Context, name: str, **kwargs: object) -> dict[str, object]:
    """Enable a job of the minion's schedule. Return a map with ``result``, ``comment`` and ``changes``.

    CLI Example:

        salt '*' schedule.enable_job job1
    """
    return _switch_job(ctx, name, kwargs, on=True)


def disable_job(ctx: Context, name: str, **kwargs: object) -> dict[str, object]:
    """Disable a job of the minion's schedule: the scheduler does not run it. Return a map with ``result``, ``comment``
    and ``changes``.

    CLI Example:

        salt '*' schedule.disable_job job1
    """
    return _switch_job(ctx, name, kwargs, on=False)


def enable(ctx: Context, **kwargs: object) -> dict[str, object]:
    """Enable the minion's schedule. Return a map with ``result`` and ``comment``.

    CLI Example:

        salt '*' schedule.enable
    """
    return _switch(ctx, kwargs, on=True)


def disable(ctx: Context, **kwargs: object) -> dict[str, object]:
    """Disable the minion's schedule: the scheduler runs no job. Return a map with ``result`` and ``comment``.

    CLI Example:

        salt '*' schedule.disable
    """
    return _switch(ctx, kwargs, on=False)


def postpone_job(ctx: Context, name: str, current_time: str, new_time: str, **kwargs: object) -> dict[str, object]:
    """Move a run of a scheduled job from one time to another. Return a map with ``result`` and ``comment``. Times have
    the format ``time_fmt``, by default ``%Y-%m-%dT%H:%M:%S``.

    CLI Example:

        salt '*' schedule.postpone_job job1 2026-01-01T03:00:00 2026-01-01T05:00:00
    """
    words = ("Job current time is required.", "Job new_time is required.")
    return _at_times(ctx, name, kwargs, {"time": current_time, "new_time": new_time}, words, "postpone")


def skip_job(ctx: Context, name: str, current_time: str, **kwargs: object) -> dict[str, object]:
    """Skip the run of a scheduled job that is due at ``current_time``. Return a map with ``result`` and ``comment``.
    The time has the format that ``schedule.postpone_job`` describes.

    CLI Example:

        salt '*' schedule.skip_job job1 2026-01-01T03:00:00
    """
    return _at_times(ctx, name, kwargs, {"time": current_time}, ("Job time is required.",), "skip")


def _switch_job(ctx: Context, name: str, kwargs: Mapping[str, object], *, on: bool) -> dict[str, object]:
    able = "enable" if on else "disable"
    if not name:
        return {"comment": "Job name is required.", "result": False, "changes": {}}
    if is_test(kwargs):
        return {"comment": f"Job: {name} would be {able}d in schedule.", "result": True, "changes": {}}
    if name not in jobs_of(ctx, show_all=True):
        return {"comment": f"Job {name} does not exist.", "result": False, "changes": {}}
    done = apply_change(ctx, {**kwargs, "offline": False}, {"verb": f"{able}_job", "name": name})
    if bool(done["schedule"].get(name, {}).get("enabled", True)) is not on:
        # The job is one of pillar's, which cannot be changed here.
        return {"comment": f"Failed to {able} job {name} in schedule.", "result": False, "changes": {}}
    comment = f"{able.capitalize()}d Job {name} in schedule."
    return with_save_warning({"comment": comment, "result": True, "changes": {name: f"{able}d"}}, done)


def _switch(ctx: Context, kwargs: Mapping[str, object], *, on: bool) -> dict[str, object]:
    able = "enable" if on else "disable"
    if is_test(kwargs):
        return {"comment": f"Schedule would be {able}d.", "result": True, "changes": {}}
    done = apply_change(ctx, {**kwargs, "offline": False}, {"verb": able})
    answer = {"comment": f"{able.capitalize()}d schedule on minion.", "result": True}
    return with_save_warning(answer | {"changes": {"schedule": f"{able}d"}}, done)


def _at_times(
    ctx: Context,
    name: str,
    kwargs: Mapping[str, object],
    times: Mapping[str, str],
    words: tuple[str, ...],
    able: str,
) -> dict[str, object]:
    form = str(kwargs.get("time_fmt") or TIME_FORMAT)
    if not name:
        return {"comment": "Job name is required.", "result": False}
    for (_, moment), missing in zip(times.items(), words, strict=True):
        if not moment:
            return {"comment": missing, "result": False}
        try:
            datetime.strptime(moment, form)
        except (TypeError, ValueError):
            return {"comment": f"Date string could not be parsed: {moment}, {form}", "result": False}
    past = {"skip": "skipped", "postpone": "postponed"}[able]
    if is_test(kwargs):
        return {"comment": f"Job: {name} would be {past} in schedule.", "result": True}
    if name not in jobs_of(ctx, show_all=True):
        return {"comment": f"Job {name} does not exist.", "result": False}
    if name not in jobs_of(ctx, show_all=True, where="opts"):
        return {"comment": f"Failed to {able} job {name} in schedule.", "result": False}
    ctx.minion.manage("schedule", {"verb": f"{able}_job", "name": name, "time_fmt": form, **times})
    comment = {"skip": f"Added Skip Job {name} in schedule.", "postpone": f"Postponed Job {name} in schedule."}[able]
    return {"comment": comment, "result": True}
