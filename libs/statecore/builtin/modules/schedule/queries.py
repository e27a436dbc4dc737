"""Functions of ``schedule`` that list jobs and their state."""

from __future__ import annotations

from statecore.builtin.modules.schedule.minion_schedule import jobs_of, saved_jobs
from statecore.model import yaml
from statecore.model.context import Context
from statecore.system.scheduling.job import GLOBAL, TIME_FORMAT


def list(
    ctx: Context,
    show_all: bool = False,
    show_disabled: bool = True,
    where: str | None = None,
    return_yaml: bool = True,
    offline: bool = False,
) -> str | dict[str, object]:
    """Return the jobs of the minion's schedule, as YAML text or with ``return_yaml=False`` as a map of job to
    options.

    ``show_all``: include the minion's own jobs, whose names begin with ``__``. ``where``: only those of ``opts`` or
    ``pillar``.

    CLI Example:

        salt '*' schedule.list
    """
    whole = jobs_of(ctx, show_all=show_all, where=where, offline=offline)
    if not show_disabled:
        whole = {name: job for name, job in whole.items() if name in GLOBAL or job["enabled"]}
    if not return_yaml:
        return whole
    kept = saved_jobs(ctx)
    for name, job in whole.items():
        if isinstance(job, dict):
            job["saved"] = name in kept
    text: str = yaml.dump({"schedule": whole}, default_flow_style=False)
    return text


def is_enabled(ctx: Context, name: str | None = None) -> bool | dict[str, object]:
    """Return whether the minion's scheduler is enabled. With a name, return the options of that job ({} if there is
    none).

    CLI Example:

        salt '*' schedule.is_enabled name=backup
    """
    whole = jobs_of(ctx)
    if not name:
        return bool(whole.get("enabled", True))
    job: dict[str, object] = whole.get(name, {})
    return job


def show_next_fire_time(ctx: Context, name: str, **kwargs: object) -> dict[str, object]:
    """Return {"result": True, "next_fire_time": time} with the time of the next run of a job in the minion's schedule;
    the time is None if there is no such job.

    CLI Example:

        salt '*' schedule.show_next_fire_time job1
    """
    if not name:
        return {"result": False, "comment": "Job name is required."}
    done = ctx.minion.manage("schedule", {"verb": "next_fire_time", "name": name})
    return {"result": True, "next_fire_time": done["next_fire_time"]}


def job_status(ctx: Context, name: str, time_fmt: str = TIME_FORMAT) -> dict[str, object]:
    """Return the options of a job in the minion's schedule as a map, with the scheduler's facts: ``_next_fire_time``,
    ``_last_run``, ``_skip_reason``, ``_error``... Return {} if there is no such job.

    CLI Example:

        salt '*' schedule.job_status job1
    """
    found: dict[str, object] = ctx.minion.manage(
        "schedule", {"verb": "job_status", "name": name, "time_fmt": time_fmt}
    )["data"]
    return found
