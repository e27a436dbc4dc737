"""Cron tables of the managed host's users (Salt's ``cron`` module)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from statecore.host.content import managed_file
from statecore.model.context import Context
from statecore.system.hostfiles import cron_spool, cron_table


def available(ctx: Context) -> str | None:
    """None where the host has cron tables."""
    return cron_spool.missing(ctx.host)


def raw_cron(ctx: Context, user: str) -> str:
    """The text of a user's table, "" when there is none.

    CLI Example:

        salt '*' cron.raw_cron root
    """
    return cron_spool.read(ctx.host, user)


def list_tab(ctx: Context, user: str) -> dict[str, list[Any]]:
    """``pre``, ``env``, ``crons`` and ``special`` of a user's table.

    CLI Example:

        salt '*' cron.list_tab root
    """
    return cron_table.parse(raw_cron(ctx, user))


ls = list_tab


def get_entry(ctx: Context, user: str, identifier: str | None = None, cmd: str | None = None) -> Any:
    """The entry of an identifier, else of a command; False when there is none."""
    table = list_tab(ctx, user)
    key, wanted = ("identifier", identifier) if identifier else ("cmd", cmd)
    entries = (*table["crons"], *table["special"])
    return next((entry for entry in entries if wanted and entry[key] == wanted), False)


def write_cron_file(ctx: Context, user: str, path: str) -> bool:
    """Makes a file of the host a user's table."""
    return bool(write_cron_file_verbose(ctx, user, path)["retcode"] == 0)


def write_cron_file_verbose(ctx: Context, user: str, path: str) -> dict[str, Any]:
    """The same; ``retcode``, ``stdout`` and ``stderr`` of what was done."""
    data = managed_file.read(ctx.host.path(path), path)
    if data is None:
        return {"pid": 0, "retcode": 1, "stdout": "", "stderr": f"{path}: No such file"}
    error = cron_spool.install(ctx.host, user, data.decode("utf-8", "surrogateescape"))
    return {"pid": 0, "retcode": 1 if error else 0, "stdout": "", "stderr": error}


def set_job(
    ctx: Context,
    user: str,
    minute: Any,
    hour: Any,
    daymonth: Any,
    month: Any,
    dayweek: Any,
    cmd: str,
    commented: bool = False,
    comment: str | None = None,
    identifier: Any = None,
) -> str:
    """Puts a job into a user's table: "new", "updated", "present", or what crontab complained of.

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
    identifier: Any = None,
) -> str:
    """The same with a time such as ``@hourly``."""
    return _put(ctx, user, {"spec": special}, cmd, commented, comment, identifier)


def rm_job(
    ctx: Context,
    user: str,
    cmd: str,
    minute: Any = None,
    hour: Any = None,
    daymonth: Any = None,
    month: Any = None,
    dayweek: Any = None,
    identifier: Any = None,
) -> str:
    """Removes a job, if it is due at these times: "removed", "absent", or what crontab complained of."""
    when = dict(zip(cron_table.TIMES, (minute, hour, daymonth, month, dayweek), strict=True))
    return _change(ctx, user, lambda table: cron_table.take(table["crons"], cmd, identifier, when))


rm = rm_job


def rm_special(ctx: Context, user: str, cmd: str, special: str | None = None, identifier: Any = None) -> str:
    """The same for a job with a time such as ``@hourly``."""
    when = {"spec": special}
    return _change(ctx, user, lambda table: cron_table.take(table["special"], cmd, identifier, when))


def set_env(ctx: Context, user: str, name: str, value: Any = None) -> str:
    """Sets a variable in a user's table: "new", "updated", "present", or what crontab complained of."""
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
    """Removes a variable from a user's table."""

    def change(table: Mapping[str, list[Any]]) -> str:
        there = [each for each in table["env"] if each["name"] == name]
        if there:
            table["env"].remove(there[-1])
        return "removed" if there else "absent"

    return _change(ctx, user, change)


def _put(
    ctx: Context, user: str, when: Mapping[str, Any], cmd: str, commented: bool, comment: str | None, identifier: Any
) -> str:
    about = {"cmd": cmd, "identifier": identifier, "comment": comment, "commented": commented}
    return _change(ctx, user, lambda table: cron_table.put(table, {**when, **about}))


def _change(ctx: Context, user: str, change: Callable[[Mapping[str, list[Any]]], str]) -> str:
    """Changes the parsed table and installs it, unless nothing was to be done."""
    table = list_tab(ctx, user)
    done = change(table)
    return (
        done if done in ("present", "absent") else cron_spool.install(ctx.host, user, cron_table.render(table)) or done
    )
