"""Mounted file systems, the file fstab, and swap of the managed host: Salt's ``mount`` execution module.

For a mounted host, only file systems mounted below its root are listed, with the host's own paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from statecore.host.content import managed_file, private_files
from statecore.host.content.managed_file import Attributes
from statecore.model import yaml
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError
from statecore.model.text_lines import lines_of, text_of
from statecore.system.hostfiles import fstab as fstab_form
from statecore.system.hostfiles import mount_table

#: Key of ctx.scratch: the result of disk.blkid for this run. blkid may have to wake up disks.
_BLKID = "disk.blkid"


def active(ctx: Context, extended: bool = False) -> dict[str, dict[str, object]]:
    """Return the host's mounted file systems: a map of mount point to device, alt_device, fstype and opts.

    extended
        True: also return mountid, parentid, major, minor, root, superopts, device_uuid and device_label

    CLI Example:

        salt '*' mount.active
    """
    table = mount_table.parse(ctx.host.mount_table())
    if not extended:
        return {
            point: {
                "device": row.device,
                "alt_device": _alternative(ctx, row.device),
                "fstype": row.fstype,
                "opts": row.plain_opts(),
            }
            for point, row in table.items()
        }
    if _BLKID not in ctx.scratch:
        ctx.scratch[_BLKID] = ctx.call("disk.blkid")
    known = ctx.scratch[_BLKID]
    return {
        point: {
            "mountid": row.mountid,
            "parentid": row.parentid,
            "major": row.major,
            "minor": row.minor,
            "root": row.root,
            "opts": row.opts,
            "fstype": row.fstype,
            "device": row.device,
            "alt_device": _alternative(ctx, row.device),
            "superopts": row.superopts,
            "device_uuid": known.get(row.device, {}).get("UUID", "").lower() or None,
            "device_label": known.get(row.device, {}).get("LABEL"),
        }
        for point, row in table.items()
    }


def is_mounted(ctx: Context, name: str) -> bool:
    """Return whether a file system is mounted at the path ``name`` of the host.

    CLI Example:

        salt '*' mount.is_mounted /mnt/share
    """
    return name.startswith("/") and mount_table.real_path(ctx.host, name) in mount_table.parse(ctx.host.mount_table())


def get_mount_from_path(ctx: Context, path: str) -> str:
    """Return the mount point of the file system that holds a path of the host; "/" if the host's mount table does not
    list it.
    """
    found = _holder(ctx, path)
    return found.point if found else "/"


def get_device_from_path(ctx: Context, path: str) -> str | None:
    """Return the device of the file system that holds the path, None if the host's mount table does not list it."""
    found = _holder(ctx, path)
    return found.device if found else None


# ----------------------------------------------------------------------------------------------- fstab


def fstab(ctx: Context, config: str = "/etc/fstab") -> dict[str, dict[str, object]]:
    """Return the entries of fstab: a map of mount point to device, fstype, opts, dump and pass. Return {} if the file
    does not exist.

    A second entry for the same mount point has the key with ``_`` appended.

    CLI Example:

        salt '*' mount.fstab
    """
    found: dict[str, dict[str, object]] = {}
    for entry in fstab_form.parse(_text(ctx, config) or ""):
        name = entry.name
        while name in found:
            name += "_"
        found[name] = {
            "device": entry.device,
            "fstype": entry.fstype,
            "opts": entry.opts.split(","),
            "dump": entry.dump,
            "pass": entry.pass_num,
        }
    return found


def set_fstab(
    ctx: Context,
    name: str,
    device: str,
    fstype: str,
    opts: str | Sequence[str] = "defaults",
    dump: object = 0,
    pass_num: object = 0,
    config: str = "/etc/fstab",
    test: bool = False,
    match_on: str | Sequence[str] = "auto",
    not_change: bool = False,
    **kwargs: object,
) -> str:
    """Add an entry to fstab, or change the existing entry. Return "new", "change" or "present".

    match_on
        fields that identify the existing entry: device, name, fstype, opts, dump, pass_num. ``auto``: the name for file
        systems
        without a block device, else the device
    not_change
        True: leave an existing entry unchanged
    test
        True: write nothing

    CLI Example:

        salt '*' mount.set_fstab /mnt/foo /dev/sdz1 ext4
    """
    options = opts if isinstance(opts, str) else ",".join(str(each) for each in opts)
    words = (fstab_form.written(str(each)) for each in (device, name, fstype, options, dump, pass_num))
    entry = fstab_form.FstabEntry(*words)
    if empty := [key for key, value in zip(entry._fields, entry, strict=True) if not value]:
        raise InvocationError(f"mount.set_fstab: {', '.join(empty)} must not be empty")
    old = _text(ctx, config)
    if old is None:
        raise CommandError(f'Bad config file "{config}"')
    known_by = fstab_form.criteria(old, entry, match_on)
    status, new = fstab_form.put(old, entry, known_by, not_change=not_change)
    if new != old and not test and not ctx.test:
        _write(ctx, config, new)
    return status


def rm_fstab(ctx: Context, name: str, device: str | None = None, config: str = "/etc/fstab") -> bool:
    """Remove the entries of a mount point from fstab, or with ``device`` only those of this device. Return True, even
    if there were none.

    CLI Example:

        salt '*' mount.rm_fstab /mnt/foo /dev/sdg
    """
    old = _text(ctx, config)
    if old is None:
        raise CommandError(f"Couldn't read from {config}: there is no such file")
    new = fstab_form.without(old, fstab_form.written(name), fstab_form.written(device) if device else None)
    if new != old:
        _write(ctx, config, new)
    return True


# -------------------------------------------------------------------------------------------- programs


def mount(
    ctx: Context,
    name: str,
    device: str | bool | None = False,
    mkmnt: bool = False,
    fstype: str = "",
    opts: str | Sequence[str] | None = "defaults",
    user: str | None = None,
    util: str = "mount",
) -> object:
    """Mount a file system. Without a device, the entry of fstab is used. Return True, or the error of ``mount`` as
    text.

    mkmnt
        True: create the mount point if it does not exist
    user
        user that runs ``mount``

    CLI Example:

        salt '*' mount.mount /mnt/foo /dev/sdz1 True
    """
    if util != "mount":
        raise InvocationError(f"not supported: util={util}; the only supported value is mount")
    if mkmnt and not ctx.host.path(name).exists():
        owner = Attributes(user, None if user is None else ctx.host.login_group(user))
        managed_file.make_directories(ctx.host, ctx.host.path(name), owner, ctx.host.root)
    if not device or device is True:
        return _run(ctx, ["mount", name], user)
    return _run(ctx, ["mount", *_options(opts), *_type(fstype), str(device), name], user)


def remount(
    ctx: Context,
    name: str,
    device: str,
    mkmnt: bool = False,
    fstype: str = "",
    opts: str | Sequence[str] = "defaults",
    user: str | None = None,
) -> object:
    """Mount a file system again with other options, or for the first time if it is not mounted. Return True, or the
    error of ``mount`` as text.
    """
    if not is_mounted(ctx, name):
        return mount(ctx, name, device, mkmnt, fstype, opts, user)
    words = opts.split(",") if isinstance(opts, str) else [str(each) for each in opts]
    again = words if "remount" in words else [*words, "remount"]
    return _run(ctx, ["mount", *_options(again), *_type(fstype), device, name], user)


def umount(
    ctx: Context,
    name: str,
    device: str | None = None,
    user: str | None = None,
    util: str = "mount",
    lazy: bool = False,
) -> object:
    """Unmount a path, or with ``device`` this device. Return True, or the error of ``umount`` as text.

    lazy
        True: unmount as soon as no process uses the file system

    CLI Example:

        salt '*' mount.umount /mnt/foo
    """
    if util != "mount":
        raise InvocationError(f"not supported: util={util}; the only supported value is mount")
    if not is_mounted(ctx, name):
        return f"{name} does not have anything mounted"
    return _run(ctx, ["umount", *(["-l"] if lazy else []), device or name], user)


def is_fuse_exec(ctx: Context, cmd: str) -> bool:
    """Return whether a program of the host is linked with libfuse. Raise CommandError if the host has no ldd.

    CLI Example:

        salt '*' mount.is_fuse_exec sshfs
    """
    program = ctx.host.which(cmd)
    if program is None:
        return False
    if ctx.host.which("ldd") is None:
        raise CommandError("mount.is_fuse_exec needs ldd, which the host does not have")
    return "libfuse" in ctx.host.run(["ldd", program]).stdout


# ------------------------------------------------------------------------------------------------ swap


def swaps(ctx: Context) -> dict[str, dict[str, str]]:
    """Return the swap that the host uses: a map of swap device or file to type, size, used and priority.

    CLI Example:

        salt '*' mount.swaps
    """
    # The kernel's table also counts for a mounted host, unless the host has its own /proc.
    own = ctx.host.path("/proc/swaps")
    text = text_of(own if own.is_file() else Path("/proc/swaps"))
    rows = (line.split() for line in lines_of(text)[1:])
    names = ("type", "size", "used", "priority")
    return {
        mount_table.plain(row[0]): dict(zip(names, row[1:5], strict=True)) for row in rows if len(row) >= len(names) + 1
    }


def swapon(ctx: Context, name: str, priority: object = None) -> dict[str, object]:
    """Start to use a swap device or file. Return a map with ``stats`` (an entry of ``mount.swaps``) and ``new``
    (whether the swap was not in use before), {} on failure.

    CLI Example:

        salt '*' mount.swapon /root/swapfile
    """
    known = swaps(ctx)
    if name in known:
        return {"stats": known[name], "new": False}
    ctx.host.run(["swapon", name, *(["-p", str(priority)] if priority else [])])
    known = swaps(ctx)
    return {"stats": known[name], "new": True} if name in known else {}


def swapoff(ctx: Context, name: str) -> bool | None:
    """Stop the use of a swap device or file. Return whether this succeeded; None if it was not in use.

    CLI Example:

        salt '*' mount.swapoff /root/swapfile
    """
    if name not in swaps(ctx):
        return None
    ctx.host.run(["swapoff", name])
    return name not in swaps(ctx)


# ----------------------------------------------------------------------------------------------- cache


def read_mount_cache(ctx: Context, name: str) -> dict[str, object]:
    """Return the data of the last mount that a state made at a path: device, fstype, mkmnt, opts; {} if there is
    none.
    """
    found = _cache(ctx).get(name)
    return dict(found) if isinstance(found, Mapping) else {}


def write_mount_cache(
    ctx: Context, real_name: str, device: str, mkmnt: bool, fstype: str, mount_opts: str | Sequence[str]
) -> bool:
    """Store the data (device, fstype, mkmnt, opts) of a mount that a state made at the path ``real_name``, for
    ``mount.read_mount_cache``. Return True.
    """
    options = mount_opts if isinstance(mount_opts, str) else [str(each) for each in mount_opts]
    entry = {"device": device, "fstype": fstype, "mkmnt": mkmnt, "opts": options}
    return _keep(ctx, {**_cache(ctx), real_name: entry})


def delete_mount_cache(ctx: Context, real_name: str) -> bool:
    """Delete the stored data of the mount that a state made at a path. Return True."""
    known = _cache(ctx)
    return (
        _keep(ctx, {name: entry for name, entry in known.items() if name != real_name}) if real_name in known else True
    )


def _cache(ctx: Context) -> dict[str, object]:
    # Salt's format and path, so that a minion that replaces Salt's keeps its cache.
    try:
        data = yaml.load(_cache_file(ctx).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, yaml.YamlFault) as error:
        raise CommandError(
            f"{_cache_file(ctx)} cannot be read ({error}); delete the file, states then mount again"
        ) from error
    known = data.get("mounts") if isinstance(data, dict) else None
    return dict(known) if isinstance(known, dict) else {}


def _keep(ctx: Context, known: Mapping[str, object]) -> bool:
    file = _cache_file(ctx)
    try:
        private_files.write(file, yaml.dump({"mounts": dict(known)}))
    except OSError as error:
        raise CommandError(f"Unable to write mount cache {file}: {error.strerror}") from error
    return True


def _cache_file(ctx: Context) -> Path:
    return Path(ctx.opts["cachedir"]) / "mounts"


# ------------------------------------------------------------------------------------------ helpers


def _holder(ctx: Context, path: str) -> mount_table.Mounted | None:
    table = mount_table.parse(ctx.host.mount_table())
    return mount_table.holder(table, mount_table.real_path(ctx.host, path))


def _alternative(ctx: Context, device: str) -> str:
    """Return the file that a loop device shows, as ``mount -l`` prints it. Return any other device unchanged."""
    name = device.removeprefix("/dev/")
    if not name.startswith("loop") or "/" in name:
        return device
    try:
        return ctx.host.path(f"/sys/block/{name}/loop/backing_file").read_text("utf-8", "surrogateescape").strip()
    except (OSError, HostError):
        return device


def _text(ctx: Context, config: str) -> str | None:
    data = managed_file.read(ctx.host.path(config), config)
    return None if data is None else data.decode("utf-8", "surrogateescape")


def _write(ctx: Context, config: str, text: str) -> None:
    managed_file.replace(ctx.host, ctx.host.path(config), text.encode("utf-8", "surrogateescape"), Attributes())


def _options(opts: str | Sequence[str] | None) -> list[str]:
    text = opts if isinstance(opts, str) else ",".join(str(each) for each in opts or ())
    return ["-o", text] if text else []


def _type(fstype: str) -> list[str]:
    return ["-t", fstype] if fstype else []


def _run(ctx: Context, words: list[str], user: str | None) -> object:
    done = ctx.host.run(words, runas=user)
    if done.retcode:
        ctx.scratch["retcode"] = done.retcode
    return True if done.retcode == 0 else done.stderr.strip() or f"{words[0]} failed with exit code {done.retcode}"
