"""Changes the user of a process that root started: the option ``user``."""

from __future__ import annotations

import os
import pwd

from saltern.kit.config.reading import ConfigError


def become(user: str) -> None:
    """Let this process run as ``user``, with the user's groups and home, if root started it; otherwise change nothing.

    Call it before the process has threads, sockets or log files. Raise ConfigError for an unknown user.
    """
    if not user or user == "root" or os.geteuid() != 0:
        return
    entry = passwd_entry(user)
    os.initgroups(user, entry.pw_gid)
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
    os.environ.update(HOME=entry.pw_dir, USER=user, LOGNAME=user)


def passwd_entry(user: str) -> pwd.struct_passwd:
    """Return the account of the operating system with the login name ``user``, as ``pwd.struct_passwd`` (``pw_uid``, ``pw_gid``,
    ``pw_dir`` ...). It is looked up for the configuration's option ``user``, under whose account a process is to run.

    Raise ConfigError if this machine has no such account.
    """
    try:
        return pwd.getpwnam(user)
    except KeyError as error:
        raise ConfigError(
            f"user: there is no user '{user}' on this machine; create it, or take the option away"
        ) from error
