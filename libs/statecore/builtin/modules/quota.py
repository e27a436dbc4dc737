"""Limits of disk space for users and groups: Salt's ``quota`` execution module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of
from statecore.system.program_runs import output_lines

ALIASES = {"set": "set_"}

_LIMITS = ("block-soft-limit", "block-hard-limit", "file-soft-limit", "file-hard-limit")

_COLUMNS = (
    *("block-used", "block-soft-limit", "block-hard-limit", "block-grace"),
    *("file-used", "file-soft-limit", "file-hard-limit", "file-grace"),
)

#: Argument of ``quota.set`` -> option of the programs, key of the report, word in the result.
_KINDS: Mapping[str, tuple[str, str, str]] = {"user": ("-u", "Users", "User"), "group": ("-g", "Groups", "Group")}


def available(ctx: Context) -> str | None:
    """Return None if the host has setquota; else return the reason as text."""
    return None if ctx.host.which("setquota") else "the host has no setquota: install its package quota"


def report(ctx: Context, mount: str) -> dict[str, Any]:
    """Return the limits and the use of disk space of all users and groups of a file system: a map of the mount point
    to a map of "User Quotas" and "Group Quotas".

    CLI Example:

        salt '*' quota.report /media/data
    """
    return {mount: {"User Quotas": _report(ctx, mount, "user"), "Group Quotas": _report(ctx, mount, "group")}}


def set_(ctx: Context, device: str, **kwargs: Any) -> dict[str, dict[str, object]]:
    """Set limits of disk space and files of a user or a group. Limits that are not given stay as they are. Return a
    map of "User: NAME" or "Group: NAME" to the limits. Raise CommandError if setquota fails.

    device
        the file system's device or mount point
    user, group
        one of the two
    block-soft-limit, block-hard-limit
        kilobytes; the soft limit may be exceeded for the grace time
    file-soft-limit, file-hard-limit
        numbers of files

    CLI Example:

        salt '*' quota.set /media/data user=larry block-soft-limit=1048576
        salt '*' quota.set /media/data group=painters file-hard-limit=1000
    """
    given = [kind for kind in _KINDS if kind in kwargs]
    if len(given) > 1:
        raise InvocationError("Please specify a user or group, not both.")
    if not given:
        raise CommandError("A valid user or group was not found")
    option, key, word = _KINDS[given[0]]
    name = str(kwargs[given[0]])
    now = _report(ctx, device, given[0])[key].get(name, {})
    limits = {limit: kwargs.get(limit, now.get(limit, 0)) for limit in _LIMITS}
    done = ctx.host.run(["setquota", option, name, *(str(each) for each in limits.values()), device])
    if done.retcode:
        raise CommandError(f"Unable to set desired quota. Error follows: \n{done.stderr.rstrip()}")
    return {f"{word}: {name}": limits}


def warn(ctx: Context) -> None:
    """Run warnquota, which sends mail to the users who exceed their limits. Return None.

    CLI Example:

        salt '*' quota.warn
    """
    ctx.host.run([ctx.host.which("warnquota") or "quotawarn"])


def stats(ctx: Context) -> dict[str, str]:
    """Return the kernel's statistics of quotas: a map of the lines of quotastats.

    CLI Example:

        salt '*' quota.stats
    """
    rows = (line.partition(": ") for line in output_lines(ctx.host, ["quotastats"]))
    return {name: value for name, sign, value in rows if sign}


def on(ctx: Context, device: str) -> bool:
    """Let the kernel enforce the quotas of a file system (quotaon). Return True, even if this fails.

    CLI Example:

        salt '*' quota.on
    """
    ctx.host.run(["quotaon", device])
    return True


def off(ctx: Context, device: str) -> bool:
    """Let the kernel enforce the quotas of a file system no more (quotaoff). Return True, even if this fails.

    CLI Example:

        salt '*' quota.off
    """
    ctx.host.run(["quotaoff", device])
    return True


def get_mode(ctx: Context, device: str) -> dict[str, Any]:
    """Return whether quotas of a file system are on: a map of mount point to a map of device, user and group (on or
    off); the value is "disabled" if the file system has no quotas, "Not found" if there is no such file system.

    CLI Example:

        salt '*' quota.get_mode
    """
    return parse_mode("\n".join(output_lines(ctx.host, ["quotaon", "-p", device])), device)


def parse_mode(text: str, device: str) -> dict[str, Any]:
    """Return the output of ``quotaon -p`` as the map of ``quota.get_mode``: mount point to device, user and group
    (on or off).
    """
    found: dict[str, Any] = {}
    for words in (line.split() for line in lines_of(text)):
        if words and words[0].startswith("quotaon"):
            if words[1:2] == ["Mountpoint"] and len(words) > 4:
                found[words[4]] = "disabled"
            elif words[1:2] == ["Cannot"]:
                return {**found, device: "Not found"}
        elif len(words) > 6:
            place = found.setdefault(words[3], {"device": words[4].strip("()")})
            place[words[0]] = words[6]
    return found


def parse_report(text: str, key: str) -> dict[str, Any]:
    """Return the output of repquota as a map of ``key`` (Users or Groups) to a map of name to limits, with the keys
    "Block Grace Time" and "Inode Grace Time".
    """
    rows: dict[str, dict[str, str]] = {}
    found: dict[str, Any] = {key: rows}
    head = True
    for line in lines_of(text):
        words = line.split()
        if head and "Block grace time" in line:
            blocks, _, inodes = line.partition(";")
            found |= {"Block Grace Time": [blocks.split(": ")[-1]], "Inode Grace Time": [inodes.split(": ")[-1]]}
        elif line.startswith("-") and head:
            head = False
        elif not head and len(words) >= len(_COLUMNS) + 2:
            rows[words[0]] = dict(zip(_COLUMNS, words[2:], strict=False))
    return found


def _report(ctx: Context, mount: str, kind: str) -> dict[str, Any]:
    option, key, _ = _KINDS[kind]
    return parse_report("\n".join(output_lines(ctx.host, ["repquota", "-vp", option, mount])), key)
