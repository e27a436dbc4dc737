"""``salt.utils.process`` for users' modules: whether a process runs. Salt's functions for daemons are not provided."""

from __future__ import annotations

import os


def os_is_running(pid: int | str) -> bool:
    """Return whether a process with this process id runs on this machine."""
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True
