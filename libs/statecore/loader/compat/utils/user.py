"""``salt.utils.user`` for users' modules: users and groups of this machine. For a managed host use
``__salt__["user.*"]``.
"""

from __future__ import annotations

import grp
import os
import pwd

from statecore.model.errors import CommandError


def get_user() -> str:
    """Return the name of the user that this process runs as."""
    return pwd.getpwuid(os.geteuid()).pw_name


def get_specific_user() -> str:
    """Return the name of the user that this process runs as; for root through sudo, ``sudo_`` and the name of the
    original user.
    """
    user = get_user()
    return f"sudo_{os.environ['SUDO_USER']}" if user == "root" and "SUDO_USER" in os.environ else user


def get_uid(user: str | None = None) -> int | None:
    """Return the uid of a user of this machine, without a name this process's uid; None if there is no such user."""
    try:
        return os.geteuid() if user is None else pwd.getpwnam(user).pw_uid
    except KeyError:
        return None


def get_gid(group: str | None = None) -> int | None:
    """Return the gid of a group of this machine, without a name this process's gid; None if there is no such group."""
    try:
        return os.getegid() if group is None else grp.getgrnam(group).gr_gid
    except KeyError:
        return None


def get_default_group(user: str) -> str:
    """Return the name of a user's primary group. Raise KeyError if there is no such user."""
    return grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name


def get_group_dict(user: str | None = None, include_default: bool = True) -> dict[str, int]:
    """Map of group name to gid, for the groups of a user (without a name, this process's user). {} if there is no such
    user.

    ``include_default``: include the user's primary group.
    """
    name = user or get_user()
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        return {}
    numbers = set(os.getgrouplist(name, account.pw_gid))
    found = {group.gr_name: group.gr_gid for group in grp.getgrall() if group.gr_gid in numbers}
    if not include_default:
        found.pop(get_default_group(name), None)
    return found


def get_group_list(user: str, include_default: bool = True) -> list[str]:
    """Return the sorted names of a user's groups. ``include_default``: include the primary group."""
    return sorted(get_group_dict(user, include_default))


def get_gid_list(user: str, include_default: bool = True) -> list[int]:
    """Return the sorted gids of a user's groups. ``include_default``: include the primary group."""
    return sorted(set(get_group_dict(user, include_default).values()))


def chugid(runas: str, group: str | None = None) -> None:
    """Switch this process to another user and the user's groups. Call it in a child process, before the child runs a
    program.

    Raise CommandError if the user or group does not exist, or if this process is not root.
    """
    try:
        account = pwd.getpwnam(runas)
        gid = grp.getgrnam(group).gr_gid if group else account.pw_gid
        os.setgid(gid)
        os.setgroups(os.getgrouplist(runas, account.pw_gid))
        os.setuid(account.pw_uid)
    except (KeyError, OSError) as error:
        raise CommandError(f"Failed to become user {runas}, group {group or 'of its own'}: {error}") from error


def chugid_and_umask(runas: str | None, umask: int | None, group: str | None = None) -> None:
    """Switch this process to the user ``runas`` unless it runs as this user already, and set the umask if it is not
    None.

    Raise CommandError if the user or group does not exist, or if this process is not root.
    """
    if (runas and runas != get_user()) or group:
        chugid(runas or get_user(), group)
    if umask is not None:
        os.umask(umask)
