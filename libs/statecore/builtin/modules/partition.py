"""Partition tables and partitions of block devices, by GNU parted: Salt's ``partition`` execution module.

The host needs parted, partprobe and lsblk. Functions that change something return parted's lines, which are empty after
success.
"""

from __future__ import annotations

import re

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of
from statecore.system.program_runs import output_lines

ALIASES = {"set": "set_", "list": "list_"}

_PROGRAMS = ("parted", "lsblk", "partprobe")

_UNITS = ("s", "B", "kB", "MB", "MiB", "GB", "GiB", "TB", "TiB", "%", "cyl", "chs", "compact")

_DISK_FLAGS = ("cylinder_alignment", "pmbr_boot", "implicit_partition_table")

_FLAGS = (
    *("boot", "root", "swap", "hidden", "raid", "lvm", "lba", "hp-service", "palo", "prep", "msftres", "bios_grub"),
    *("atvrecv", "diag", "legacy_boot", "msftdata", "irst", "esp", "type"),
)

_TABLES = ("aix", "amiga", "bsd", "dvh", "gpt", "loop", "mac", "msdos", "pc98", "sun")

_FILE_SYSTEMS = (
    *("btrfs", "ext2", "ext3", "ext4", "fat", "fat32", "fat16", "linux-swap", "reiserfs", "hfs", "hfs+", "hfsx"),
    *("NTFS", "ntfs", "ufs", "xfs"),
)

_BOUNDARY = re.compile(r"[\d.]+(\D*)")

_INFO = ("disk", "size", "interface", "logical sector", "physical sector", "partition table", "model", "disk flags")

_UNREADABLE = "Problem encountered while parsing output from parted"


def available(ctx: Context) -> str | None:
    """Return None if the host has parted, partprobe and lsblk; else return the reason as text."""
    missing = [program for program in _PROGRAMS if ctx.host.which(program) is None]
    return f"the host has no {missing[0]}" if missing else None


# ------------------------------------------------------------------------------------------------------------- queries


def list_(ctx: Context, device: str, unit: str | None = None) -> dict[str, dict[str, object]]:
    """Return the partition table of a block device: a map of ``info`` (the device's properties) and ``partitions``
    (number to a map of its properties). Raise CommandError if parted's output cannot be read.

    unit
        the unit of sizes, such as s, MiB or %

    CLI Example:

        salt '*' partition.list /dev/sda unit=s
    """
    _block(ctx, device)
    if unit and unit not in _UNITS:
        raise CommandError("Invalid unit passed to partition.part_list")
    words = ["parted", "-m", "-s", device, *(["unit", unit] if unit else []), "print"]
    return parse_table(ctx.host.run(words).stdout, unit)


def exists(ctx: Context, device: str = "") -> bool:
    """Return whether a path of the host is a block device.

    CLI Example:

        salt '*' partition.exists /dev/sdb1
    """
    return device.startswith("/") and ctx.host.path(device).is_block_device()


def get_block_device(ctx: Context) -> list[str]:
    """Return the kernel's names of the host's block devices, such as sda, without loop devices, floppies and
    CD-ROMs.

    CLI Example:

        salt '*' partition.get_block_device
    """
    return output_lines(ctx.host, ["lsblk", "-n", "-io", "KNAME", "-d", "-e", "1,7,11", "-l"])


def align_check(ctx: Context, device: str, part_type: str, partition: int | str) -> list[str]:
    """Return the lines of parted's alignment check of a partition, such as "1 aligned".

    part_type
        minimal or optimal

    CLI Example:

        salt '*' partition.align_check /dev/sda minimal 1
    """
    _block(ctx, device)
    if part_type not in ("minimal", "optimal"):
        raise CommandError("Invalid part_type passed to partition.align_check")
    number = _number(partition, "Invalid partition passed to partition.align_check")
    return output_lines(ctx.host, ["parted", "-m", device, "align-check", part_type, number])


def check(ctx: Context, device: str, minor: int | str) -> list[str]:
    """Check the file system of a partition, which only parted before version 3.0 can do. Return the lines of parted.

    CLI Example:

        salt '*' partition.check /dev/sda 1
    """
    return _parted(ctx, device, "check", _minor(ctx, device, minor, "check"))


def get_id(ctx: Context, device: str, minor: int | str) -> list[str]:
    """Return the type of a partition as sfdisk prints it: a list with one line, a number in hexadecimal digits.

    CLI Example:

        salt '*' partition.get_id /dev/sda 1
    """
    number = _minor(ctx, device, minor, "get_id")
    return output_lines(ctx.host, ["sfdisk", "--print-id", device, number])


def system_types(ctx: Context) -> dict[str, str]:
    """Return the types of partitions that sfdisk knows: a map of hexadecimal number to the first word of the type's
    name.

    CLI Example:

        salt '*' partition.system_types
    """
    rows = (line.split() for line in output_lines(ctx.host, ["sfdisk", "-T"]) if not line.startswith("Id"))
    return {row[0]: row[1] for row in rows if len(row) > 1}


# ------------------------------------------------------------------------------------------------------------- changes


def probe(ctx: Context, *devices: str) -> list[str]:
    """Let the kernel read the partition tables of block devices again. Return the lines of partprobe, [] on success.

    CLI Example:

        salt '*' partition.probe /dev/sda /dev/sdb
    """
    for device in devices:
        _block(ctx, device)
    return output_lines(ctx.host, ["partprobe", "--", *devices])


def set_id(ctx: Context, device: str, minor: int | str, system_id: str) -> list[str]:
    """Set the type of a partition by sfdisk. Return the lines of sfdisk. Raise CommandError for an unknown type.

    system_id
        a number of ``partition.system_types``

    CLI Example:

        salt '*' partition.set_id /dev/sda 1 83
    """
    number = _minor(ctx, device, minor, "set_id")
    if system_id not in system_types(ctx):
        raise CommandError("Invalid system_id passed to partition.set_id")
    return output_lines(ctx.host, ["sfdisk", "--change-id", device, number, system_id])


def mklabel(ctx: Context, device: str, label_type: str) -> list[str]:
    """Make a new partition table on a block device, which destroys the old one. Return the lines of parted, [] on
    success.

    label_type
        aix, amiga, bsd, dvh, gpt, loop, mac, msdos, pc98 or sun

    CLI Example:

        salt '*' partition.mklabel /dev/sda msdos
    """
    if label_type not in _TABLES:
        raise CommandError("Invalid label_type passed to partition.mklabel")
    return _parted(ctx, device, "mklabel", label_type)


def mkpart(
    ctx: Context,
    device: str,
    part_type: str,
    fs_type: str | None = None,
    start: object = None,
    end: object = None,
) -> list[str]:
    """Make a partition on a block device, without a file system. Return the lines of parted, [] on success.

    part_type
        primary, logical or extended
    fs_type
        the file system that it is meant for, which is not made
    start, end
        its borders, with a unit such as MiB or %

    CLI Example:

        salt '*' partition.mkpart /dev/sda primary fs_type=ext4 start=0% end=100%
    """
    _block(ctx, device)
    if part_type not in ("primary", "logical", "extended"):
        raise CommandError("Invalid part_type passed to partition.mkpart")
    if fs_type and fs_type not in _FILE_SYSTEMS:
        raise CommandError("Invalid fs_type passed to partition.mkpart")
    if start is not None and end is not None:
        _boundary(start)
        _boundary(end)
    borders = ["" if each is None else str(each) for each in (start, end)]
    kind = [fs_type] if fs_type else []
    return output_lines(ctx.host, ["parted", "-m", "-s", "--", device, "mkpart", part_type, *kind, *borders])


def mkpartfs(
    ctx: Context,
    device: str,
    part_type: str,
    fs_type: str | None = None,
    start: object = None,
    end: object = None,
) -> list[str]:
    """Make a partition without a file system, as ``partition.mkpart`` does: as in Salt, because parted no longer
    makes file systems. Return the lines of parted, [] on success.

    CLI Example:

        salt '*' partition.mkpartfs /dev/sda logical ext2 440 670
    """
    return mkpart(ctx, device, part_type, fs_type, start, end)


def mkfs(ctx: Context, device: str, fs_type: str) -> list[str] | str:
    """Make a file system, or swap, on a block device, which destroys what is on it. Return the lines of the mkfs
    program; an error text if the host does not have this program.

    fs_type
        btrfs, ext2, ext3, ext4, fat, ntfs, xfs, linux-swap ...

    CLI Example:

        salt '*' partition.mkfs /dev/sda2 ext4
    """
    _block(ctx, device)
    if fs_type not in _FILE_SYSTEMS:
        raise CommandError("Invalid fs_type passed to partition.mkfs")
    program = "mkswap" if fs_type == "linux-swap" else f"mkfs.{'ntfs' if fs_type == 'NTFS' else fs_type}"
    if ctx.host.which(program) is None:
        return f"Error: {program} is unavailable."
    return output_lines(ctx.host, [program, device])


def name(ctx: Context, device: str, partition: int | str, name: str) -> list[str]:
    """Set the name of a partition, in partition tables that have names (GPT, Mac and others). Return the lines of
    parted, [] on success.

    CLI Example:

        salt '*' partition.name /dev/sda 1 'My Documents'
    """
    _block(ctx, device)
    number = _number(partition, "Invalid partition passed to partition.name")
    if re.fullmatch(r"[A-Za-z0-9 _-]*", name) is None:
        raise CommandError("Invalid characters passed to partition.name")
    # parted splits it at blanks itself.
    return _parted(ctx, device, "name", number, f"'{name}'")


def rescue(ctx: Context, device: str, start: object, end: object) -> list[str]:
    """Add a lost partition between the positions ``start`` and ``end`` to the partition table again. Return the
    lines of parted.

    CLI Example:

        salt '*' partition.rescue /dev/sda 0 8056
    """
    _block(ctx, device)
    return _parted(ctx, device, "rescue", _boundary(start), _boundary(end))


def resize(ctx: Context, device: str, minor: int | str, start: object, end: object) -> list[str]:
    """Move the borders of a partition with its file system, which only parted before version 3.0 can do. Return the
    lines of parted.

    CLI Example:

        salt '*' partition.resize /dev/sda 3 200 850
    """
    number = _minor(ctx, device, minor, "resize")
    borders = [_boundary(start), _boundary(end)]
    return output_lines(ctx.host, ["parted", "-m", "-s", "--", device, "resize", number, *borders])


def cp(ctx: Context, device: str, from_minor: int | str, to_minor: int | str) -> list[str]:
    """Copy the file system of a partition to another partition, which only parted before version 3.0 can do. Return
    the lines of parted.

    CLI Example:

        salt '*' partition.cp /dev/sda 2 3
    """
    numbers = [_minor(ctx, device, each, "cp") for each in (from_minor, to_minor)]
    return _parted(ctx, device, "cp", *numbers)


def rm(ctx: Context, device: str, minor: int | str) -> list[str]:
    """Remove a partition from the partition table. Return the lines of parted, [] on success.

    CLI Example:

        salt '*' partition.rm /dev/sda 5
    """
    return _parted(ctx, device, "rm", _minor(ctx, device, minor, "rm"))


def set_(ctx: Context, device: str, minor: int | str, flag: str, state: str) -> list[str]:
    """Set a flag of a partition. Return the lines of parted, [] on success. Raise CommandError for an unknown flag.

    flag
        boot, root, swap, hidden, raid, lvm, lba, bios_grub, esp ...
    state
        on or off; in YAML, quote it

    CLI Example:

        salt '*' partition.set /dev/sda 1 boot '"on"'
    """
    number = _minor(ctx, device, minor, "set")
    if flag not in _FLAGS:
        raise CommandError("Invalid flag passed to partition.set")
    if state not in ("on", "off"):
        raise CommandError("Invalid state passed to partition.set")
    return _parted(ctx, device, "set", number, flag, state)


def toggle(ctx: Context, device: str, partition: int | str, flag: str) -> list[str]:
    """Change a flag of a partition from on to off, or from off to on. Return the lines of parted, [] on success.

    CLI Example:

        salt '*' partition.toggle /dev/sda 1 boot
    """
    _block(ctx, device)
    number = _number(partition, "Invalid partition number passed to partition.toggle")
    if flag not in _FLAGS:
        raise CommandError("Invalid flag passed to partition.toggle")
    return _parted(ctx, device, "toggle", number, flag)


def disk_set(ctx: Context, device: str, flag: str, state: str) -> list[str]:
    """Set a flag of a block device: cylinder_alignment, pmbr_boot or implicit_partition_table. ``state`` as in
    ``partition.set``. Return the lines of parted, [] on success.

    CLI Example:

        salt '*' partition.disk_set /dev/sda pmbr_boot '"on"'
    """
    _block(ctx, device)
    if flag not in _DISK_FLAGS:
        raise CommandError("Invalid flag passed to partition.disk_set")
    if state not in ("on", "off"):
        raise CommandError("Invalid state passed to partition.disk_set")
    return _parted(ctx, device, "disk_set", flag, state)


def disk_toggle(ctx: Context, device: str, flag: str) -> list[str]:
    """Change a flag of a block device from on to off, or from off to on. Return the lines of parted, [] on success.

    CLI Example:

        salt '*' partition.disk_toggle /dev/sda pmbr_boot
    """
    _block(ctx, device)
    if flag not in _DISK_FLAGS:
        raise CommandError("Invalid flag passed to partition.disk_toggle")
    return _parted(ctx, device, "disk_toggle", flag)


# -------------------------------------------------------------------------------------------------------------- parsers


def parse_table(text: str, unit: str | None = None) -> dict[str, dict[str, object]]:
    """Return the output of ``parted -m print`` as a map of ``info`` (the device's properties) and ``partitions``
    (number to a map of properties). Raise CommandError for other output.
    """
    info: dict[str, object] = {}
    partitions: dict[str, object] = {}
    for line in lines_of(text):
        columns = line.rstrip(";").split(":")
        if line in ("BYT;", "CHS;", "CYL;"):
            continue
        if not info:
            if len(columns) not in (len(_INFO) - 1, len(_INFO)):
                raise CommandError(_UNREADABLE)
            info = dict(zip(_INFO, columns, strict=False))
            continue
        fields = ["number", "start", "end", *(["size"] if unit != "chs" else [])]
        if columns[-1] == "free":
            columns.pop()
        else:
            fields += ["file system", "name", "flags"]
        if len(fields) != len(columns):
            raise CommandError(_UNREADABLE)
        partitions[columns[0]] = dict(zip(fields, columns, strict=True))
    return {"info": info, "partitions": partitions}


def _parted(ctx: Context, device: str, *words: str) -> list[str]:
    return output_lines(ctx.host, ["parted", "-m", "-s", device, *words])


def _block(ctx: Context, device: str) -> None:
    if not exists(ctx, device):
        raise CommandError("Invalid device passed to partition module.")


def _minor(ctx: Context, device: str, minor: int | str, function: str) -> str:
    _block(ctx, device)
    return _number(minor, f"Invalid minor number passed to partition.{function}")


def _number(value: int | str, message: str) -> str:
    text = str(value)
    if not text.isdecimal():
        raise CommandError(message)
    return text


def _boundary(value: object) -> str:
    found = _BOUNDARY.fullmatch(str(value))
    if found is None or (found[1] and found[1] not in _UNITS):
        raise CommandError(f'Invalid partition boundary passed: "{value}"')
    return str(value)
