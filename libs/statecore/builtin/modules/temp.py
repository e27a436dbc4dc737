"""Temporary files and directories of the host: Salt's ``temp`` execution module."""

from __future__ import annotations

import secrets
from pathlib import Path

from statecore.host.content import private_files
from statecore.model.context import Context


def dir(ctx: Context, suffix: str = "", prefix: str = "tmp", parent: str | None = None) -> str:
    """Make a directory of the host with a random name and mode 0700. Return its path.

    parent
        directory for it; default /tmp

    CLI Example:

        salt '*' temp.dir
    """
    name, real_path = _free(ctx, suffix, prefix, parent)
    real_path.mkdir(mode=private_files.DIRECTORY_MODE)
    return name


def file(ctx: Context, suffix: str = "", prefix: str = "tmp", parent: str | None = None) -> str:
    """Make an empty file of the host with a random name and mode 0600. Return its path.

    parent
        directory for it; default /tmp

    CLI Example:

        salt '*' temp.file
    """
    name, real_path = _free(ctx, suffix, prefix, parent)
    private_files.new_file(real_path).close()
    return name


def _free(ctx: Context, suffix: str, prefix: str, parent: str | None) -> tuple[str, Path]:
    # 64 random bits: a name that exists makes the creation fail, which does not happen by chance.
    name = f"{(parent or '/tmp').rstrip('/')}/{prefix}{secrets.token_hex(8)}{suffix}"
    return name, ctx.host.path(name, follow=False)
