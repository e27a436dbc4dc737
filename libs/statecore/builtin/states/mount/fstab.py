"""``mount.fstab_present`` and ``mount.fstab_absent``: single entries of fstab."""

from __future__ import annotations

from collections.abc import Sequence

from statecore.builtin.states.mount.decision import option_fault, without_slash
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step
from statecore.system.hostfiles import fstab as fstab_form

#: Allowed values of ``mount_by``.
_NAMES = ("device", "label", "uuid", "partlabel", "partuuid")


def fstab_present(
    ctx: Context,
    name: str,
    fs_file: str,
    fs_vfstype: str,
    fs_mntops: str | Sequence[str] = "defaults",
    fs_freq: int = 0,
    fs_passno: int = 0,
    mount_by: str | None = None,
    config: str = "/etc/fstab",
    mount: bool = True,
    match_on: str | Sequence[str] = "auto",
    not_change: bool = False,
    fs_mount: bool = True,
) -> Plan:
    """Add or change an entry of fstab for the device ``name`` at the mount point ``fs_file``.

    fs_vfstype, fs_mntops, fs_freq, fs_passno
        the other fields of the entry
    mount_by
        how the entry names the device: device, label, uuid, partlabel or partuuid. The value is read with blkid.
    config
        path of the fstab file
    mount
        True: mount the file system after a new entry was added
    match_on
        fields that identify an existing entry. ``auto``: the device, or the mount point for file systems without a
        device.
    not_change
        True: leave an existing entry as it is
    fs_mount
        no effect; for AIX only
    """
    fs_file = without_slash(fs_file)
    if wrong := option_fault("fs_mntops", fs_mntops):
        return Plan.failed(wrong)
    if wrong := _name_fault(mount_by):
        return Plan.failed(wrong)
    spec = _spec(ctx, name, mount_by)
    if spec is None:
        return Plan.failed(f"Device {name} cannot be converted to {mount_by}")
    entry = (fs_file, spec, fs_vfstype, fs_mntops, fs_freq, fs_passno, config)
    how = {"match_on": match_on, "not_change": not_change}
    try:
        status = ctx.call("mount.set_fstab", *entry, test=True, **how)
    except CommandError as error:
        return Plan.failed(f"{fs_file} entry cannot be created in {config}: {error}.")
    if status == "present":
        return Plan.unchanged(f"{fs_file} entry {'is' if ctx.test else 'was'} already in {config}.")
    new = status == "new"

    def work() -> Outcome:
        ctx.call("mount.set_fstab", *entry, **how)
        changes = {"persist": status}
        lines = [f"{fs_file} entry {'added' if new else 'updated'} in {config}."]
        if not (new and mount):
            return Outcome(lines[0], changes)
        done = ctx.call("mount.mount", fs_file)
        lines.append(f"Mounted {name} on {fs_file}" if done is True else f"Error while mounting {_reason(done)}")
        return Outcome("\n".join(lines), changes, ok=done is True)

    would = [f"{fs_file} entry will be {'written' if new else 'updated'} in {config}."]
    if new and mount:
        would.append(f"Will mount {name} on {fs_file}")
    return Plan.change("\n".join(would), [Step(f"write the entry of {fs_file} into {config}", work)])


def fstab_absent(
    ctx: Context, name: str, fs_file: str, mount_by: str | None = None, config: str = "/etc/fstab"
) -> Plan:
    """Remove the fstab entry of the device ``name`` at the mount point ``fs_file``.

    ``mount_by``: how the entry names the device.
    """
    fs_file = without_slash(fs_file)
    if wrong := _name_fault(mount_by):
        return Plan.failed(wrong)
    spec = _spec(ctx, name, mount_by)
    if spec is None:
        return Plan.failed(f"Device {name} cannot be converted to {mount_by}")
    entries = ctx.call("mount.fstab", config)
    there = any(
        point.rstrip("_") == fstab_form.written(fs_file).rstrip("_") and each["device"] == fstab_form.written(spec)
        for point, each in entries.items()
    )
    if not there:
        return Plan.unchanged(f"{fs_file} entry is already missing in {config}.")

    def work() -> Outcome:
        ctx.call("mount.rm_fstab", fs_file, spec, config)
        return Outcome(f"{fs_file} entry removed from {config}.", {"persist": "removed"})

    would = f"{fs_file} entry will be removed from {config}."
    return Plan.change(would, [Step(f"remove the entry of {fs_file} from {config}", work)])


def _name_fault(mount_by: str | None) -> str | None:
    if mount_by is None or mount_by in _NAMES:
        return None
    return f"mount_by must be one of {', '.join(_NAMES)}, not {mount_by!r}"


def _spec(ctx: Context, device: str, by: str | None) -> str | None:
    """Return the device as fstab names it (``by``: device, label, uuid, ...); None if blkid does not know the device."""
    if not by or (by == "device" and device.startswith("/")) or device.startswith(f"{by.upper()}="):
        return device
    named = {"device": device} if device.startswith("/") else {"token": device}
    found: dict[str, dict[str, str]] = ctx.call("disk.blkid", **named)
    if len(found) != 1:
        return None
    ((node, tags),) = found.items()
    if by == "device":
        return node
    return f"{by.upper()}={tags[by.upper()]}" if by.upper() in tags else None


def _reason(answer: object) -> str:
    return str(answer).partition(":")[2] or str(answer)
