"""File systems, block devices and drives of the host: Salt's ``disk`` execution module."""

from __future__ import annotations

import re

from statecore.builtin.modules.disk import devices, figures
from statecore.builtin.modules.disk.devices import format_  # noqa: F401 - of ALIASES
from statecore.host.rooted_path import file_system
from statecore.model.context import Context
from statecore.model.errors import CallFailed, CommandError
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import mount_table

PARTS = (devices, figures)

ALIASES = {"format": "format_"}

#: A tag in blkid's output, such as ``UUID="6f…"``.
_TAG = re.compile(r'(\w+)="([^"]*)"')


def usage(ctx: Context, args: str | None = None) -> dict[str, dict[str, str]]:
    """Return the use of each mounted file system as ``df`` shows it: a map of mount point to filesystem, 1K-blocks,
    used, available and capacity. ``args`` are option letters for df.

    CLI Example:

        salt '*' disk.usage
    """
    return _table(ctx, "-P", args, ("filesystem", "1K-blocks", "used", "available", "capacity"))


def inodeusage(ctx: Context, args: str | None = None) -> dict[str, dict[str, str]]:
    """Return the use of inodes of each mounted file system: a map of mount point to filesystem, inodes, used, free and
    use.
    """
    return _table(ctx, "-iP", args, ("filesystem", "inodes", "used", "free", "use"))


def percent(ctx: Context, args: str | None = None) -> object:
    """Return a map of mount point to the used share of its file system, such as "63%". If ``args`` names a mount point,
    return only its share. Raise CallFailed if nothing is mounted there.
    """
    found = {mount_point: row["capacity"] for mount_point, row in usage(ctx).items()}
    if not args:
        return found
    if args not in found:
        raise CallFailed(f"Problem parsing disk usage information: there is no file system at {args}", {})
    return found[args]


def blkid(ctx: Context, device: str | None = None, token: str | None = None) -> dict[str, dict[str, str]]:
    """Return a map of block device to its tags (UUID, LABEL, TYPE, ...), as the host's blkid lists them.

    device
        only this device
    token
        only devices with this tag, such as ``LABEL=data``

    CLI Example:

        salt '*' disk.blkid /dev/sda
    """
    if ctx.host.which("blkid") is None:
        return {}
    words = ["blkid", *([device] if device else ["-t", token] if token else [])]
    rows = (line.partition(":") for line in lines_of(ctx.host.run(words).stdout))
    return {name: dict(_TAG.findall(rest)) for name, sign, rest in rows if sign}


def _table(ctx: Context, option: str, args: str | None, names: tuple[str, ...]) -> dict[str, dict[str, str]]:
    flags = (args or "").lstrip("-")
    if flags and not flags.isalnum():
        raise CommandError(f"{args!r} are not option letters of df")
    if ctx.host.which("df") is None:
        return _counted(ctx, names, inodes=option.startswith("-i"))
    words = ["df", option, *([f"-{flags}"] if flags else [])]
    result = ctx.host.run(words, env={"LC_ALL": "C"})
    rows = (line.rsplit(None, 5) for line in lines_of(result.stdout)[1:])
    found = {row[5]: dict(zip(names, row, strict=False)) for row in rows if len(row) == 6}
    if not found and result.retcode and ctx.host.mounted and not flags:
        # On a mounted host without a /proc, df finds no mounts.
        return _counted(ctx, names, inodes=option.startswith("-i"))
    return found


def _counted(ctx: Context, names: tuple[str, ...], *, inodes: bool) -> dict[str, dict[str, str]]:
    """Return the table of ``df``, computed from the host's mount table: a map of mount point to columns, whose keys are
    ``names``. File systems without blocks are left out.
    """
    found = {}
    for mounted in mount_table.parse(ctx.host.mount_table()).values():
        try:
            stats = file_system(ctx.host.path(mounted.point))
        except OSError:
            continue
        if not stats.f_blocks:
            continue
        if inodes:
            total, free, left = stats.f_files, stats.f_ffree, stats.f_ffree
        else:
            total, free, left = (
                each * stats.f_frsize // 1024 for each in (stats.f_blocks, stats.f_bfree, stats.f_bavail)
            )
        used = total - free
        # Round up, as df does.
        share = f"{-(-used * 100 // (used + left))}%" if used + left else "-"
        row = (mounted.device, str(total), str(used), str(left), share)
        found[mounted.point] = dict(zip(names, row, strict=True))
    return found
