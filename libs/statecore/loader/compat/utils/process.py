"""``salt.utils.process``: what a module may ask of processes. What makes daemons is not modules' business."""

from __future__ import annotations

import os
from typing import Any


def os_is_running(pid: Any) -> bool:
    """Whether a process of this machine runs."""
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True
