"""Users of a managed host as they are to be read where nothing may be changed: no account program is needed for it."""

from __future__ import annotations

import pwd

from statecore.host.host import Account
from statecore.model.ports import ManagedHost

_FILE = "/etc/passwd"

#: Columns of a line.
_COLUMNS = 7


def find(host: ManagedHost, name: str) -> Account | None:
    """The user of this name, None when there is none: of this machine as it answers, of a mounted host as its file says."""
    if not host.mounted:
        try:
            row = pwd.getpwnam(name)
        except KeyError:
            return None
        return Account(row.pw_name, row.pw_uid, row.pw_gid, row.pw_dir, row.pw_shell)
    try:
        text = host.path(_FILE).read_text("utf-8", "replace")
    except FileNotFoundError:
        return None
    rows = (line.split(":") for line in text.splitlines())
    row_of = next((row for row in rows if len(row) >= _COLUMNS and row[0] == name and row[2].isdecimal()), None)
    if row_of is None or not row_of[3].isdecimal():
        return None
    return Account(row_of[0], int(row_of[2]), int(row_of[3]), row_of[5], row_of[6])
