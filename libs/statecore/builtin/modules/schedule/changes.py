"""Functions of ``schedule`` that add, change, remove and save jobs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from statecore.builtin.modules.schedule.minion_schedule import (
    apply_change,
    is_test,
    jobs_of,
    saved_jobs,
    schedule_file,
    with_save_warning,
)
from statecore.model.context import Context
from statecore.system.scheduling.job import GLOBAL, INTERVALS, Job, check_new

#: Options that are copied unchanged into a job.
_COPIED = (
    *("range", "when", "once", "once_fmt", "cron", "returner", "after", "return_config", "return_kwargs", "until"),
    *("run_on_start", "skip_during_range", "run_after_skip_range", "dry_run"),
)

#: Keyword arguments that describe how the job is added, and are no options of a job.
_MANNERS = frozenset({"persist", "test", "offline", "name", "function", "job_args", "job_kwargs", "splay", "where"})
_OWN = frozenset({"enabled", "maxrunning", "jid_include", "return_job", "metadata"})


def build_schedule_item(ctx: Context, name: str, **kwargs: object) -> dict[str, object]:
    """Return the map of options of the job that ``schedule.add`` would add. For invalid options return ``{"result":
    False, "comment": reason}``.

    CLI Example:

        salt '*' schedule.build_schedule_item job1 function=test.ping seconds=3600
    """
    given = {key: value for key, value in kwargs.items() if not key.startswith("__")}
    if not name:
        return _refused("Job name is required.")
    if fault := _conflict(given):
        return _refused(fault)
    for option, kind in (("job_args", list), ("job_kwargs", dict)):
        if option in given and not isinstance(given[option], kind):
            return _refused(f"{option} is not a {kind.__name__}. please correct and try again.")
    known = {*_COPIED, *_MANNERS, *_OWN, *INTERVALS}
    job: dict[str, object] = {"function": given.get("function")}
    job |= {key: given[key] for key in (*INTERVALS, "return_job", "metadata") if key in given}
    job |= {key: given[f"job_{key}"] for key in ("args", "kwargs") if f"job_{key}" in given}
    job["maxrunning"] = given.get("maxrunning", 1)
    job["name"] = name
    job["enabled"] = given.get("enabled", True)
    job["jid_include"] = given.get("jid_include", True)
    job |= {key: given[key] for key in ("splay", *_COPIED) if key in given}
    unknown = {key: value for key, value in given.items() if key not in known}
    try:
        check_new(unknown)
        Job.of(name, job, {}, {}, datetime.now())
    except ValueError as error:
        return _refused(str(error))
    return job


def add(ctx: Context, name: str, **kwargs: object) -> dict[str, object]:
    """Add a job to the minion's schedule. Return a map with ``result``, ``comment`` and ``changes``.

    Options are those of a job in the option ``schedule``; the arguments of its function are ``job_args`` and
    ``job_kwargs``. With ``persist=False`` the job lasts until the minion ends. ``offline=True`` adds it to the saved
    schedule.

    CLI Example:

        salt '*' schedule.add job1 function=test.ping seconds=3600
        salt '*' schedule.add job2 function=cmd.run job_args="['date >> /tmp/date.log']" cron='0 3 * * *'
    """
    answer: dict[str, object] = {"comment": f"Failed to add job {name} to schedule.", "result": False, "changes": {}}
    if not name:
        return answer | {"comment": "Job name is required."}
    if fault := _conflict(kwargs):
        return answer | {"comment": fault if fault.startswith('Unable to use "when"') else f"Error: {fault}"}
    if name in jobs_of(ctx, show_all=True, offline=bool(kwargs.get("offline"))):
        return answer | {"comment": f"Job {name} already exists in schedule."}
    job = build_schedule_item(ctx, name, **kwargs)
    if job.get("result") is False:
        return job
    if is_test(kwargs):
        return answer | {"comment": f"Job: {name} would be added to schedule.", "result": True}
    done = apply_change(ctx, kwargs, {"verb": "add", "name": name, "schedule": job})
    answer |= {"result": True, "comment": f"Added job: {name} to schedule.", "changes": {name: "added"}}
    return with_save_warning(answer, done)


def modify(ctx: Context, name: str, **kwargs: object) -> dict[str, object]:
    """Replace a job of the minion's schedule. Return a map with ``result``, ``comment`` and ``changes``. The function
    stays unless another one is given. The options are those of ``schedule.add``.

    CLI Example:

        salt '*' schedule.modify job1 seconds=60
    """
    answer: dict[str, object] = {"comment": "", "changes": {}, "result": True}
    if fault := _conflict(kwargs):
        if not fault.startswith('Unable to use "when"'):
            fault = "Error: " + fault.replace(' or "cron" options', " option")
        return answer | {"result": False, "comment": fault}
    whole = jobs_of(ctx, show_all=True, offline=bool(kwargs.get("offline")))
    if name not in whole:
        return answer | {"comment": f"Job {name} does not exist in schedule.", "result": False}
    old = whole[name]
    new = build_schedule_item(ctx, name, **{"function": old.get("function"), **kwargs})
    if new.get("result") is False:
        return new
    if new == old:
        return answer | {"comment": f"Job {name} in correct state"}
    answer["changes"] = {name: {"old": old, "new": new}}
    if is_test(kwargs):
        return answer | {"comment": f"Job: {name} would be modified in schedule."}
    done = apply_change(ctx, kwargs, {"verb": "modify", "name": name, "schedule": new})
    return with_save_warning(answer | {"comment": f"Modified job: {name} in schedule."}, done)


def delete(ctx: Context, name: str, **kwargs: object) -> dict[str, object]:
    """Remove a job from the minion's schedule. Return a map with ``result``, ``comment`` and ``changes``.

    CLI Example:

        salt '*' schedule.delete job1
    """
    answer: dict[str, object] = {
        "comment": f"Failed to delete job {name} from schedule.",
        "result": False,
        "changes": {},
    }
    if not name:
        return answer | {"comment": "Job name is required."}
    if is_test(kwargs):
        return answer | {"comment": f"Job: {name} would be deleted from schedule.", "result": True}
    if name not in jobs_of(ctx, show_all=True, offline=bool(kwargs.get("offline"))):
        return answer | {"comment": f"Job {name} does not exist."}
    done = apply_change(ctx, kwargs, {"verb": "delete", "name": name})
    if name in done["schedule"]:
        # The job is one of pillar's, which cannot be changed here.
        return answer
    answer |= {"result": True, "comment": f"Deleted Job {name} from schedule.", "changes": {name: "removed"}}
    return with_save_warning(answer, done)


def purge(ctx: Context, **kwargs: object) -> dict[str, object]:
    """Remove all jobs from the minion's schedule, except those of pillar and the minion's own. Return a map with
    ``result``, ``comment`` and ``changes``.

    CLI Example:

        salt '*' schedule.purge
    """
    comments: list[str] = []
    changes: dict[str, str] = {}
    for name in jobs_of(ctx, offline=bool(kwargs.get("offline"))):
        if name in GLOBAL:
            continue
        if is_test(kwargs):
            comments.append(f"Job: {name} would be deleted from schedule.")
            continue
        done = apply_change(ctx, kwargs, {"verb": "delete", "name": name})
        if name in done["schedule"]:
            comments.append(f"Failed to delete job {name} from schedule.")
        else:
            changes[name] = "removed"
            comments.append(f"Deleted job: {name} from schedule.")
    return {"comment": comments, "changes": changes, "result": True}


def save(ctx: Context, **kwargs: object) -> dict[str, object]:
    """Save the jobs of the minion's schedule that are not of pillar, so that they exist after a restart of the minion.
    Return a map with ``result`` and ``comment``.

    CLI Example:

        salt '*' schedule.save
    """
    if is_test(kwargs):
        return {"comment": "Schedule would be saved.", "result": True}
    done = ctx.minion.manage("schedule", {"verb": "save"})
    if done["unsaved"]:
        return {"comment": f"Failed to save schedule. {done['unsaved']}", "result": False}
    return {"comment": "Schedule (non-pillar items) saved.", "result": True}


def reload(ctx: Context) -> dict[str, object]:
    """Compile the minion's pillar again and read the saved schedule again. Return a map with ``result`` and
    ``comment``.

    CLI Example:

        salt '*' schedule.reload
    """
    comments: list[str] = []
    if "schedule" in ctx.pillar:
        ctx.minion.refresh_pillar()
        comments.append("Reloaded schedule from pillar on minion.")
    whole = saved_jobs(ctx)
    if not whole:
        if not schedule_file(ctx).exists():
            return {"comment": comments, "result": True}
        comments.append("Failed to reload schedule on minion.  Saved file is empty or invalid.")
        return {"comment": comments, "result": False}
    ctx.minion.manage("schedule", {"verb": "reload", "schedule": whole})
    comments.append(f"Reloaded schedule on minion from {schedule_file(ctx).name}.")
    return {"comment": comments, "result": True}


def _conflict(given: Mapping[str, object]) -> str:
    if any(key in given for key in INTERVALS) and ("when" in given or "cron" in given):
        return 'Unable to use "seconds", "minutes", "hours", or "days" with "when" or "cron" options.'
    if "when" in given and "cron" in given:
        return 'Unable to use "when" and "cron" options together.  Ignoring.'
    return ""


def _refused(why: str) -> dict[str, object]:
    return {"comment": why, "result": False}
