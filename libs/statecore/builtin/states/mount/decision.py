"""Inspection of a mount point and the action that ``mount.mounted`` derives from it.

Also holds checks of shared arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from statecore.model.context import Context
from statecore.model.errors import HostError, StateFailure
from statecore.system.hostfiles import mount_table
from statecore.system.hostfiles.mount_table import Leniency, Mounted

#: File systems whose options can only be changed by unmounting and mounting again.
_NO_REMOUNT = ("nfs", "cvfs")

_TAG = re.compile(r"(UUID|LABEL|PARTUUID|PARTLABEL)=\"?([^\"]*)\"?", re.IGNORECASE)
_LOGICAL_VOLUME = re.compile(r"/dev/([^/]+)/([^/]+)")
_FUSE = re.compile(r"\w+#(.+)")


@dataclass(frozen=True, slots=True)
class WantedMount:
    """The mount that ``mount.mounted`` wants: the checked arguments (mount point, device, type, options)."""

    name: str
    device: str
    fstype: str
    opts: tuple[str, ...]
    mkmnt: bool
    user: str | None


@dataclass(frozen=True, slots=True)
class MountStatus:
    """Current situation at a mount point: its real path, the active mount, and the real path and names of the wanted device."""

    #: The mount point after links are resolved.
    place: str
    exists: bool
    #: The active mount; None if nothing is mounted there.
    active: Mounted | None
    #: The wanted device, as the mount table would show it.
    device: str
    #: All names of the mounted device: paths, UUID, label.
    names: tuple[str, ...]
    unknown_label: str


@dataclass(frozen=True, slots=True)
class MountAction:
    """The action that ``mount.mounted`` takes at the mount point (not in fstab), with its comments and changes."""

    #: Comment in test mode.
    would: str
    #: Comment of a run that changes nothing, or the reason of a failure.
    comment: str = ""
    #: False: the state fails with ``comment``.
    ok: bool = True
    #: The device is mounted with other options: remount it.
    remount: bool = False
    #: Another device is mounted: unmount it first.
    unmount: bool = False
    mount: bool = False
    #: Create the mount point, but mount nothing.
    make: bool = False
    changes: Mapping[str, object] = field(default_factory=dict)
    #: True: test mode does not mention fstab, as in Salt.
    skips_fstab: bool = False

    @property
    def has_effect(self) -> bool:
        """True if the action mounts, remounts or unmounts something, creates the mount point, or fails the state."""
        return self.remount or self.unmount or self.mount or self.make or not self.ok


def inspect(ctx: Context, request: WantedMount) -> MountStatus:
    """Return the MountStatus of the wanted mount point: its real path, whether it exists, the mount that is active
    there, and the real path and other names of the wanted device.
    """
    place = mount_table.real_path(ctx.host, request.name)
    active = mount_table.parse(ctx.host.mount_table()).get(place)
    real, label = request.device, ""
    if request.device.startswith("/"):
        real = mount_table.real_path(ctx.host, request.device)
        if "bind" in request.opts or "rbind" in request.opts:
            if active is not None and _is_bind_of(ctx, real, active.root):
                # For a bind mount, the mount table shows the device of the bound directory.
                real = active.device
        elif volume := _LOGICAL_VOLUME.fullmatch(request.device):
            mapper = "/dev/mapper/" + "-".join(part.replace("-", "--") for part in volume.groups())
            real = mapper if ctx.host.path(mapper).exists() else real
    elif tag := _TAG.fullmatch(request.device):
        key = tag[1].upper()
        nodes = [node for node, tags in ctx.call("disk.blkid").items() if tags.get(key, "").lower() == tag[2].lower()]
        real = nodes[0] if nodes else tag[2].lower()
        label = "" if nodes or key != "LABEL" else tag[2]
    elif fuse := _FUSE.fullmatch(request.device):
        real = fuse[1]
    return MountStatus(
        place=place,
        exists=ctx.host.path(request.name).exists(),
        active=active,
        device=real,
        names=_names(ctx, active, real) if active else (),
        unknown_label=label,
    )


def decide(
    ctx: Context, request: WantedMount, found: MountStatus, lenient: Leniency, patterns: Sequence[str], *, wanted: bool
) -> MountAction:
    """Return the MountAction (mount, remount, unmount, nothing or failure, with comments) that ``mount.mounted`` takes
    at a mount point.

    ``patterns``: regular expressions for devices that count as the wanted device; ``wanted``: False if nothing is to be
    mounted now.
    """
    if found.active is None:
        return _not_mounted(request, found) if wanted else _not_wanted(request, found)
    if not wanted:
        return MountAction("", "")
    if found.device not in found.names:
        near = next((each for pattern in patterns for each in found.names if re.match(pattern, each)), None)
        if near is None:
            return _other_device(request, found)
    options = [*found.active.opts, *found.active.superopts]
    lacking = mount_table.missing(request.opts, options, request.fstype, lenient, _number(ctx))
    kept = ctx.call("mount.read_mount_cache", found.place).get("opts") or []
    dropped = [each for each in (kept.split(",") if isinstance(kept, str) else kept) if each not in request.opts]
    if lacking or dropped:
        named = ",".join(sorted(lacking or dropped))
        how = "unmount and mount" if _needs_new_mount(request.fstype) else "remount"
        forced = f"Forced {how} because options ({named}) changed"
        comment = "Target was already mounted"
        would = f"Remount would be forced because options ({named}) changed"
        return MountAction(would, comment, remount=True, changes={"umount": forced}, skips_fstab=True)
    if found.device not in found.names:
        comment = f"An umount will not be forced because device matched device_name_regex: {near}"
        return MountAction(comment, comment)
    return MountAction("Target was already mounted", "Target was already mounted")


def perform(
    ctx: Context, request: WantedMount, found: MountStatus, action: MountAction
) -> tuple[str, dict[str, object]]:
    """Mount, remount or unmount as ``action`` demands, and return (comment, changes).

    Raises StateFailure if the mount or unmount fails.
    """
    changes = dict(action.changes)
    if action.make:
        ctx.call("file.mkdir", request.name, user=request.user)
        return action.comment, changes
    if action.remount:
        _mount_again(ctx, request, found, changes)
        return action.comment, changes
    if action.unmount:
        done = ctx.call("mount.umount", found.place, user=request.user)
        if _is_mounted(ctx, found.place):
            raise StateFailure(f"Unable to unmount {found.place}: {done}", changes)
    done = ctx.call(
        "mount.mount",
        request.name,
        request.device,
        request.mkmnt,
        request.fstype,
        list(request.opts),
        user=request.user,
    )
    if done is not True:
        raise StateFailure(str(done), changes)
    if not _is_mounted(ctx, found.place):
        raise StateFailure(f"mount succeeded, and nothing is mounted at {found.place}", changes)
    return "Target was successfully mounted", {**changes, "mount": True}


def _mount_again(ctx: Context, request: WantedMount, found: MountStatus, changes: dict[str, object]) -> None:
    how = (request.device, request.mkmnt, request.fstype, list(request.opts), request.user)
    if not _needs_new_mount(request.fstype):
        done = ctx.call("mount.remount", found.place, *how)
    else:
        gone = ctx.call("mount.umount", found.place)
        if gone is not True:
            changes["umount"] = str(changes["umount"]).replace(
                "Forced unmount and mount because",
                "Forced a lazy unmount and mount because the previous unmount failed and because the",
            )
            gone = ctx.call("mount.umount", found.place, lazy=True)
        if gone is not True:
            raise StateFailure(f"Unable to unmount {found.place}: {gone}.", {})
        done = ctx.call("mount.mount", found.place, *how)
    if done is not True:
        raise StateFailure(f"{found.place} was not mounted again: {done}", {})


def _not_mounted(request: WantedMount, found: MountStatus) -> MountAction:
    if found.exists:
        return MountAction(f"{request.name} would be mounted", mount=True, skips_fstab=True)
    if request.mkmnt:
        return MountAction(f"{request.name} would be created and mounted", mount=True, skips_fstab=True)
    would = f"{request.name} does not exist and would not be created"
    return MountAction(would, "Mount directory is not present", ok=False, skips_fstab=True)


def _not_wanted(request: WantedMount, found: MountStatus) -> MountAction:
    if found.exists:
        return MountAction(f"{request.name} would not be mounted", f"{request.name} not mounted")
    if request.mkmnt:
        return MountAction(
            f"{request.name} would be created, but not mounted", f"{request.name} was created, not mounted", make=True
        )
    would = f"{request.name} does not exist and would neither be created nor mounted"
    return MountAction(would, f"{request.name} not present and not mounted")


def _other_device(request: WantedMount, found: MountStatus) -> MountAction:
    would = f"An umount would have been forced because devices do not match.  Watched: {request.device}"
    real = f" ({found.device})" if found.device != request.device else ""
    current = ", ".join(found.names)
    forced = f"Forced unmount because devices don't match. Wanted: {request.device}{real}, current: {current}"
    return MountAction(would, unmount=True, mount=True, changes={"umount": forced})


def _is_bind_of(ctx: Context, path: str, root: str) -> bool:
    """Return True if a bind mount with this ``root`` inside its file system shows the host's directory ``path``."""
    origin = mount_table.holder(mount_table.parse(ctx.host.mount_table()), path)
    if origin is None:
        # The host's root is a directory of a larger file system, which its mount table does not show.
        return f"{root}/".endswith(f"{path}/")
    below = path.removeprefix(origin.point.rstrip("/"))
    return root.rstrip("/") == (origin.root.rstrip("/") + below).rstrip("/")


def _needs_new_mount(fstype: str) -> bool:
    return fstype in _NO_REMOUNT or fstype.startswith("fuse")


def _is_mounted(ctx: Context, place: str) -> bool:
    return place in mount_table.parse(ctx.host.mount_table())


def _names(ctx: Context, active: Mounted, wanted: str) -> tuple[str, ...]:
    names = [active.device]
    if active.device.startswith("/"):
        names += [mount_table.real_path(ctx.host, active.device), ctx.call("mount.active")[active.point]["alt_device"]]
    if wanted not in names:
        # blkid reads the disks, so it is only called if paths do not match.
        tags = ctx.call("disk.blkid").get(active.device, {})
        names += [tags.get("UUID", "").lower(), tags.get("LABEL", "")]
    return tuple(dict.fromkeys(each for each in names if each))


def _number(ctx: Context) -> Callable[[str, str], str]:
    def number(kind: str, name: str) -> str:
        try:
            return str(ctx.host.uid(name) if kind == "uid" else ctx.host.gid(name))
        except HostError:
            return name

    return number


def without_slash(name: str) -> str:
    """Return a mount point without a trailing slash."""
    return name.rstrip("/") or "/"


def words(value: object) -> tuple[str, ...]:
    """Return the words of an argument: a list, or a text with commas."""
    if isinstance(value, str):
        return tuple(each for each in value.split(",") if each)
    return tuple(str(each) for each in value) if isinstance(value, Sequence) else ()


def option_fault(key: str, value: object) -> str | None:
    """Return the error message for an argument of a ``mount`` state that is neither a list of words nor text with
    commas; None if it is valid.
    """
    fits = isinstance(value, str) or (
        isinstance(value, list | tuple) and all(isinstance(each, str | int) and each != "" for each in value)
    )
    return None if fits else f"{key} must be a list of words, or text with commas, not {value!r}"
