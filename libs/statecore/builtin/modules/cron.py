"""Cron tables of the managed host's users: Salt's ``cron`` execution module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from statecore.host.content import managed_file
from statecore.model.context import Context
from statecore.system.hostfiles import cron_spool, cron_table


def available(ctx: Context) -> str | None:
    """Return None if the host can store cron tables; else return the reason as text."""
    return cron_spool.missing(ctx.host)


def raw_cron(ctx: Context, user: str) -> str:
    """Return the text of a user's cron table, "" if the user has none.

    CLI Example:

        salt '*' cron.raw_cron root
    """
    return cron_spool.read(ctx.host, user)


def list_tab(ctx: Context, user: str) -> dict[str, list[Any]]:
    """Return a user's cron table as a map of lists: ``pre`` (lines before the first job), ``env`` (variables),
    ``crons`` (jobs), ``special`` (jobs with times such as @hourly).

    CLI Example:

        salt '*' cron.list_tab root
    """
    return cron_table.parse(raw_cron(ctx, user))


ls = list_tab


def get_entry(ctx: Context, user: str, identifier: str | None = None, cmd: str | None = None) -> object:
    """Return the job of a user's cron table that has this identifier; without an identifier, the job with this
    command. The job is a map, as in ``cron.list_tab``. Return False if there is no such job.
    """
    table = list_tab(ctx, user)
    key, wanted = ("identifier", identifier) if identifier else ("cmd", cmd)
    entries = (*table["crons"], *table["special"])
    return next((entry for entry in entries if wanted and entry[key] == wanted), False)


def write_cron_file(ctx: Context, user: str, path: str) -> bool:
    """Install a file of the host as a user's cron table. Return whether it was installed."""
    return bool(write_cron_file_verbose(ctx, user, path)["retcode"] == 0)


def write_cron_file_verbose(ctx: Context, user: str, path: str) -> dict[str, object]:
    """Install a file of the host as a user's cron table. Return a map with pid, retcode, stdout and stderr."""
    data = managed_file.read(ctx.host.path(path), path)
    if data is None:
        return {"pid": 0, "retcode": 1, "stdout": "", "stderr": f"{path}: No such file"}
    error = cron_spool.install(ctx.host, user, data.decode("utf-8", "surrogateescape"))
    return {"pid": 0, "retcode": 1 if error else 0, "stdout": "", "stderr": error}


def set_job(
    ctx: Context,
    user: str,
    minute: object,
    hour: object,
    daymonth: object,
    month: object,
    dayweek: object,
    cmd: str,
    commented: bool = False,
    comment: str | None = None,
    identifier: object = None,
) -> str:
    """Add a job to a user's cron table, or update it. Return "new", "updated", "present", or the error of crontab.

    CLI Example:

        salt '*' cron.set_job root '*' '*' '*' '*' 1 /usr/local/weekly
    """
    columns = (minute, hour, daymonth, month, dayweek)
    when = {key: str(value).lower() for key, value in zip(cron_table.TIMES, columns, strict=True)}
    return _put(ctx, user, when, cmd, commented, comment, identifier)


def set_special(
    ctx: Context,
    user: str,
    special: str,
    cmd: str,
    commented: bool = False,
    comment: str | None = None,
    identifier: object = None,
) -> str:
    """Add a job with a special time such as ``@hourly`` to a user's cron table, or update it. Return "new", "updated",
    "present", or the error of crontab.
    """
    return _put(ctx, user, {"spec": special}, cmd, commented, comment, identifier)


def rm_job(
    ctx: Context,
    user: str,
    cmd: str,
    minute: object = None,
    hour: object = None,
    daymonth: object = None,
    month: object = None,
    dayweek: object = None,
    identifier: object = None,
) -> str:
    """Remove a job from a user's cron table if it has the given times; a time that is None matches any. Return
    "removed", "absent", or the error of crontab.
    """
    when = dict(zip(cron_table.TIMES, (minute, hour, daymonth, month, dayweek), strict=True))
    return _change(ctx, user, lambda table: cron_table.take(table["crons"], cmd, identifier, when))


rm = rm_job


def rm_special(ctx: Context, user: str, cmd: str, special: str | None = None, identifier: object = None) -> str:
    """Remove a job with a special time such as ``@hourly`` from a user's cron table. Return "removed", "absent", or the
    error of crontab.
    """
    when = {"spec": special}
    return _change(ctx, user, lambda table: cron_table.take(table["special"], cmd, identifier, when))


def set_env(ctx: Context, user: str, name: str, value: object = None) -> str:
    """Set an environment variable in a user's cron table. Return "new", "updated", "present", or the error of
    crontab.
    """
    wanted = cron_table.env_value(value)

    def change(table: Mapping[str, list[Any]]) -> str:
        there = [each for each in table["env"] if each["name"] == name]
        if there and there[0]["value"] == wanted:
            return "present"
        table["env"][:] = [each for each in table["env"] if each["name"] != name]
        table["env"].append({"name": name, "value": wanted})
        return "updated" if there else "new"

    return _change(ctx, user, change)


def rm_env(ctx: Context, user: str, name: str) -> str:
    """Remove an environment variable from a user's cron table. Return "removed", "absent", or the error of crontab."""

    def change(table: Mapping[str, list[Any]]) -> str:
        there = [each for each in table["env"] if each["name"] == name]
        if there:
            table["env"].remove(there[-1])
        return "removed" if there else "absent"

    return _change(ctx, user, change)


def _put(
    ctx: Context,
    user: str,
    when: Mapping[str, object],
    cmd: str,
    commented: bool,
    comment: str | None,
    identifier: object,
) -> str:
    about = {"cmd": cmd, "identifier": identifier, "comment": comment, "commented": commented}
    return _change(ctx, user, lambda table: cron_table.put(table, {**when, **about}))


def _change(ctx: Context, user: str, change: Callable[[Mapping[str, list[Any]]], str]) -> str:
    """Call ``change`` with a user's parsed cron table, which it modifies, and install the result. ``change`` returns
    "present" or "absent" if nothing has to be installed. Return its word, or the error of crontab.
    """
    table = list_tab(ctx, user)
    done = change(table)
    return (
        done if done in ("present", "absent") else cron_spool.install(ctx.host, user, cron_table.render(table)) or done
    )
