"""Space on the host's file systems (Salt's ``disk`` module), as its ``df`` tells it."""

from __future__ import annotations

import re
from typing import Any

from statecore.host.rooted_path import file_system
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.hostfiles import mount_table

#: ``UUID="6f…"`` as blkid tells it.
_TAG = re.compile(r'(\w+)="([^"]*)"')


def usage(ctx: Context, args: str | None = None) -> dict[str, dict[str, str]]:
    """mount point -> filesystem, 1K-blocks, used, available, capacity; ``args`` are letters for df.

    CLI Example:

        salt '*' disk.usage
    """
    return _table(ctx, "-P", args, ("filesystem", "1K-blocks", "used", "available", "capacity"))


def inodeusage(ctx: Context, args: str | None = None) -> dict[str, dict[str, str]]:
    """mount point -> filesystem, inodes, used, free, use."""
    return _table(ctx, "-iP", args, ("filesystem", "inodes", "used", "free", "use"))


def percent(ctx: Context, args: str | None = None) -> Any:
    """mount point -> how full it is; of one, where ``args`` names it."""
    found = {place: row["capacity"] for place, row in usage(ctx).items()}
    if not args:
        return found
    if args not in found:
        raise CommandError(f"Problem parsing disk usage information: there is no file system at {args}")
    return found[args]


def blkid(ctx: Context, device: str | None = None, token: str | None = None) -> dict[str, dict[str, str]]:
    """device -> UUID, LABEL, TYPE and so on; of one, or of those that a ``token`` (``LABEL=data``) names.

    CLI Example:

        salt '*' disk.blkid /dev/sda
    """
    if ctx.host.which("blkid") is None:
        return {}
    words = ["blkid", *([device] if device else ["-t", token] if token else [])]
    rows = (line.partition(":") for line in ctx.host.run(words).stdout.splitlines())
    return {name: dict(_TAG.findall(rest)) for name, sign, rest in rows if sign}


def _table(ctx: Context, option: str, args: str | None, names: tuple[str, ...]) -> dict[str, dict[str, str]]:
    flags = (args or "").lstrip("-")
    if flags and not flags.isalnum():
        raise CommandError(f"{args} are no letters for df")
    if ctx.host.which("df") is None:
        return _counted(ctx, names, inodes=option.startswith("-i"))
    words = ["df", option, *([f"-{flags}"] if flags else [])]
    result = ctx.host.run(words, env={"LC_ALL": "C"})
    rows = (line.rsplit(None, 5) for line in result.stdout.splitlines()[1:])
    found = {row[5]: dict(zip(names, row, strict=False)) for row in rows if len(row) == 6}
    if not found and result.retcode and ctx.host.mounted and not flags:
        # In a mounted host without its /proc, df knows of no mounts.
        return _counted(ctx, names, inodes=option.startswith("-i"))
    return found


def _counted(ctx: Context, names: tuple[str, ...], *, inodes: bool) -> dict[str, dict[str, str]]:
    """What df would tell, of what is mounted in the host; file systems without blocks are none that can be full."""
    found = {}
    for mounted in mount_table.parse(ctx.host.mount_table()).values():
        try:
            told = file_system(ctx.host.path(mounted.point))
        except OSError:
            continue
        if not told.f_blocks:
            continue
        if inodes:
            total, free, left = told.f_files, told.f_ffree, told.f_ffree
        else:
            total, free, left = (each * told.f_frsize // 1024 for each in (told.f_blocks, told.f_bfree, told.f_bavail))
        used = total - free
        # As df does, what is begun counts as whole.
        share = f"{-(-used * 100 // (used + left))}%" if used + left else "-"
        row = (mounted.device, str(total), str(used), str(left), share)
        found[mounted.point] = dict(zip(names, row, strict=True))
    return found
