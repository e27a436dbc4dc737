"""``salt.utils.validate.path`` for users' modules: permissions of paths on this machine."""

from __future__ import annotations

import os


def is_writeable(path: str, check_parent: bool = False) -> bool:
    """Return whether this process may write to the path.

    With ``check_parent``, a path that does not exist counts as writable if this process may write to its directory.
    """
    if os.path.exists(path):
        return os.access(path, os.W_OK)
    parent = os.path.dirname(path)
    return check_parent and os.access(parent, os.F_OK) and os.access(parent, os.W_OK)


def is_readable(path: str) -> bool:
    """Return whether the path exists and this process may read it."""
    return os.access(path, os.R_OK)


def is_executable(path: str) -> bool:
    """Return whether the path exists and this process may execute it."""
    return os.access(path, os.X_OK)
