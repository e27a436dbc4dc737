"""Groups of the managed host: Salt's ``group`` execution module. The host's own programs change them."""

from __future__ import annotations

import grp
from collections.abc import Sequence
from typing import TypedDict

from statecore.model.context import Context
from statecore.model.errors import CallFailed, CommandError, InvocationError
from statecore.model.text_lines import lines_of, text_of

_FILE = "/etc/group"


class GroupInfo(TypedDict, total=False):
    """Map of a group's entry in /etc/group: name, passwd, gid and members; {} for a group that does not exist."""

    name: str
    passwd: str
    gid: int
    members: list[str]


def available(ctx: Context) -> str | None:
    """Return None if the host has the programs groupadd, groupmod and groupdel; else return the reason as text."""
    missing = [program for program in ("groupadd", "groupmod", "groupdel") if ctx.host.which(program) is None]
    return f"the host has no {', '.join(missing)}" if missing else None


def info(ctx: Context, name: str) -> GroupInfo:
    """Return a map with name, passwd, gid and members of a group, {} if it does not exist.

    CLI Example:

        salt '*' group.info www-data
    """
    return next((group for group in getent(ctx) if group["name"] == str(name)), GroupInfo())


def getent(ctx: Context, refresh: bool = False) -> list[GroupInfo]:
    """Return a list with the map of ``group.info`` (name, passwd, gid, members) for each group of the host."""
    if not ctx.host.mounted:
        rows: list[tuple[str, str, int, list[str]]] = [
            (each.gr_name, each.gr_passwd or "", each.gr_gid, list(each.gr_mem)) for each in grp.getgrall()
        ]
    else:
        rows = _rows(ctx)
    return [{"name": name, "passwd": passwd, "gid": gid, "members": members} for name, passwd, gid, members in rows]


def add(
    ctx: Context, name: str, gid: object = None, system: bool = False, non_unique: bool = False, local: bool = False
) -> bool:
    """Create a group on the host. Return True. Raise CommandError with groupadd's error.

    gid
        number of the group; default: the next free one
    system
        True: create a system group
    non_unique
        True: allow a number that another group has

    CLI Example:

        salt '*' group.add app 3456
    """
    _not_local(local)
    words = ["-g", str(gid)] if gid not in (None, "") else []
    words += ["-o"] if words and non_unique else []
    words += ["-r"] if system else []
    return _do(ctx, ["groupadd", *words, str(name)])


def delete(ctx: Context, name: str, local: bool = False) -> bool:
    """Delete a group of the host. Return True. Raise CommandError with groupdel's error."""
    _not_local(local)
    return _do(ctx, ["groupdel", str(name)])


def chgid(ctx: Context, name: str, gid: int | str, non_unique: bool = False) -> bool:
    """Change the number of a group. Files of the group keep the old number. Return whether the group has the new
    number; False if the group does not exist. Raise CallFailed for text that is no number.
    """
    if not str(gid).isdecimal():
        raise CallFailed(f"{gid!r} is no number of a group")
    group = info(ctx, name)
    if not group:
        return False
    if group["gid"] != int(gid):
        _do(ctx, ["groupmod", *(["-o"] if non_unique else []), "-g", str(gid), str(name)])
    return bool(info(ctx, name).get("gid") == int(gid))


def adduser(ctx: Context, name: str, username: str) -> bool:
    """Add a user to a group of the host. Return True. Raise CommandError if this fails."""
    return _do(ctx, ["gpasswd", "--add", str(username), str(name)])


def deluser(ctx: Context, name: str, username: str) -> bool:
    """Remove a user from a group of the host. Return True. Raise CommandError if this fails."""
    if username not in info(ctx, name).get("members", ()):
        return True
    return _do(ctx, ["gpasswd", "--delete", str(username), str(name)])


def members(ctx: Context, name: str, members_list: str | Sequence[str]) -> bool:
    """Replace all members of a group by the users ``members_list`` (a list, or text with commas). Return True. Raise
    CommandError if this fails.
    """
    listed = members_list if isinstance(members_list, str) else ",".join(map(str, members_list))
    return _do(ctx, ["gpasswd", "--members", listed, str(name)])


def _rows(ctx: Context) -> list[tuple[str, str, int, list[str]]]:
    try:
        text = text_of(ctx.host.path(_FILE))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CommandError(f"{_FILE} cannot be read: {error.strerror}") from error
    rows = (line.split(":") for line in lines_of(text))
    return [
        (row[0], row[1], int(row[2]), [member for member in row[3].split(",") if member])
        for row in rows
        if len(row) > 3 and row[2].isdecimal()
    ]


def _do(ctx: Context, words: Sequence[str]) -> bool:
    result = ctx.host.run(words, env={"LC_ALL": "C"})
    if result.retcode:
        raise CallFailed(result.stderr.strip() or f"{words[0]} failed with return code {result.retcode}")
    return True


def _not_local(local: bool) -> None:
    if local:
        raise InvocationError("not supported: local; it needs the programs of libuser")
