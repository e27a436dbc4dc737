"""``salt.utils.process``: whether a process runs. Salt's functions for daemons are not provided."""

from __future__ import annotations

import os


def os_is_running(pid: int | str) -> bool:
    """Whether a process of this machine runs."""
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True
