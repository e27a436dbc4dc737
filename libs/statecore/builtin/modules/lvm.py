"""Physical volumes, volume groups and logical volumes (LVM) of the managed host: Salt's ``lvm`` execution module.

``devices`` is a list of devices, or text with commas.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from statecore.model.context import Context
from statecore.model.ports import CommandResult
from statecore.model.text_lines import lines_of

log = logging.getLogger(__name__)

_PHYSICAL = (
    "Physical Volume Device",
    "Volume Group Name",
    "Physical Volume Size (kB)",
    "Internal Physical Volume Number",
    "Physical Volume Status",
    "Physical Volume (not) Allocatable",
    "Current Logical Volumes Here",
    "Physical Extent Size (kB)",
    "Total Physical Extents",
    "Free Physical Extents",
    "Allocated Physical Extents",
)

_GROUP = (
    "Volume Group Name",
    "Volume Group Access",
    "Volume Group Status",
    "Internal Volume Group Number",
    "Maximum Logical Volumes",
    "Current Logical Volumes",
    "Open Logical Volumes",
    "Maximum Logical Volume Size",
    "Maximum Physical Volumes",
    "Current Physical Volumes",
    "Actual Physical Volumes",
    "Volume Group Size (kB)",
    "Physical Extent Size (kB)",
    "Total Physical Extents",
    "Allocated Physical Extents",
    "Free Physical Extents",
    "UUID",
)

_LOGICAL = (
    "Logical Volume Name",
    "Volume Group Name",
    "Logical Volume Access",
    "Logical Volume Status",
    "Internal Logical Volume Number",
    "Open Logical Volumes",
    "Logical Volume Size",
    "Current Logical Extents Associated",
    "Allocated Logical Extents",
    "Allocation Policy",
    "Read Ahead Sectors",
    "Major Device Number",
    "Minor Device Number",
)

#: Options of pvcreate that may be given; the last takes no value.
_PVCREATE = (
    *("metadatasize", "dataalignment", "dataalignmentoffset", "pvmetadatacopies", "metadatacopies", "metadataignore"),
    *("restorefile", "labelsector", "setphysicalvolumesize", "norestorefile"),
)

_VGCREATE = (
    *("addtag", "alloc", "autobackup", "clustered", "maxlogicalvolumes", "maxphysicalvolumes", "metadatatype"),
    *("vgmetadatacopies", "metadatacopies", "physicalextentsize", "zero"),
)

_LVCREATE = (
    *("activate", "chunksize", "contiguous", "discards", "stripes", "stripesize", "minor", "persistent", "mirrors"),
    *("nosync", "noudevsync", "monitor", "ignoremonitoring", "permission", "poolmetadatasize", "readahead"),
    *("regionsize", "type", "virtualsize", "zero", "thin"),
)

#: Options without a value.
_BARE = frozenset({"norestorefile", "nosync", "noudevsync", "ignoremonitoring", "thin"})


def available(ctx: Context) -> str | None:
    """Return None if the host has LVM; else return the reason as text."""
    return None if ctx.host.which("lvm") else "the host has no lvm: install its package lvm2"


def version(ctx: Context) -> str:
    """Return the version of LVM as text, "" if the program shows none.

    CLI Example:

        salt '*' lvm.version
    """
    return next(iter(fullversion(ctx).values()), "")


def fullversion(ctx: Context) -> dict[str, str]:
    """Return the versions of LVM, its library and its driver: a map of the lines of ``lvm version``.

    CLI Example:

        salt '*' lvm.fullversion
    """
    rows = (line.partition(":") for line in lines_of(ctx.host.run(["lvm", "version"]).stdout))
    return {name.strip(): value.strip() for name, sign, value in rows if sign}


# ------------------------------------------------------------------------------------------------------------- queries


def pvdisplay(ctx: Context, pvname: str = "", real: bool = False, quiet: bool = False) -> dict[str, dict[str, str]]:
    """Return LVM's physical volumes: a map of device to a map of its properties; {} if LVM does not know ``pvname``.

    real
        True: the keys are the devices themselves, also if LVM names links to them
    quiet
        no effect; Salt then logs no error

    CLI Example:

        salt '*' lvm.pvdisplay /dev/md0
    """
    found = {}
    for row in _rows(ctx, "pvdisplay", pvname, _PHYSICAL):
        shown = row["Physical Volume Device"]
        device = _real(ctx, shown) if real else shown
        found[device] = {**row, "Real Physical Volume Device": device} if real else row
    return found


def vgdisplay(ctx: Context, vgname: str = "", quiet: bool = False) -> dict[str, dict[str, str]]:
    """Return LVM's volume groups: a map of name to a map of its properties; {} if there is no ``vgname``.

    quiet
        no effect; Salt then logs no error

    CLI Example:

        salt '*' lvm.vgdisplay nova-volumes
    """
    return {row["Volume Group Name"]: row for row in _rows(ctx, "vgdisplay", vgname, _GROUP)}


def lvdisplay(ctx: Context, lvname: str = "", quiet: bool = False) -> dict[str, dict[str, str]]:
    """Return LVM's logical volumes: a map of device (/dev/GROUP/NAME) to a map of its properties; {} if there is no
    ``lvname``.

    The size is in sectors of 512 bytes.

    quiet
        no effect; Salt then logs no error

    CLI Example:

        salt '*' lvm.lvdisplay /dev/vg_myserver/root
    """
    return {row["Logical Volume Name"]: row for row in _rows(ctx, "lvdisplay", lvname, _LOGICAL)}


# --------------------------------------------------------------------------------------------------- physical volumes


def pvcreate(
    ctx: Context, devices: str | Sequence[str], override: bool = True, force: bool = True, **kwargs: object
) -> bool | str:
    """Make devices physical volumes of LVM. Return True, or the error as text.

    override
        False: fail for a device that is a physical volume already; True: skip it
    force
        False: ask nothing and overwrite nothing (-qq instead of --yes)
    kwargs
        options of pvcreate: metadatasize, dataalignment, dataalignmentoffset, pvmetadatacopies, metadatacopies,
        metadataignore, restorefile, norestorefile, labelsector, setphysicalvolumesize

    CLI Example:

        salt mymachine lvm.pvcreate /dev/sdb1,/dev/sdb2 dataalignmentoffset=7s
    """
    if not devices:
        return "Error: at least one device is required"
    names = _listed(devices)
    todo = []
    for device in names:
        if not ctx.host.path(device).exists():
            return f"{device} does not exist"
        if not pvdisplay(ctx, device):
            todo.append(device)
        elif not override:
            return f'Device "{device}" is already an LVM physical volume.'
    if not todo:
        return True
    done = ctx.host.run(["pvcreate", _force(force), *todo, *_options(kwargs, _PVCREATE)])
    if done.retcode:
        return done.stderr.rstrip("\n")
    return next((f'Device "{device}" was not affected.' for device in names if not pvdisplay(ctx, device)), True)


def pvremove(ctx: Context, devices: str | Sequence[str], override: bool = True, force: bool = True) -> bool | str:
    """Remove LVM's label from devices, so that they are no physical volumes any more. Return True, or the error as
    text.

    override
        False: fail for a device that is no physical volume; True: skip it

    CLI Example:

        salt mymachine lvm.pvremove /dev/sdb1,/dev/sdb2
    """
    names = _listed(devices)
    return _on_volumes(ctx, "pvremove", names, override=override, force=force) or next(
        (f'Device "{device}" was not affected.' for device in names if pvdisplay(ctx, device)), True
    )


def pvresize(ctx: Context, devices: str | Sequence[str], override: bool = True, force: bool = True) -> bool | str:
    """Resize LVM's physical volumes to the sizes of their devices. Return True, or the error as text. The arguments
    are those of ``lvm.pvremove``.

    CLI Example:

        salt mymachine lvm.pvresize /dev/sdb1,/dev/sdb2
    """
    return _on_volumes(ctx, "pvresize", _listed(devices), override=override, force=force) or True


# ------------------------------------------------------------------------------------------------------ volume groups


def vgcreate(
    ctx: Context, vgname: str, devices: str | Sequence[str], force: bool = False, **kwargs: object
) -> dict[str, object] | str:
    """Make a volume group of LVM from physical volumes. Return a map of the group to its properties, with the key
    "Output from vgcreate" (a sentence, or the error); a text for missing arguments.

    kwargs
        options of vgcreate: addtag, alloc, autobackup, clustered, maxlogicalvolumes, maxphysicalvolumes, metadatatype,
        vgmetadatacopies, metadatacopies, physicalextentsize, zero

    CLI Example:

        salt mymachine lvm.vgcreate my_vg /dev/sdb1,/dev/sdb2
    """
    if not vgname or not devices:
        return "Error: vgname and device(s) are both required"
    done = ctx.host.run(["vgcreate", vgname, *_listed(devices), _force(force), *_options(kwargs, _VGCREATE)])
    said = _said(done, f'Volume group "{vgname}" successfully created')
    return {**vgdisplay(ctx, vgname), "Output from vgcreate": said}


def vgextend(ctx: Context, vgname: str, devices: str | Sequence[str], force: bool = False) -> dict[str, str] | str:
    """Add physical volumes to a volume group of LVM. Return a map with "Output from vgextend" (a sentence, or the
    error); a text for missing arguments.

    CLI Example:

        salt mymachine lvm.vgextend my_vg /dev/sdb1,/dev/sdb2
    """
    if not vgname or not devices:
        return "Error: vgname and device(s) are both required"
    done = ctx.host.run(["vgextend", vgname, _force(force), *_listed(devices)])
    return {"Output from vgextend": _said(done, f'Volume group "{vgname}" successfully extended')}


def vgremove(ctx: Context, vgname: str, force: bool = True) -> str:
    """Remove a volume group of LVM. Return a sentence that it was removed, or the error of vgremove.

    CLI Example:

        salt mymachine lvm.vgremove vgname
    """
    return _said(ctx.host.run(["vgremove", vgname, _force(force)]), f'Volume group "{vgname}" successfully removed')


# ----------------------------------------------------------------------------------------------------- logical volumes


def lvcreate(
    ctx: Context,
    lvname: str,
    vgname: str,
    size: object = None,
    extents: object = None,
    snapshot: str | None = None,
    pv: str | None = None,
    thinvolume: bool = False,
    thinpool: bool = False,
    force: bool = False,
    **kwargs: object,
) -> dict[str, object] | str:
    """Make a logical volume of LVM. Return a map of its device to its properties, with the key "Output from
    lvcreate" (a sentence, or the error); a text for wrong arguments.

    size, extents
        one of the two: a size such as 10G, or a number of extents such as 100%FREE
    snapshot
        the logical volume of which this is a snapshot
    pv
        the physical volume to use
    thinvolume
        True: a thin volume of the pool in ``vgname`` (GROUP/POOL)
    thinpool
        True: a pool of thin volumes
    kwargs
        options of lvcreate: activate, chunksize, contiguous, discards, stripes, stripesize, minor, persistent, mirrors,
        nosync, noudevsync, monitor, ignoremonitoring, permission, poolmetadatasize, readahead, regionsize, type,
        virtualsize, zero

    CLI Example:

        salt '*' lvm.lvcreate new_volume_name vg_name size=10G
    """
    if size and extents:
        return "Error: Please specify only one of size or extents"
    if thinvolume and thinpool:
        return "Error: Please set only one of thinvolume or thinpool to True"
    if extents and thinvolume:
        return "Error: Thin volume size cannot be specified as extents"
    if not size and not extents:
        return "Error: Either size or extents must be specified"
    kind = ["--thin", "-n"] if thinvolume else ["--thinpool"] if thinpool else ["-n"]
    place = ["-s", f"{vgname}/{snapshot}"] if snapshot else [vgname]
    room = ["-l", str(extents)] if extents else ["-V" if thinvolume else "-L", str(size)]
    more = [*([pv] if pv else []), *_options(kwargs, _LVCREATE), _force(force)]
    done = ctx.host.run([ctx.host.which("lvcreate") or "lvcreate", *kind, lvname, *place, *room, *more])
    group = vgname.split("/", 1)[0] if thinvolume else vgname
    said = _said(done, f'Logical volume "{lvname}" created.')
    return {**lvdisplay(ctx, f"/dev/{group}/{lvname}"), "Output from lvcreate": said}


def lvremove(ctx: Context, lvname: str, vgname: str, force: bool = True) -> str:
    """Remove a logical volume of LVM. Return a sentence that it was removed, or the error of lvremove.

    CLI Example:

        salt '*' lvm.lvremove lvname vgname force=True
    """
    done = ctx.host.run(["lvremove", f"{vgname}/{lvname}", _force(force)])
    return _said(done, f'Logical volume "{lvname}" successfully removed')


def lvresize(
    ctx: Context,
    size: object = None,
    lvpath: str | None = None,
    extents: object = None,
    force: bool = False,
    resizefs: bool = False,
) -> dict[str, str]:
    """Resize a logical volume of LVM. Return a map with "Output from lvresize" (a sentence, or the error); {} for
    wrong arguments.

    size, extents
        one of the two: a size such as 12M, or a number of extents
    lvpath
        the device: /dev/GROUP/NAME
    force
        True: also make it smaller, which may destroy data
    resizefs
        True: also resize the file system in it

    CLI Example:

        salt '*' lvm.lvresize +12M /dev/mapper/vg1-test
    """
    return _sized(ctx, "lvresize", "--force" if force else "-qq", size, lvpath, extents, resizefs=resizefs)


def lvextend(
    ctx: Context,
    size: object = None,
    lvpath: str | None = None,
    extents: object = None,
    force: bool = False,
    resizefs: bool = False,
) -> dict[str, str]:
    """Make a logical volume of LVM larger. The arguments are those of ``lvm.lvresize``. Return a map with "Output
    from lvextend" (a sentence, or the error); {} for wrong arguments.

    CLI Example:

        salt '*' lvm.lvextend +12M /dev/mapper/vg1-test
    """
    return _sized(ctx, "lvextend", _force(force), size, lvpath, extents, resizefs=resizefs)


# -------------------------------------------------------------------------------------------------------------- helpers


def parse(text: str, columns: Sequence[str]) -> list[dict[str, str]]:
    """Return the lines of pvdisplay, vgdisplay or lvdisplay with ``-c`` as maps of column to value.

    Lines with fewer columns, such as messages and devices without LVM, are left out.
    """
    rows = (line.strip().split(":") for line in lines_of(text) if "is a new physical volume" not in line)
    return [dict(zip(columns, row, strict=False)) for row in rows if len(row) >= len(columns)]


def _rows(ctx: Context, program: str, name: str, columns: Sequence[str]) -> list[dict[str, str]]:
    done = ctx.host.run([program, "-c", *([name] if name else [])])
    return [] if done.retcode else parse(done.stdout, columns)


def _real(ctx: Context, device: str) -> str:
    """Return the path of the device that a path of the host leads to, symbolic links resolved."""
    if not device.startswith("/"):
        return device
    path = ctx.host.path(device)
    # Of a mounted host, paths are without links already.
    return "/" + str((path if ctx.host.mounted else path.resolve()).relative_to(ctx.host.root))


def _listed(devices: str | Sequence[str]) -> list[str]:
    return devices.split(",") if isinstance(devices, str) else [str(each) for each in devices]


def _force(force: bool) -> str:
    return "--yes" if force else "-qq"


def _options(given: Mapping[str, object], known: Sequence[str]) -> list[str]:
    """Return those of the given options that are in ``known`` as words for the command line; others are ignored, as
    in Salt.
    """
    words: list[str] = []
    for name, value in given.items():
        if name in known and (value or name in _BARE):
            words += [f"--{name}"] if name in _BARE else [f"--{name}", str(value)]
    return words


def _said(done: CommandResult, success: str) -> str:
    return done.stderr.strip() if done.retcode else success


def _on_volumes(ctx: Context, program: str, devices: Sequence[str], *, override: bool, force: bool) -> str:
    """Run a program of LVM on those devices that are physical volumes. Return "", or the error as text."""
    there: list[str] = []
    for device in devices:
        if pvdisplay(ctx, device):
            there.append(device)
        elif not override:
            return f"{device} is not a physical volume"
    done = ctx.host.run([program, _force(force), *there]) if there else None
    return done.stderr.rstrip("\n") if done is not None and done.retcode else ""


def _sized(
    ctx: Context, program: str, force: str, size: object, lvpath: str | None, extents: object, *, resizefs: bool
) -> dict[str, str]:
    if bool(size) == bool(extents):
        log.error("%s: give one of size and extents", program)
        return {}
    room = ["-L", str(size)] if size else ["-l", str(extents)]
    done = ctx.host.run([program, force, *(["--resizefs"] if resizefs else []), *room, str(lvpath)])
    verb = {"lvresize": "resized", "lvextend": "extended"}[program]
    return {f"Output from {program}": _said(done, f'Logical volume "{lvpath}" successfully {verb}.')}
