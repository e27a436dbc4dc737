"""Users of the managed host, read from /etc/passwd and changed by the host's own programs: Salt's ``user`` execution
module.
"""

from __future__ import annotations

import pwd
from collections.abc import Iterable, Sequence
from typing import Any

from statecore.builtin.modules.group import GroupInfo
from statecore.model.context import Context
from statecore.model.errors import CallFailed, CommandError, InvocationError
from statecore.model.text_lines import lines_of, text_of

_FILE = "/etc/passwd"

#: Parts of the comment field (GECOS), in order.
_GECOS = ("fullname", "roomnumber", "workphone", "homephone", "other")

#: Exit code of userdel: the user was removed, but its mail spool was not found.
_NO_MAIL = 12


def available(ctx: Context) -> str | None:
    """Return None if the host has the programs that change users; else return the reason as text."""
    missing = [program for program in ("useradd", "usermod", "userdel") if ctx.host.which(program) is None]
    return f"the host has no {', '.join(missing)}" if missing else None


# --------------------------------------------------------------------------------------------- queries


def info(ctx: Context, name: str) -> dict[str, Any]:
    """Return a map with uid, gid, groups, home, shell, passwd and the parts of a user's comment; {} for an unknown
    user.

    CLI Example:

        salt '*' user.info www-data
    """
    row = next((row for row in _rows(ctx) if row[0] == str(name)), None)
    return _shown(row, ctx.call("group.getent")) if row else {}


def getent(ctx: Context, refresh: bool = False) -> list[dict[str, object]]:
    """Return a list with one map for each user of the host: name, uid, gid, groups, home, shell and the other keys of
    ``user.info``.
    """
    groups = ctx.call("group.getent")
    return [_shown(row, groups) for row in _rows(ctx)]


def list_users(ctx: Context) -> list[str]:
    """Return the names of all users of the host, sorted."""
    return sorted(row[0] for row in _rows(ctx))


def list_groups(ctx: Context, name: str) -> list[str]:
    """Return the names of the groups of a user, including the primary one, sorted; [] for an unknown user."""
    return list(info(ctx, name).get("groups", ()))


def primary_group(ctx: Context, name: str) -> str:
    """Return the name of the primary group of a user. Raise CommandError for an unknown user."""
    return ctx.host.group_name(_existing(ctx, name)["gid"])


# --------------------------------------------------------------------------------------------- changes


def add(
    ctx: Context,
    name: str,
    uid: object = None,
    gid: object = None,
    groups: str | Iterable[object] | None = None,
    home: str | None = None,
    shell: str | None = None,
    unique: bool = True,
    system: bool = False,
    fullname: str = "",
    roomnumber: str = "",
    workphone: str = "",
    homephone: str = "",
    other: str = "",
    createhome: bool = True,
    loginclass: str | None = None,
    nologinit: bool = False,
    usergroup: bool | None = None,
    local: bool = False,
) -> bool:
    """Create a user on the host. Return True. Raise CommandError with the program's message.

    CLI Example:

        salt '*' user.add app uid=3456 shell=/bin/bash
    """
    _not_local(local)
    words = ["-s", shell] if shell else []
    words += ["-u", str(uid)] if uid not in (None, "") else []
    if gid not in (None, ""):
        words += ["-g", str(gid)]
    elif usergroup:
        words += ["-U"]
    elif name in _listed(groups) and _user_groups(ctx):
        # useradd would fail to create the user's own group, because it exists.
        words += ["-g", str(ctx.host.gid(name))]
    words += ["-N"] if usergroup is False else []
    words += ["-m" if createhome else "-M"]
    words += ["-l"] if nologinit else []
    words += ["-d", home] if home is not None else []
    words += [] if unique else ["-o"]
    words += ["-r"] if system else []
    _do(ctx, ["useradd", *words, str(name)])
    if groups:
        chgroups(ctx, name, groups)
    comment = dict(zip(_GECOS, (fullname, roomnumber, workphone, homephone, other), strict=True))
    if any(comment.values()):
        _change_comment(ctx, name, **{part: str(value or "") for part, value in comment.items()})
    return True


def delete(ctx: Context, name: str, remove: bool = False, force: bool = False, local: bool = False) -> bool:
    """Remove a user of the host, with ``remove`` also its home. Return True. Raise CommandError with the program's
    message.
    """
    _not_local(local)
    words = ["userdel", *(["-r"] if remove else []), *(["-f"] if force else []), str(name)]
    result = ctx.host.run(words, env={"LC_ALL": "C"})
    if result.retcode == _NO_MAIL and "var/mail" in result.stderr + result.stdout.replace("var/spool/mail", "var/mail"):
        return True
    if result.retcode:
        raise CallFailed(result.stderr.strip() or f"userdel failed with return code {result.retcode}")
    return True


def chuid(ctx: Context, name: str, uid: int | str) -> bool:
    """Change the uid of a user. Files outside its home keep the old uid. Return whether the user has the new uid. Raise
    CommandError for an unknown user.
    """
    if not str(uid).isdecimal():
        raise InvocationError(f"uid is a number, not {uid!r}")
    return _attribute(ctx, name, "uid", int(uid), "-u")


def chgid(ctx: Context, name: str, gid: int | str) -> bool:
    """Change the primary group of a user, given by number or name. Return whether the user has the new group. Raise
    CommandError for an unknown user.
    """
    return _attribute(ctx, name, "gid", ctx.host.gid(gid), "-g")


def chshell(ctx: Context, name: str, shell: str) -> bool:
    """Change the login shell of a user. Return whether the user has the new shell. Raise CommandError for an unknown
    user.
    """
    return _attribute(ctx, name, "shell", shell, "-s")


def chhome(ctx: Context, name: str, home: str, persist: bool = False) -> bool:
    """Change the home of a user; with ``persist`` also move its content. Return whether the user has the new home.
    Raise CommandError for an unknown user.
    """
    return _attribute(ctx, name, "home", home, "-d", *(["-m"] if persist else []))


def chgroups(ctx: Context, name: str, groups: str | Iterable[object] | None, append: bool = False) -> bool:
    """Make a user a member of the groups ``groups``; without ``append`` also remove it from all others. Return True.
    Raise CommandError with usermod's message.
    """
    wanted = _listed(groups)
    now = set(list_groups(ctx, name))
    if now == set(wanted) or (append and now >= set(wanted)):
        return True
    return _do(ctx, ["usermod", *(["-a"] if append else []), "-G", ",".join(wanted), str(name)])


def chfullname(ctx: Context, name: str, fullname: str) -> bool:
    """Change the full name of a user. Return whether the user has the new name. Raise CommandError for an unknown user."""
    return _change_comment(ctx, name, fullname=fullname)


def chroomnumber(ctx: Context, name: str, roomnumber: str) -> bool:
    """Change the room number of a user. Return whether the user has the new number. Raise CommandError for an unknown
    user.
    """
    return _change_comment(ctx, name, roomnumber=roomnumber)


def chworkphone(ctx: Context, name: str, workphone: str) -> bool:
    """Change the phone number at work of a user. Return whether the user has the new number. Raise CommandError for an
    unknown user.
    """
    return _change_comment(ctx, name, workphone=workphone)


def chhomephone(ctx: Context, name: str, homephone: str) -> bool:
    """Change the phone number at home of a user. Return whether the user has the new number. Raise CommandError for an
    unknown user.
    """
    return _change_comment(ctx, name, homephone=homephone)


def chother(ctx: Context, name: str, other: str) -> bool:
    """Change the last part of the comment of a user. Return whether the user has the new text. Raise CommandError for
    an unknown user.
    """
    return _change_comment(ctx, name, other=other)


def rename(ctx: Context, name: str, new_name: str) -> bool:
    """Rename a user of the host. Return True. Raise CommandError if the user does not exist or another user has the new
    name.
    """
    _existing(ctx, name)
    if info(ctx, new_name):
        raise CommandError(f"User '{new_name}' already exists")
    return _do(ctx, ["usermod", "-l", str(new_name), str(name)])


# ----------------------------------------------------------------------------------------------- helpers


def _rows(ctx: Context) -> list[list[str]]:
    """Return the entries of /etc/passwd as lists: name, password field, uid, gid, comment, home and shell of every
    user.
    """
    if not ctx.host.mounted:
        return [[str(part) for part in each] for each in pwd.getpwall()]
    try:
        text = text_of(ctx.host.path(_FILE))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CommandError(f"{_FILE} cannot be read: {error.strerror}") from error
    rows = (line.split(":") for line in lines_of(text))
    return [row for row in rows if len(row) > 6 and row[2].isdecimal() and row[3].isdecimal()]


def _shown(row: Sequence[str], groups: Sequence[GroupInfo]) -> dict[str, Any]:
    name, passwd, uid, gid, comment, home, shell = row[:7]
    parts = comment.split(",", 4)
    return {
        "gid": int(gid),
        "groups": sorted({each["name"] for each in groups if each["gid"] == int(gid) or name in each["members"]}),
        "home": home,
        "name": name,
        "passwd": passwd,
        "shell": shell,
        "uid": int(uid),
        **dict(zip(_GECOS, [*parts, *[""] * (5 - len(parts))], strict=True)),
    }


def _existing(ctx: Context, name: str) -> dict[str, Any]:
    found = info(ctx, name)
    if not found:
        raise CommandError(f"User '{name}' does not exist")
    return found


def _attribute(ctx: Context, name: str, key: str, value: object, option: str, *more: str) -> bool:
    if _existing(ctx, name)[key] != value:
        _do(ctx, ["usermod", *more, option, str(value), str(name)])
    return bool(info(ctx, name).get(key) == value)


def _change_comment(ctx: Context, name: str, **parts: str) -> bool:
    now = _existing(ctx, name)
    new = {part: str(parts.get(part, now[part]) or "") for part in _GECOS}
    if any(new[part] != now[part] for part in _GECOS):
        _do(ctx, ["usermod", "-c", ",".join(new.values()).rstrip(","), str(name)])
    after = info(ctx, name)
    return all(after.get(part) == value for part, value in new.items())


def _user_groups(ctx: Context) -> bool:
    """Return whether the host creates a group for every new user (USERGROUPS_ENAB in /etc/login.defs)."""
    try:
        text = ctx.host.path("/etc/login.defs").read_text("utf-8", "replace")
    except OSError:
        # Without the file useradd's default is no.
        return False
    rows = (line.split() for line in lines_of(text))
    return any(row[0] == "USERGROUPS_ENAB" and row[-1] == "yes" for row in rows if len(row) > 1)


def _listed(groups: str | Iterable[object] | None) -> list[str]:
    return groups.split(",") if isinstance(groups, str) else [str(group) for group in groups or ()]


def _do(ctx: Context, words: Sequence[str]) -> bool:
    result = ctx.host.run(words, env={"LC_ALL": "C"})
    if result.retcode:
        raise CallFailed(result.stderr.strip() or f"{words[0]} failed with return code {result.retcode}")
    return True


def _not_local(local: bool) -> None:
    if local:
        raise InvocationError("not supported: local; it needs the programs of libuser")
