"""Salt's ``lvm`` states: physical volumes, volume groups and logical volumes.

/dev/sdb:
  lvm.pv_present
data:
  lvm.vg_present:
    - devices: /dev/sdb
media:
  lvm.lv_present:
    - vgname: data
    - size: 10G
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.model.types import Outcome, Plan, Step

#: Volume group of physical volumes that belong to none.
_NO_GROUP = ("", "#orphans_lvm2")

#: Unit -> megabytes.
_UNITS = {"s": 1 / 2048, "m": 1, "g": 1024, "t": 1024**2, "p": 1024**3}

_SIZE = re.compile(r"(\d+)([a-z]?)b?")


def available(ctx: Context) -> str | None:
    """Return None if the host has LVM; else return the reason as text."""
    return None if ctx.host.which("lvm") else "the host has no lvm: install its package lvm2"


def pv_present(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Make the device ``name`` a physical volume. Nothing happens if it is one; the state fails if pvcreate fails.
    Other arguments are options of ``lvm.pvcreate``.
    """
    if ctx.call("lvm.pvdisplay", name, quiet=True):
        return Plan.unchanged(f"Physical Volume {name} already present")

    def work() -> Outcome:
        said = ctx.call("lvm.pvcreate", name, **kwargs)
        if not ctx.call("lvm.pvdisplay", name):
            return Outcome(f"Failed to create Physical Volume {name}", ok=False)
        return Outcome(f"Created Physical Volume {name}", {"created": said})

    return Plan.change(f"Physical Volume {name} is set to be created", [Step(f"make {name} a physical volume", work)])


def pv_absent(ctx: Context, name: str) -> Plan:
    """Remove LVM's label from the device ``name``, so that it is no physical volume any more. Nothing happens if it is
    none; the state fails if pvremove fails.
    """
    if not ctx.call("lvm.pvdisplay", name, quiet=True):
        return Plan.unchanged(f"Physical Volume {name} does not exist")

    def work() -> Outcome:
        said = ctx.call("lvm.pvremove", name)
        if ctx.call("lvm.pvdisplay", name, quiet=True):
            return Outcome(f"Failed to remove Physical Volume {name}", ok=False)
        return Outcome(f"Removed Physical Volume {name}", {"removed": said})

    return Plan.change(
        f"Physical Volume {name} is set to be removed", [Step(f"remove the physical volume {name}", work)]
    )


def vg_present(ctx: Context, name: str, devices: str | Sequence[str] | None = None, **kwargs: object) -> Plan:
    """Create the volume group ``name``, or add the missing devices to an existing one. The state fails for a device
    that is no physical volume or belongs to another group.

    devices
        a list of physical volumes, or text with commas
    kwargs
        options of ``lvm.vgcreate``
    """
    names = devices.split(",") if isinstance(devices, str) else list(devices or ())
    if ctx.call("lvm.vgdisplay", name, quiet=True):
        return _extended(ctx, name, names)

    def work() -> Outcome:
        said = ctx.call("lvm.vgcreate", name, names, **kwargs)
        if not ctx.call("lvm.vgdisplay", name):
            return Outcome(f"Failed to create Volume Group {name}", ok=False)
        return Outcome(f"Created Volume Group {name}", {"created": said})

    return Plan.change(f"Volume Group {name} is set to be created", [Step(f"make the volume group {name}", work)])


def vg_absent(ctx: Context, name: str) -> Plan:
    """Remove the volume group ``name``. Nothing happens if it does not exist; the state fails if vgremove fails."""
    if not ctx.call("lvm.vgdisplay", name, quiet=True):
        return Plan.unchanged(f"Volume Group {name} already absent")

    def work() -> Outcome:
        said = ctx.call("lvm.vgremove", name)
        if ctx.call("lvm.vgdisplay", name, quiet=True):
            return Outcome(f"Failed to remove Volume Group {name}", ok=False)
        return Outcome(f"Removed Volume Group {name}", {"removed": said})

    return Plan.change(f"Volume Group {name} is set to be removed", [Step(f"remove the volume group {name}", work)])


def lv_present(
    ctx: Context,
    name: str,
    vgname: str | None = None,
    size: object = None,
    extents: object = None,
    snapshot: str | None = None,
    pv: str = "",
    thinvolume: bool = False,
    thinpool: bool = False,
    force: bool = False,
    resizefs: bool = False,
    **kwargs: object,
) -> Plan:
    """Create the logical volume ``name``, or give an existing one another size. The state fails if it would become
    smaller without ``force``.

    vgname
        the volume group; of a thin volume GROUP/POOL
    size
        the size: megabytes, or with a unit s, m, g, t, p
    extents
        instead of the size: a number of extents, or a share such as 100%FREE, which only counts for a new volume
    snapshot
        the name of a snapshot to make of the volume ``name``
    pv
        the physical volume to use
    thinvolume
        True: a thin volume
    thinpool
        True: a pool of thin volumes
    force
        True: also make the volume smaller, which may destroy data
    resizefs
        True: also resize the file system in it
    kwargs
        options of ``lvm.lvcreate``
    """
    if extents and size:
        return Plan.failed("Only one of extents or size can be specified.")
    wanted = _megabytes(size) if size else None
    origin, own = (name, snapshot) if snapshot else (None, name)
    group = str(vgname).split("/", 1)[0] if thinvolume else vgname
    path = f"/dev/{group}/{own}"
    now = ctx.call("lvm.lvdisplay", path, quiet=True).get(path)
    if now:
        return _resized(ctx, own, path, now, size, wanted, extents, force=force, resizefs=resizefs)

    def work() -> Outcome:
        said = ctx.call(
            "lvm.lvcreate",
            own,
            vgname,
            size=size,
            extents=extents,
            snapshot=origin,
            pv=pv,
            thinvolume=thinvolume,
            thinpool=thinpool,
            force=force,
            **kwargs,
        )
        if not ctx.call("lvm.lvdisplay", path):
            error = said["Output from lvcreate"] if isinstance(said, dict) else said
            return Outcome(f"Failed to create Logical Volume {own}. Error: {error}", ok=False)
        return Outcome(f"Created Logical Volume {own}", {"created": said})

    return Plan.change(f"Logical Volume {own} is set to be created", [Step(f"make the logical volume {own}", work)])


def lv_absent(ctx: Context, name: str, vgname: str | None = None) -> Plan:
    """Remove the logical volume ``name`` with its data. Nothing happens if it does not exist; the state fails if
    lvremove fails.

    vgname
        the volume group
    """
    path = f"/dev/{vgname}/{name}"
    if not ctx.call("lvm.lvdisplay", path, quiet=True):
        return Plan.unchanged(f"Logical Volume {name} already absent")

    def work() -> Outcome:
        said = ctx.call("lvm.lvremove", name, vgname)
        if ctx.call("lvm.lvdisplay", path, quiet=True):
            return Outcome(f"Failed to remove Logical Volume {name}", ok=False)
        return Outcome(f"Removed Logical Volume {name}", {"removed": said})

    return Plan.change(f"Logical Volume {name} is set to be removed", [Step(f"remove the logical volume {name}", work)])


def _extended(ctx: Context, name: str, devices: Sequence[str]) -> Plan:
    """Return the plan that adds the missing devices to an existing volume group."""
    notes = [f"Volume Group {name} already present"]
    ok = True
    free: list[tuple[str, str]] = []
    for device in devices:
        volumes = ctx.call("lvm.pvdisplay", device, real=True)
        real = next((each for each, row in volumes.items() if row.get("Volume Group Name") is not None), None)
        group = volumes[real]["Volume Group Name"] if real else None
        if group is None or real is None:
            notes.append(f"pv {device} is not present")
            ok = False
        elif group == name:
            notes.append(f"{device} is part of Volume Group")
        elif group in _NO_GROUP:
            free.append((device, real))
        else:
            notes.append(f"{device} is part of {group}")
            ok = False

    def add(device: str, real: str) -> Outcome:
        ctx.call("lvm.vgextend", name, device)
        if ctx.call("lvm.pvdisplay", device, real=True).get(real, {}).get("Volume Group Name") != name:
            return Outcome(f"{device} could not be added", ok=False)
        return Outcome("", {device: f"added to {name}"})

    if not free:
        return Plan(result=ok, comment="\n".join(notes))
    would = {device: f"added to {name}" for device, _ in free}
    steps = [Step(f"add {device} to {name}", partial(add, device, real)) for device, real in free]
    return Plan.change("", steps, would, notes)._replace(result=ok)


def _resized(
    ctx: Context,
    name: str,
    path: str,
    now: dict[str, str],
    size: object,
    wanted: float | None,
    extents: object,
    *,
    force: bool,
    resizefs: bool,
) -> Plan:
    """Return the plan for an existing logical volume: unchanged, or another size."""
    there = f"Logical Volume {name} already present"
    old = _megabytes(f"{now['Logical Volume Size']}s")
    old_extents = int(now["Current Logical Extents Associated"])
    if "%" in str(extents):
        return Plan.unchanged(f"{there}, {extents} won't be resized.")
    smaller = wanted < old if wanted is not None else bool(extents) and int(str(extents)) < old_extents
    same = wanted == old if wanted is not None else not extents or int(str(extents)) == old_extents
    if same:
        return Plan.unchanged(there)
    if smaller and not force:
        return Plan.failed("To reduce a Logical Volume option 'force' must be True.")

    def work() -> Outcome:
        room = {"size": size} if size else {"extents": extents}
        said = ctx.call("lvm.lvresize", lvpath=path, resizefs=resizefs, force=force, **room)
        new = _megabytes(f"{ctx.call('lvm.lvdisplay', path, quiet=True)[path]['Logical Volume Size']}s")
        if new == old:
            return Outcome(f"Failed to resize Logical Volume {name}.\nError: {said['Output from lvresize']}", ok=False)
        return Outcome(f"Resized Logical Volume {name}", {"resized": said})

    return Plan.change(f"Logical Volume {name} is set to be resized", [Step(f"resize {name}", work)])


def _megabytes(size: object) -> float:
    """Return a size such as ``10G`` in megabytes. A number without a unit is megabytes.

    Raises InvocationError for other texts.
    """
    match = _SIZE.fullmatch(str(size).lower())
    if match is None:
        raise InvocationError(f"Size {size} is invalid.")
    if (match[2] or "m") not in _UNITS:
        raise InvocationError(f"Unit {match[2]} is invalid.")
    return int(match[1]) * _UNITS[match[2] or "m"]
