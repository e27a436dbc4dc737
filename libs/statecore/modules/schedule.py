"""The minion's schedule (Salt's ``schedule`` module): what the running minion does by itself is shown and changed.

Where no minion runs, ``offline=True`` works on the saved schedule. Jobs of pillar can only be changed in pillar.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from statecore.context import Context
from statecore.errors import CommandError
from statecore.scheduling.job import GLOBAL, INTERVALS, TIME_FORMAT, Job
from statecore.scheduling.saved import SavedError, load
from statecore.scheduling.saved import save as save_file

#: ``list`` is a function here.
Comments: TypeAlias = list[str]
_LIST = list

#: Options of a job that are shown; the rest is the scheduler's.
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

#: Options that are taken into a job as they are.
_COPIED = (
    *("range", "when", "once", "once_fmt", "cron", "returner", "after", "return_config", "return_kwargs", "until"),
    *("run_on_start", "skip_during_range", "run_after_skip_range", "dry_run"),
)

#: Keywords that say how to add a job, not which.
_MANNERS = frozenset({"persist", "test", "offline", "name", "function", "job_args", "job_kwargs", "splay", "where"})
_OWN = frozenset({"enabled", "maxrunning", "jid_include", "return_job", "metadata"})


def list(
    ctx: Context,
    show_all: bool = False,
    show_disabled: bool = True,
    where: str | None = None,
    return_yaml: bool = True,
    offline: bool = False,
) -> str | dict[str, Any]:
    """Jobs, as YAML text or (``return_yaml=False``) as a map.

    ``show_all``: the minion's own, whose names begin with ``__``, too. ``where``: ``opts`` or ``pillar`` alone.

    CLI Example:

        salt '*' schedule.list
    """
    whole = _jobs(ctx, show_all=show_all, where=where, offline=offline)
    if not show_disabled:
        whole = {name: job for name, job in whole.items() if name in GLOBAL or job["enabled"]}
    if not return_yaml:
        return whole
    kept = _saved(ctx)
    for name, job in whole.items():
        if isinstance(job, dict):
            job["saved"] = name in kept
    text: str = yaml.safe_dump({"schedule": whole}, default_flow_style=False)
    return text


def is_enabled(ctx: Context, name: str | None = None) -> bool | dict[str, Any]:
    """Whether the scheduler is enabled; with a name, that job ({} when there is none).

    CLI Example:

        salt '*' schedule.is_enabled name=backup
    """
    whole = _jobs(ctx)
    if not name:
        return bool(whole.get("enabled", True))
    job: dict[str, Any] = whole.get(name, {})
    return job


def build_schedule_item(ctx: Context, name: str, **kwargs: Any) -> dict[str, Any]:
    """A job as ``schedule.add`` would add it; ``{"result": False, "comment": why}`` for one that is none.

    CLI Example:

        salt '*' schedule.build_schedule_item job1 function=test.ping seconds=3600
    """
    given = {key: value for key, value in kwargs.items() if not key.startswith("__")}
    if not name:
        return _refused("Job name is required.")
    if fault := _conflict(given):
        return _refused(fault)
    for option, kind in (("job_args", _LIST), ("job_kwargs", dict)):
        if option in given and not isinstance(given[option], kind):
            return _refused(f"{option} is not a {kind.__name__}. please correct and try again.")
    known = {*_COPIED, *_MANNERS, *_OWN, *INTERVALS}
    job: dict[str, Any] = {"function": given.get("function")}
    job |= {key: given[key] for key in (*INTERVALS, "return_job", "metadata") if key in given}
    job |= {key: given[f"job_{key}"] for key in ("args", "kwargs") if f"job_{key}" in given}
    job["maxrunning"] = given.get("maxrunning", 1)
    job["name"] = name
    job["enabled"] = given.get("enabled", True)
    job["jid_include"] = given.get("jid_include", True)
    job |= {key: given[key] for key in ("splay", *_COPIED) if key in given}
    # What is no option at all is for the check to name.
    unknown = {key: value for key, value in given.items() if key not in known}
    try:
        Job.of(name, job | unknown, {}, {}, datetime.now())
    except ValueError as error:
        return _refused(str(error))
    return job


def add(ctx: Context, name: str, **kwargs: Any) -> dict[str, Any]:
    """Adds a job. Options are those of a schedule; arguments of the function are ``job_args`` and ``job_kwargs``.
    ``persist=False`` keeps it until the minion ends; ``offline=True`` adds it to the saved schedule.

    CLI Example:

        salt '*' schedule.add job1 function=test.ping seconds=3600
        salt '*' schedule.add job2 function=cmd.run job_args="['date >> /tmp/date.log']" cron='0 3 * * *'
    """
    answer: dict[str, Any] = {"comment": f"Failed to add job {name} to schedule.", "result": False, "changes": {}}
    if not name:
        return answer | {"comment": "Job name is required."}
    if fault := _conflict(kwargs):
        return answer | {"comment": fault if fault.startswith('Unable to use "when"') else f"Error: {fault}"}
    if name in _jobs(ctx, show_all=True, offline=bool(kwargs.get("offline"))):
        return answer | {"comment": f"Job {name} already exists in schedule."}
    job = build_schedule_item(ctx, name, **kwargs)
    if job.get("result") is False:
        return job
    if _is_test(kwargs):
        return answer | {"comment": f"Job: {name} would be added to schedule.", "result": True}
    done = _change(ctx, kwargs, {"verb": "add", "name": name, "schedule": job})
    answer |= {"result": True, "comment": f"Added job: {name} to schedule.", "changes": {name: "added"}}
    return _told(answer, done)


def modify(ctx: Context, name: str, **kwargs: Any) -> dict[str, Any]:
    """Puts another job in the place of one; the function stays unless another is named. See ``schedule.add``.

    CLI Example:

        salt '*' schedule.modify job1 seconds=60
    """
    answer: dict[str, Any] = {"comment": "", "changes": {}, "result": True}
    if fault := _conflict(kwargs):
        if not fault.startswith('Unable to use "when"'):
            fault = "Error: " + fault.replace(' or "cron" options', " option")
        return answer | {"result": False, "comment": fault}
    whole = _jobs(ctx, show_all=True, offline=bool(kwargs.get("offline")))
    if name not in whole:
        return answer | {"comment": f"Job {name} does not exist in schedule.", "result": False}
    old = whole[name]
    new = build_schedule_item(ctx, name, **{"function": old.get("function"), **kwargs})
    if new.get("result") is False:
        return new
    if new == old:
        return answer | {"comment": f"Job {name} in correct state"}
    answer["changes"] = {name: {"old": old, "new": new}}
    if _is_test(kwargs):
        return answer | {"comment": f"Job: {name} would be modified in schedule."}
    done = _change(ctx, kwargs, {"verb": "modify", "name": name, "schedule": new})
    return _told(answer | {"comment": f"Modified job: {name} in schedule."}, done)


def delete(ctx: Context, name: str, **kwargs: Any) -> dict[str, Any]:
    """Removes a job.

    CLI Example:

        salt '*' schedule.delete job1
    """
    answer: dict[str, Any] = {"comment": f"Failed to delete job {name} from schedule.", "result": False, "changes": {}}
    if not name:
        return answer | {"comment": "Job name is required."}
    if _is_test(kwargs):
        return answer | {"comment": f"Job: {name} would be deleted from schedule.", "result": True}
    if name not in _jobs(ctx, show_all=True, offline=bool(kwargs.get("offline"))):
        return answer | {"comment": f"Job {name} does not exist."}
    done = _change(ctx, kwargs, {"verb": "delete", "name": name})
    if name in done["schedule"]:
        # It is one of pillar's.
        return answer
    answer |= {"result": True, "comment": f"Deleted Job {name} from schedule.", "changes": {name: "removed"}}
    return _told(answer, done)


def purge(ctx: Context, **kwargs: Any) -> dict[str, Any]:
    """Removes all jobs but those of pillar and of the minion itself.

    CLI Example:

        salt '*' schedule.purge
    """
    comments: Comments = []
    changes: dict[str, str] = {}
    for name in _jobs(ctx, offline=bool(kwargs.get("offline"))):
        if name in GLOBAL:
            continue
        if _is_test(kwargs):
            comments.append(f"Job: {name} would be deleted from schedule.")
            continue
        done = _change(ctx, kwargs, {"verb": "delete", "name": name})
        if name in done["schedule"]:
            comments.append(f"Failed to delete job {name} from schedule.")
        else:
            changes[name] = "removed"
            comments.append(f"Deleted job: {name} from schedule.")
    return {"comment": comments, "changes": changes, "result": True}


def run_job(ctx: Context, name: str, force: bool = False) -> dict[str, Any]:
    """Runs a job now; ``force``: even if it is disabled.

    CLI Example:

        salt '*' schedule.run_job job1
    """
    if not name:
        return {"comment": "Job name is required.", "result": False}
    whole = _jobs(ctx, show_all=True)
    if name not in whole:
        return {"comment": f"Job {name} does not exist.", "result": False}
    if not whole[name]["enabled"] and not force:
        return {"comment": f"Job {name} is disabled.", "result": True}
    ctx.minion.manage("schedule", {"verb": "run_job", "name": name})
    return {"comment": f"Scheduling Job {name} on minion.", "result": True}


def enable_job(ctx: Context, name: str, **kwargs: Any) -> dict[str, Any]:
    """Lets a job run again.

    CLI Example:

        salt '*' schedule.enable_job job1
    """
    return _switch_job(ctx, name, kwargs, on=True)


def disable_job(ctx: Context, name: str, **kwargs: Any) -> dict[str, Any]:
    """Keeps a job from running.

    CLI Example:

        salt '*' schedule.disable_job job1
    """
    return _switch_job(ctx, name, kwargs, on=False)


def enable(ctx: Context, **kwargs: Any) -> dict[str, Any]:
    """Lets the jobs of the schedule run again.

    CLI Example:

        salt '*' schedule.enable
    """
    return _switch(ctx, kwargs, on=True)


def disable(ctx: Context, **kwargs: Any) -> dict[str, Any]:
    """Keeps all jobs of the schedule from running.

    CLI Example:

        salt '*' schedule.disable
    """
    return _switch(ctx, kwargs, on=False)


def save(ctx: Context, **kwargs: Any) -> dict[str, Any]:
    """Saves the jobs that are not of pillar, so that they are there after a restart.

    CLI Example:

        salt '*' schedule.save
    """
    if _is_test(kwargs):
        return {"comment": "Schedule would be saved.", "result": True}
    done = ctx.minion.manage("schedule", {"verb": "save"})
    if done["unsaved"]:
        return {"comment": f"Failed to save schedule. {done['unsaved']}", "result": False}
    return {"comment": "Schedule (non-pillar items) saved.", "result": True}


def reload(ctx: Context) -> dict[str, Any]:
    """Reads pillar and the saved schedule anew.

    CLI Example:

        salt '*' schedule.reload
    """
    comments: Comments = []
    if "schedule" in ctx.pillar:
        ctx.minion.refresh_pillar()
        comments.append("Reloaded schedule from pillar on minion.")
    whole = _saved(ctx)
    if not whole:
        if not _file(ctx).exists():
            return {"comment": comments, "result": True}
        comments.append("Failed to reload schedule on minion.  Saved file is empty or invalid.")
        return {"comment": comments, "result": False}
    ctx.minion.manage("schedule", {"verb": "reload", "schedule": whole})
    comments.append(f"Reloaded schedule on minion from {_file(ctx).name}.")
    return {"comment": comments, "result": True}


def postpone_job(ctx: Context, name: str, current_time: str, new_time: str, **kwargs: Any) -> dict[str, Any]:
    """Has the run that is due at one time take place at another. Times are ``%Y-%m-%dT%H:%M:%S``, or ``time_fmt``.

    CLI Example:

        salt '*' schedule.postpone_job job1 2026-01-01T03:00:00 2026-01-01T05:00:00
    """
    words = ("Job current time is required.", "Job new_time is required.")
    return _at_times(ctx, name, kwargs, {"time": current_time, "new_time": new_time}, words, "postpone")


def skip_job(ctx: Context, name: str, current_time: str, **kwargs: Any) -> dict[str, Any]:
    """Leaves the run out that is due at a time. See ``schedule.postpone_job``.

    CLI Example:

        salt '*' schedule.skip_job job1 2026-01-01T03:00:00
    """
    return _at_times(ctx, name, kwargs, {"time": current_time}, ("Job time is required.",), "skip")


def show_next_fire_time(ctx: Context, name: str, **kwargs: Any) -> dict[str, Any]:
    """When a job runs next.

    CLI Example:

        salt '*' schedule.show_next_fire_time job1
    """
    if not name:
        return {"result": False, "comment": "Job name is required."}
    done = ctx.minion.manage("schedule", {"verb": "next_fire_time", "name": name})
    return {"result": True, "next_fire_time": done["next_fire_time"]}


def job_status(ctx: Context, name: str, time_fmt: str = TIME_FORMAT) -> dict[str, Any]:
    """A job with what the scheduler knows of it: ``_next_fire_time``, ``_last_run``, ``_skip_reason``, ``_error``...

    CLI Example:

        salt '*' schedule.job_status job1
    """
    found: dict[str, Any] = ctx.minion.manage("schedule", {"verb": "job_status", "name": name, "time_fmt": time_fmt})[
        "data"
    ]
    return found


# ---------------------------------------------------------------------------------------------------------------- the parts


def _jobs(ctx: Context, *, show_all: bool = False, where: str | None = None, offline: bool = False) -> dict[str, Any]:
    """Jobs as they are shown, and what holds for all of them."""
    if offline:
        whole = _saved(ctx)
    else:
        whole = ctx.minion.manage("schedule", {"verb": "list", "where": where})["schedule"]
    shown: dict[str, Any] = {}
    for name, job in whole.items():
        if name in GLOBAL or not isinstance(job, Mapping):
            if name in GLOBAL:
                shown[name] = job
            continue
        if str(name).startswith("__") and not show_all:
            continue
        options = {key: _switched(value) for key, value in job.items() if key in _SHOWN and value is not None}
        shown[name] = {"enabled": True, **options}
    return shown


def _switched(value: Any) -> Any:
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def _conflict(given: Mapping[str, Any]) -> str:
    if any(key in given for key in INTERVALS) and ("when" in given or "cron" in given):
        return 'Unable to use "seconds", "minutes", "hours", or "days" with "when" or "cron" options.'
    if "when" in given and "cron" in given:
        return 'Unable to use "when" and "cron" options together.  Ignoring.'
    return ""


def _refused(why: str) -> dict[str, Any]:
    return {"comment": why, "result": False}


def _is_test(kwargs: Mapping[str, Any]) -> bool:
    return bool(kwargs.get("test"))


def _change(ctx: Context, kwargs: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """Asks the minion, or changes the saved schedule."""
    if not kwargs.get("offline"):
        return ctx.minion.manage("schedule", {**request, "persist": bool(kwargs.get("persist", True))})
    whole = _saved(ctx)
    if request["verb"] == "delete":
        whole.pop(request["name"], None)
    else:
        whole[request["name"]] = request["schedule"]
    try:
        save_file(_file(ctx), whole)
    except SavedError as error:
        raise CommandError(str(error)) from error
    return {"schedule": whole, "unsaved": ""}


def _told(answer: dict[str, Any], done: Mapping[str, Any]) -> dict[str, Any]:
    """The answer, and that the change ends with the minion where it could not be saved."""
    return (
        answer | {"comment": f"{answer['comment']} It is not saved: {done['unsaved']}"} if done["unsaved"] else answer
    )


def _switch_job(ctx: Context, name: str, kwargs: Mapping[str, Any], *, on: bool) -> dict[str, Any]:
    able = "enable" if on else "disable"
    if not name:
        return {"comment": "Job name is required.", "result": False, "changes": {}}
    if _is_test(kwargs):
        return {"comment": f"Job: {name} would be {able}d in schedule.", "result": True, "changes": {}}
    if name not in _jobs(ctx, show_all=True):
        return {"comment": f"Job {name} does not exist.", "result": False, "changes": {}}
    done = _change(ctx, {**kwargs, "offline": False}, {"verb": f"{able}_job", "name": name})
    if bool(done["schedule"].get(name, {}).get("enabled", True)) is not on:
        # It is one of pillar's.
        return {"comment": f"Failed to {able} job {name} in schedule.", "result": False, "changes": {}}
    comment = f"{able.capitalize()}d Job {name} in schedule."
    return _told({"comment": comment, "result": True, "changes": {name: f"{able}d"}}, done)


def _switch(ctx: Context, kwargs: Mapping[str, Any], *, on: bool) -> dict[str, Any]:
    able = "enable" if on else "disable"
    if _is_test(kwargs):
        return {"comment": f"Schedule would be {able}d.", "result": True, "changes": {}}
    done = _change(ctx, {**kwargs, "offline": False}, {"verb": able})
    answer = {"comment": f"{able.capitalize()}d schedule on minion.", "result": True}
    return _told(answer | {"changes": {"schedule": f"{able}d"}}, done)


def _at_times(
    ctx: Context, name: str, kwargs: Mapping[str, Any], times: Mapping[str, Any], words: tuple[str, ...], able: str
) -> dict[str, Any]:
    form = kwargs.get("time_fmt") or TIME_FORMAT
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
    if _is_test(kwargs):
        return {"comment": f"Job: {name} would be {past} in schedule.", "result": True}
    if name not in _jobs(ctx, show_all=True):
        return {"comment": f"Job {name} does not exist.", "result": False}
    if name not in _jobs(ctx, show_all=True, where="opts"):
        return {"comment": f"Failed to {able} job {name} in schedule.", "result": False}
    ctx.minion.manage("schedule", {"verb": f"{able}_job", "name": name, "time_fmt": form, **times})
    comment = {"skip": f"Added Skip Job {name} in schedule.", "postpone": f"Postponed Job {name} in schedule."}[able]
    return {"comment": comment, "result": True}


def _file(ctx: Context) -> Path:
    file = ctx.opts.get("schedule_file")
    if not file:
        raise CommandError("no file is configured that a schedule could be kept in (schedule_file)")
    return Path(str(file))


def _saved(ctx: Context) -> dict[str, Any]:
    if not ctx.opts.get("schedule_file"):
        return {}
    try:
        return load(_file(ctx))
    except SavedError as error:
        raise CommandError(str(error)) from error
