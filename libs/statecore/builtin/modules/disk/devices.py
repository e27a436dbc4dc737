"""Block devices: what ``blockdev``, ``wipefs``, ``mkfs`` and ``lsblk`` do for Salt's ``disk`` execution module."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of

log = logging.getLogger(__name__)

#: What ``disk.dump`` reads, in the order of blockdev's output.
_READ = (
    *("getro", "getsz", "getss", "getpbsz", "getiomin", "getioopt", "getalignoff", "getmaxsect", "getsize"),
    *("getsize64", "getra", "getfra"),
)

#: Argument of ``disk.tune`` -> option of blockdev that sets it, and the one that reads it.
_TUNED: Mapping[str, tuple[str, str]] = {
    "read-ahead": ("setra", "getra"),
    "filesystem-read-ahead": ("setfra", "getfra"),
    "read-only": ("setro", "getro"),
    "read-write": ("setrw", "getro"),
}

_SWITCHES = ("read-only", "read-write")

_FAT = (12, 16, 32)


def dump(ctx: Context, device: str, args: Sequence[str] | None = None) -> dict[str, str] | bool:
    """Return the properties of a block device: a map of blockdev's options (getro, getra ...) to values; False if
    blockdev fails.

    args
        only these options

    CLI Example:

        salt '*' disk.dump /dev/sda1
    """
    done = ctx.host.run(["blockdev", *(f"--{name}" for name in _READ), device])
    if done.retcode:
        ctx.scratch["retcode"] = done.retcode
        return False
    found = dict(zip(_READ, (line for line in lines_of(done.stdout) if line), strict=False))
    return {name: found[name] for name in args} if args else found


def tune(ctx: Context, device: str, **kwargs: object) -> dict[str, str] | bool:
    """Set properties of a block device. Return a map of the changed properties to their new values, in the form of
    ``disk.dump``. Raise CommandError if blockdev fails, InvocationError for unknown arguments.

    read-ahead, filesystem-read-ahead
        sectors of 512 bytes to read ahead
    read-only, read-write
        True

    CLI Example:

        salt '*' disk.tune /dev/sda1 read-ahead=1024 read-write=True
    """
    given = {key: value for key, value in kwargs.items() if not key.startswith("__")}
    wrong = {
        key: value
        for key, value in given.items()
        if key not in _TUNED or (key in _SWITCHES and value not in ("True", True))
    }
    if wrong:
        named = ", ".join(f"{key}={value}" for key, value in wrong.items())
        raise InvocationError(f"Invalid keyword arguments: {named}")
    words: list[str] = []
    for key, value in given.items():
        words += [f"--{_TUNED[key][0]}", *([] if key in _SWITCHES else [str(value)])]
    done = ctx.host.run(["blockdev", *words, device])
    if done.retcode:
        raise CommandError(done.stderr.rstrip("\n"))
    return dump(ctx, device, [_TUNED[key][1] for key in given])


def wipe(ctx: Context, device: str) -> bool:
    """Remove the signatures of file systems, RAIDs and partition tables from a block device, so that nothing finds them
    any more. Return whether this succeeded.

    CLI Example:

        salt '*' disk.wipe /dev/sda1
    """
    done = ctx.host.run(["wipefs", "-a", device])
    if done.retcode:
        ctx.scratch["retcode"] = done.retcode
        log.error("wipefs of %s failed: %s", device, done.stderr.strip())
    return done.retcode == 0


def resize2fs(ctx: Context, device: str) -> bool | None:
    """Enlarge an ext2, ext3 or ext4 file system to the size of its device. Return True, None if resize2fs fails.

    CLI Example:

        salt '*' disk.resize2fs /dev/sda1
    """
    done = ctx.host.run(["resize2fs", device])
    if done.retcode:
        ctx.scratch["retcode"] = done.retcode
    return None if done.retcode else True


def format_(
    ctx: Context,
    device: str,
    fs_type: str = "ext4",
    inode_size: object = None,
    lazy_itable_init: object = None,
    fat: int | None = None,
    force: bool = False,
) -> bool:
    """Make a file system on a block device, which destroys what is on it. Return whether this succeeded.

    fs_type
        the type of the file system, as mkfs names it
    inode_size
        bytes per inode of ext file systems; the size of an inode of XFS
    lazy_itable_init
        0 or 1: whether an ext file system initialises its inodes later
    fat
        12, 16 or 32: the kind of a FAT file system
    force
        True: also on a device that looks used (ext and XFS)

    CLI Example:

        salt '*' disk.format /dev/sdX1
    """
    for program in ("mkfs", "sync"):
        if ctx.host.which(program) is None:
            raise CommandError(f"disk.format needs {program}, which the host does not have")
    kind = str(fs_type)
    ext = kind.startswith("ext")
    words = ["mkfs", "-t", kind]
    if inode_size is not None and (ext or kind == "xfs"):
        words += ["-i", str(inode_size) if ext else f"size={inode_size}"]
    if lazy_itable_init is not None and ext:
        words += ["-E", f"lazy_itable_init={lazy_itable_init}"]
    if fat in _FAT and kind.endswith("fat"):
        words += ["-F", str(fat)]
    if force and (ext or kind == "xfs"):
        words.append("-F" if ext else "-f")
    made = ctx.host.run([*words, str(device)]).retcode == 0
    return ctx.host.run(["sync"]).retcode == 0 and made


def fstype(ctx: Context, device: str) -> str:
    """Return the type of the file system on a block device, "" if there is none.

    CLI Example:

        salt '*' disk.fstype /dev/sdX1
    """
    for words, column in ((["lsblk", "-o", "fstype", device], 0), (["df", "-T", device], 1)):
        if ctx.host.which(words[0]) is not None:
            lines = lines_of(ctx.host.run(words).stdout)
            row = lines[1].split() if len(lines) > 1 else []
            if len(row) > column:
                return row[column]
    return ""


def get_fstype_from_path(ctx: Context, path: str) -> str:
    """Return the type of the file system that holds a path of the host, "" if it has no device.

    CLI Example:

        salt '*' disk.get_fstype_from_path /root
    """
    device = ctx.call("mount.get_device_from_path", path)
    return fstype(ctx, device) if device else ""
