"""``salt.utils.user``. Of this machine; users of a managed host are reached through ``__salt__["user.*"]``."""

from __future__ import annotations

import grp
import os
import pwd

from statecore.model.errors import CommandError


def get_user() -> str:
    """The name of the user that this process runs as."""
    return pwd.getpwuid(os.geteuid()).pw_name


def get_specific_user() -> str:
    """``get_user``; of root by sudo, ``sudo_NAME``."""
    user = get_user()
    return f"sudo_{os.environ['SUDO_USER']}" if user == "root" and "SUDO_USER" in os.environ else user


def get_uid(user: str | None = None) -> int | None:
    """The number of a user, our own without a name; None where there is none."""
    try:
        return os.geteuid() if user is None else pwd.getpwnam(user).pw_uid
    except KeyError:
        return None


def get_gid(group: str | None = None) -> int | None:
    """The number of a group, our own without a name; None where there is none."""
    try:
        return os.getegid() if group is None else grp.getgrnam(group).gr_gid
    except KeyError:
        return None


def get_default_group(user: str) -> str:
    """The group that a user has at login. Raises KeyError."""
    return grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name


def get_group_dict(user: str | None = None, include_default: bool = True) -> dict[str, int]:
    """Name -> number of the groups that a user is in."""
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
    """Names of the groups that a user is in, sorted."""
    return sorted(get_group_dict(user, include_default))


def get_gid_list(user: str, include_default: bool = True) -> list[int]:
    """Numbers of the groups that a user is in, sorted."""
    return sorted(set(get_group_dict(user, include_default).values()))


def chugid(runas: str, group: str | None = None) -> None:
    """Switch this process to another user. Raise CommandError. For a child process, before it starts a program."""
    try:
        account = pwd.getpwnam(runas)
        gid = grp.getgrnam(group).gr_gid if group else account.pw_gid
        os.setgid(gid)
        os.setgroups(os.getgrouplist(runas, account.pw_gid))
        os.setuid(account.pw_uid)
    except (KeyError, OSError) as error:
        raise CommandError(f"Failed to become user {runas}, group {group or 'of its own'}: {error}") from error


def chugid_and_umask(runas: str | None, umask: int | None, group: str | None = None) -> None:
    """Switch this process to another user if ``runas`` is another one, and set the umask."""
    if (runas and runas != get_user()) or group:
        chugid(runas or get_user(), group)
    if umask is not None:
        os.umask(umask)
