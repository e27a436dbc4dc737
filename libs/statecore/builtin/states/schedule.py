"""Salt's ``schedule`` states: jobs of the minion's schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step

#: Arguments of ``schedule.present`` that are no keys of the job.
_NOT_OF_THE_JOB = frozenset({"ctx", "name", "persist", "offline"})


def present(
    ctx: Context,
    name: str,
    function: str | None = None,
    seconds: object = None,
    minutes: object = None,
    hours: object = None,
    days: object = None,
    when: object = None,
    cron: object = None,
    once: object = None,
    once_fmt: str | None = None,
    run_on_start: bool | None = None,
    job_args: object = None,
    job_kwargs: object = None,
    maxrunning: object = None,
    jid_include: bool | None = None,
    splay: object = None,
    range: object = None,
    enabled: bool | None = None,
    return_job: object = None,
    metadata: object = None,
    returner: object = None,
    return_config: object = None,
    return_kwargs: object = None,
    after: object = None,
    until: object = None,
    skip_during_range: object = None,
    run_after_skip_range: bool | None = None,
    dry_run: bool | None = None,
    persist: bool = True,
    offline: bool = False,
) -> Plan:
    """Add a job to the minion's schedule, or change it.

    function, job_args, job_kwargs
        execution function with its arguments
    seconds, minutes, hours, days
        interval between two runs; the values are added
    when
        date or time of day (``5:00pm``, ``Monday 3:00pm``), or list of them
    cron
        time in crontab format
    once, once_fmt
        time of a single run, and its format (default ``%Y-%m-%dT%H:%M:%S``)
    run_on_start
        True: run also when the minion starts; default for intervals
    maxrunning
        maximum number of runs at the same time; default 1
    splay
        maximum random delay of each run in seconds, or a map with ``start`` and ``end``
    range, skip_during_range
        map with ``start`` and ``end``: run only, or never, in this period
    run_after_skip_range
        True: run a skipped job after ``skip_during_range``
    after, until
        date before which, or after which, the job does not run
    enabled, dry_run
        ``enabled: False`` or ``dry_run: True``: the job is in the schedule, but does not run
    return_job
        False: send no return to the master. ``nocache``: the master does not store it.
    returner, return_config, return_kwargs
        returners that also get the return, and their options
    persist
        False: the job is not saved and is lost when the minion stops
    offline
        True: change the saved schedule of a minion that is not running
    """
    arguments = dict(locals())
    given = {key: value for key, value in arguments.items() if key not in _NOT_OF_THE_JOB and value is not None}
    manners = {"persist": persist, "offline": offline}
    jobs = _jobs(ctx, offline)
    verb = "modify" if name in jobs else "add"
    if verb == "modify":
        item = ctx.call("schedule.build_schedule_item", name, **{"function": jobs[name].get("function"), **given})
        if item.get("result") is False:
            return Plan.failed(item["comment"])
    predicted = ctx.call(f"schedule.{verb}", name, test=True, **given, **manners)
    if not predicted["result"]:
        return Plan.failed(predicted["comment"])
    if verb == "modify" and not predicted["changes"]:
        return Plan.unchanged(predicted["comment"])
    word = "Modifying job {} in schedule" if verb == "modify" else "Adding new job {} to schedule"

    def work() -> Outcome:
        return _outcome(ctx.call(f"schedule.{verb}", name, **given, **manners), word.format(name))

    step = Step(f"{verb} the job {name} of the schedule", work)
    return Plan.change(predicted["comment"], [step], predicted["changes"] or {name: "added"})


def absent(ctx: Context, name: str, persist: bool = True, offline: bool = False) -> Plan:
    """Remove a job from the minion's schedule. ``persist: False``: the job exists again after a restart of the minion."""
    if name not in _jobs(ctx, offline):
        return Plan.unchanged(f"Job {name} not present in schedule")

    def work() -> Outcome:
        done = ctx.call("schedule.delete", name, persist=persist, offline=offline)
        return _outcome(done, f"Removed job {name} from schedule")

    step = Step(f"remove the job {name} from the schedule", work)
    return Plan.change(f"Job: {name} would be deleted from schedule.", [step], {name: "removed"})


def enabled(ctx: Context, name: str, persist: bool = True) -> Plan:
    """Enable a job of the minion's schedule. Nothing happens if it has no such job.

    ``persist: False``: only until the minion restarts.
    """
    return _switched(ctx, name, persist, on=True)


def disabled(ctx: Context, name: str, persist: bool = True, offline: bool = False) -> Plan:
    """Disable a job of the minion's schedule. Nothing happens if it has no such job.

    ``persist: False``: only until the minion restarts.
    """
    if offline:
        return Plan.failed("not supported: offline; use schedule.present with enabled: False and offline: True")
    return _switched(ctx, name, persist, on=False)


def _switched(ctx: Context, name: str, persist: bool, *, on: bool) -> Plan:
    able = "enable" if on else "disable"
    job = _jobs(ctx, offline=False).get(name)
    if not isinstance(job, Mapping):
        return Plan.unchanged(f"Job {name} not present in schedule")
    comment = f"{able.capitalize()}d job {name} from schedule"
    if bool(job["enabled"]) is on:
        return Plan.unchanged(comment)

    def work() -> Outcome:
        return _outcome(ctx.call(f"schedule.{able}_job", name, persist=persist), comment)

    would = f"Job: {name} would be {able}d in schedule."
    return Plan.change(would, [Step(f"{able} the job {name} of the schedule", work)], {name: f"{able}d"})


def _jobs(ctx: Context, offline: bool) -> Mapping[str, Mapping[str, object]]:
    jobs: Mapping[str, Mapping[str, object]] = ctx.call(
        "schedule.list", show_all=True, return_yaml=False, offline=offline
    )
    return jobs


def _outcome(done: Mapping[str, Any], comment: str) -> Outcome:
    if not done["result"]:
        return Outcome(str(done["comment"]), ok=False)
    # Report a job that was changed but could not be saved.
    unsaved = str(done["comment"]).partition(" It is not saved: ")[2]
    return Outcome(f"{comment}. It is not saved: {unsaved}" if unsaved else comment, done["changes"])
