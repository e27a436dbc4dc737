"""Helpers of the ``file`` execution module: they convert between the host's paths and paths of the minion's file
system, and read a file's bytes.
"""

from __future__ import annotations

from pathlib import Path

from statecore.host.content import managed_file
from statecore.model.context import Context
from statecore.model.errors import CommandError


def bytes_of(ctx: Context, path: str) -> bytes:
    """Return the content of a file of the host. Raise CommandError if the file does not exist."""
    data = managed_file.read(ctx.host.path(path), path)
    if data is None:
        raise CommandError(f"File not found: {path}")
    return data


def host_name(ctx: Context, real_path: Path) -> str:
    """Convert a path of the minion's file system below the host's root to the path that the host's own programs use."""
    return "/" + "/".join(real_path.relative_to(ctx.host.root).parts)


def existing(ctx: Context, path: str) -> Path:
    """Return the path in the minion's file system of a file of the host, with links followed. Raise CommandError if
    nothing exists there.
    """
    real_path = ctx.host.path(path)
    if not real_path.exists():
        raise CommandError(f"File or directory does not exist: {path}")
    return real_path
