"""Looks up users of the managed host without any account program, in the system's user database or in /etc/passwd."""

from __future__ import annotations

import pwd

from statecore.host.host import Account
from statecore.model.ports import ManagedHost
from statecore.model.text_lines import lines_of, text_of

_FILE = "/etc/passwd"

#: Number of columns in a line of /etc/passwd.
_COLUMNS = 7


def find(host: ManagedHost, name: str) -> Account | None:
    """Return the user account of the managed host with this name, or None.

    On this machine the system's user database is asked; of a mounted host its /etc/passwd is read.
    """
    if not host.mounted:
        try:
            row = pwd.getpwnam(name)
        except KeyError:
            return None
        return Account(row.pw_name, row.pw_uid, row.pw_gid, row.pw_dir, row.pw_shell)
    try:
        text = text_of(host.path(_FILE))
    except FileNotFoundError:
        return None
    rows = (line.split(":") for line in lines_of(text))
    row_of = next((row for row in rows if len(row) >= _COLUMNS and row[0] == name and row[2].isdecimal()), None)
    if row_of is None or not row_of[3].isdecimal():
        return None
    return Account(row_of[0], int(row_of[2]), int(row_of[3]), row_of[5], row_of[6])
