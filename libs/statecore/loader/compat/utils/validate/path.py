"""``salt.utils.validate.path``. Of this machine."""

from __future__ import annotations

import os


def is_writeable(path: str, check_parent: bool = False) -> bool:
    """Whether a path can be written to; with ``check_parent``, one that is not there in a directory that can."""
    if os.path.exists(path):
        return os.access(path, os.W_OK)
    parent = os.path.dirname(path)
    return check_parent and os.access(parent, os.F_OK) and os.access(parent, os.W_OK)


def is_readable(path: str) -> bool:
    """Whether a path is there and can be read."""
    return os.access(path, os.R_OK)


def is_executable(path: str) -> bool:
    """Whether a path is there and can be run."""
    return os.access(path, os.X_OK)
