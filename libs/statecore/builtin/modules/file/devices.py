"""Functions of the ``file`` module for device files and named pipes."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.host.rooted_path import lexists, located
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError


def is_chrdev(ctx: Context, name: str) -> bool:
    """Return whether the path is a character device. Symbolic links are followed."""
    return _is(ctx, name, stat.S_ISCHR)


def is_blkdev(ctx: Context, name: str) -> bool:
    """Return whether the path is a block device. Symbolic links are followed."""
    return _is(ctx, name, stat.S_ISBLK)


def is_fifo(ctx: Context, name: str) -> bool:
    """Return whether the path is a named pipe. Symbolic links are followed."""
    return _is(ctx, name, stat.S_ISFIFO)


def get_devmm(ctx: Context, name: str) -> tuple[int, int]:
    """Return the pair (major number, minor number) of a device file; (0, 0) for any other path."""
    if not (is_chrdev(ctx, name) or is_blkdev(ctx, name)):
        return 0, 0
    number = ctx.host.path(name).stat().st_rdev
    return os.major(number), os.minor(number)


def mknod_chrdev(
    ctx: Context,
    name: str,
    major: int,
    minor: int,
    user: str | int | None = None,
    group: str | int | None = None,
    mode: object = "0660",
) -> dict[str, object]:
    """Create a character device file. Return a map with name, changes, comment and result. In test mode nothing is
    created.
    """
    return _made(ctx, name, stat.S_IFCHR, "Character device", (major, minor), Attributes(user, group, _mode(mode)))


def mknod_blkdev(
    ctx: Context,
    name: str,
    major: int,
    minor: int,
    user: str | int | None = None,
    group: str | int | None = None,
    mode: object = "0660",
) -> dict[str, object]:
    """Create a block device file. Return a map with name, changes, comment and result. In test mode nothing is
    created.
    """
    return _made(ctx, name, stat.S_IFBLK, "Block device", (major, minor), Attributes(user, group, _mode(mode)))


def mknod_fifo(
    ctx: Context, name: str, user: str | int | None = None, group: str | int | None = None, mode: object = "0660"
) -> dict[str, object]:
    """Create a named pipe. Return a map with name, changes, comment and result. In test mode nothing is created."""
    return _made(ctx, name, stat.S_IFIFO, "Fifo pipe", (0, 0), Attributes(user, group, _mode(mode)))


def mknod(
    ctx: Context,
    name: str,
    ntype: str,
    major: int = 0,
    minor: int = 0,
    user: str | int | None = None,
    group: str | int | None = None,
    mode: object = "0600",
) -> dict[str, object]:
    """Create a device file or a named pipe, and its missing parent directories. Return a map with name, changes,
    comment and result.

    ntype
        ``c`` (character device), ``b`` (block device) or ``p`` (named pipe)
    major, minor
        numbers of the device
    """
    real_path = ctx.host.path(name)
    if ntype not in ("c", "b", "p"):
        raise InvocationError(
            f"Node type unavailable: '{ntype}'. Available node types are character ('c'), block ('b'), and pipe ('p')."
        )
    if not ctx.test:
        managed_file.make_directories(ctx.host, real_path.parent, Attributes(user, group), ctx.host.root)
    if ntype == "p":
        return mknod_fifo(ctx, name, user, group, mode)
    return (mknod_chrdev if ntype == "c" else mknod_blkdev)(ctx, name, major, minor, user, group, mode)


def _is(ctx: Context, name: str, test: Callable[[int], bool]) -> bool:
    try:
        return str(name).startswith("/") and test(ctx.host.path(name).stat().st_mode)
    except FileNotFoundError:
        return False


def _mode(mode: object) -> int | None:
    return managed_file.parse_mode(mode)


def _made(
    ctx: Context, name: str, kind: int, word: str, numbers: tuple[int | str, int | str], wanted: Attributes
) -> dict[str, object]:
    answer: dict[str, object] = {"name": name, "changes": {}, "comment": "", "result": False}
    real_path = ctx.host.path(name)
    if lexists(real_path):
        return answer | {"comment": f"File {name} exists and cannot be overwritten"}
    change = {"changes": {"new": f"{word} {name} created."}}
    if ctx.test:
        return answer | change | {"result": None}
    managed_file.check_owner(ctx.host, wanted)
    try:
        device = os.makedev(*map(int, numbers)) if kind != stat.S_IFIFO else 0
        with located(real_path) as (own, way):
            os.mknod(own, kind | 0o600, device, dir_fd=way)
        managed_file.set_attributes(ctx.host, real_path, wanted)
    except (OSError, TypeError, ValueError, OverflowError) as error:
        raise CommandError(f"{word} {name} cannot be created: {getattr(error, 'strerror', None) or error}") from error
    return answer | change | {"result": True}
