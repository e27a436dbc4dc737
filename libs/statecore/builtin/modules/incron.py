"""Commands that run when files change (incron): Salt's ``incron`` execution module.

Each user has a table of jobs. The user ``system`` means the file /etc/incron.d/salt.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of
from statecore.system.program_runs import RunResult, run_all

ALIASES = {"ls": "list_tab", "list_tab": "list_tab", "rm": "rm_job", "rm_job": "rm_job"}

_SYSTEM = "/etc/incron.d/salt"

_MASKS = (
    *("IN_ACCESS", "IN_ATTRIB", "IN_CLOSE_WRITE", "IN_CLOSE_NOWRITE", "IN_CREATE", "IN_DELETE", "IN_DELETE_SELF"),
    *("IN_MODIFY", "IN_MOVE_SELF", "IN_MOVED_FROM", "IN_MOVED_TO", "IN_OPEN", "IN_ALL_EVENTS", "IN_MOVE", "IN_CLOSE"),
    *("IN_DONT_FOLLOW", "IN_ONESHOT", "IN_ONLYDIR", "IN_NO_LOOP"),
)


def raw_system_incron(ctx: Context) -> str:
    """Return the text of the system's incron table, /etc/incron.d/salt; "" if there is no such file.

    CLI Example:

        salt '*' incron.raw_system_incron
    """
    return (managed_file.read(ctx.host.path(_SYSTEM), _SYSTEM) or b"").decode("utf-8", "surrogateescape")


def raw_incron(ctx: Context, user: str) -> str:
    """Return the text of a user's incron table, "" if there is none.

    CLI Example:

        salt '*' incron.raw_incron root
    """
    return ctx.host.run(["incrontab", "-l", user], runas=user).stdout


def list_tab(ctx: Context, user: str) -> dict[str, list[Any]]:
    """Return the incron table of a user: a map of ``crons`` (a list of maps of path, mask and cmd) and ``pre`` (a
    list of all other lines).

    CLI Example:

        salt '*' incron.list_tab root
    """
    return parse(raw_system_incron(ctx) if user == "system" else raw_incron(ctx, user))


def write_incron_file(ctx: Context, user: str, path: str) -> bool:
    """Install a file of the host as the incron table of a user. Return whether this succeeded.

    CLI Example:

        salt '*' incron.write_incron_file root /tmp/new_incron
    """
    return ctx.host.run(["incrontab", path], runas=user).retcode == 0


def write_incron_file_verbose(ctx: Context, user: str, path: str) -> RunResult:
    """Install a file of the host as the incron table of a user. Return a map with pid, retcode, stdout and stderr of
    incrontab.

    CLI Example:

        salt '*' incron.write_incron_file_verbose root /tmp/new_incron
    """
    return run_all(ctx.host, ["incrontab", path], runas=user)


def set_job(ctx: Context, user: str, path: str, mask: str, cmd: str) -> str:
    """Add a job to the incron table of a user, or change its mask. Return "new", "updated" or "present", or the
    error as text.

    path
        the file or directory that is watched
    mask
        the events, with commas
    cmd
        the command

    CLI Example:

        salt '*' incron.set_job root '/root' 'IN_MODIFY' 'echo "$$ $@ $# $% $&"'
    """
    wanted = str(mask).upper()
    if wrong := [each for each in wanted.split(",") if each not in _MASKS]:
        return f"Invalid mask type: {wrong[0]}"
    table = list_tab(ctx, user)
    kept, updated = [], False
    for job in table["crons"]:
        alike = (job["path"], job["cmd"]) == (path, cmd)
        events = set(job["mask"].split(","))
        if alike and events == set(wanted.split(",")):
            return "present"
        if alike and events & set(wanted.split(",")):
            updated = True
        else:
            kept.append(job)
    error = _write(ctx, user, table["pre"], [*kept, {"path": path, "mask": wanted, "cmd": cmd}])
    return error or ("updated" if updated else "new")


def rm_job(ctx: Context, user: str, path: str, mask: str, cmd: str) -> str:
    """Remove a job from the incron table of a user. Return "removed" or "absent", or the error as text.

    CLI Example:

        salt '*' incron.rm_job root /path
    """
    wanted = str(mask).upper()
    if wrong := [each for each in wanted.split(",") if each not in _MASKS]:
        return f"Invalid mask type: {wrong[0]}"
    table = list_tab(ctx, user)
    job = {"path": path, "mask": wanted, "cmd": cmd}
    if job not in table["crons"]:
        return "absent"
    table["crons"].remove(job)
    return _write(ctx, user, table["pre"], table["crons"]) or "removed"


def parse(text: str) -> dict[str, list[Any]]:
    """Return the text of an incron table as the map of ``incron.list_tab``. A line is a job if it has a path, a
    known mask, and a command.
    """
    found: dict[str, list[Any]] = {"crons": [], "pre": []}
    for line in lines_of(text):
        words = line.split()
        if len(words) > 2 and words[1].split(",")[0] in _MASKS:
            found["crons"].append({"path": words[0], "mask": words[1], "cmd": " ".join(words[2:])})
        else:
            found["pre"].append(line)
    return found


def _write(ctx: Context, user: str, pre: Sequence[str], jobs: Sequence[Mapping[str, str]]) -> str:
    """Write the incron table of a user from other lines (``pre``) and jobs. Return "", or the error of incrontab.
    Raise CommandError if the host has no /etc/incron.d.
    """
    lines = [*pre, *(f"{job['path']} {job['mask']} {job['cmd']}" for job in jobs)]
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    if user == "system":
        path = ctx.host.path(_SYSTEM)
        if not path.parent.is_dir():
            raise CommandError(f"salt cannot be written. {path.parent} does not exist")
        managed_file.replace(ctx.host, path, data, Attributes())
        return ""
    name = f"/tmp/.saltern-incron-{os.urandom(8).hex()}"
    path = ctx.host.path(name, follow=False)
    managed_file.replace(ctx.host, path, data, Attributes(user=user, mode=0o600))
    try:
        done = ctx.host.run(["incrontab", name], runas=user)
    finally:
        path.unlink(missing_ok=True)
    return done.stderr.rstrip("\n") or f"incrontab failed with exit code {done.retcode}" if done.retcode else ""
