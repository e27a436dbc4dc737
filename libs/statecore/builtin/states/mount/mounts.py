"""``mount.mounted``, ``mount.unmounted``, ``mount.swap``, and ``mod_watch``, which remounts after a watched state
changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statecore.builtin.states.mount import decision
from statecore.builtin.states.mount.decision import option_fault, without_slash, words
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import FileChange, Outcome, Plan, Step
from statecore.system.hostfiles import fstab, mount_table
from statecore.system.hostfiles.mount_table import Leniency

_KEPT = {"new": "new", "change": "update"}


_PERSISTED = {
    "present": "Entry already exists in the fstab.",
    "new": "Added new entry to the fstab.",
    "change": "Updated the entry in the fstab.",
}


def mounted(
    ctx: Context,
    name: str,
    device: str,
    fstype: str,
    mkmnt: bool = False,
    opts: str | Sequence[str] = "defaults",
    dump: int = 0,
    pass_num: int = 0,
    config: str = "/etc/fstab",
    persist: bool = True,
    mount: bool = True,
    user: str | None = None,
    match_on: str | Sequence[str] = "auto",
    device_name_regex: str | Sequence[str] | None = None,
    extra_mount_invisible_options: Sequence[str] | None = None,
    extra_mount_invisible_keys: Sequence[str] | None = None,
    extra_mount_ignore_fs_keys: Mapping[str, Sequence[str]] | None = None,
    extra_mount_translate_options: Mapping[str, str] | None = None,
    hidden_opts: str | Sequence[str] | None = None,
    bind_mount_copy_active_opts: bool = True,
) -> Plan:
    """Mount a device at the mount point ``name``, with the given options.

    device
        path, ``UUID=``, ``LABEL=``, ``PARTUUID=`` or ``PARTLABEL=``, or another source that the file system accepts
    mkmnt
        True: create a missing mount point
    opts
        list of mount options, or text with commas
    persist, config, dump, pass_num
        True: also write an entry with these fields into fstab (``config``)
    match_on
        fields that identify an existing entry, as in ``mount.set_fstab``
    mount
        False: write fstab only, mount nothing now
    user
        user that mounts
    device_name_regex
        names, or regular expressions, of mounted devices that count as the wanted device
    hidden_opts, extra_mount_invisible_options, extra_mount_invisible_keys
        options, and keys of options, that the mount table does not show. They cause no remount.
    extra_mount_ignore_fs_keys
        map of file system to keys of options that cause no remount
    extra_mount_translate_options
        map of an option to its form in the mount table
    bind_mount_copy_active_opts
        no effect: options of the source of a bind mount are never written into fstab
    """
    lists = {
        "opts": opts,
        "hidden_opts": hidden_opts or (),
        "device_name_regex": device_name_regex or (),
        "extra_mount_invisible_options": extra_mount_invisible_options or (),
        "extra_mount_invisible_keys": extra_mount_invisible_keys or (),
    }
    for key, text in (("name", name), ("device", device), ("fstype", fstype)):
        if not text or not isinstance(text, str):
            return Plan.failed(f"Must provide {key} to mount.mounted")
    for key, value in lists.items():
        if wrong := option_fault(key, value):
            return Plan.failed(wrong)
    for key, table in (
        ("extra_mount_ignore_fs_keys", extra_mount_ignore_fs_keys),
        ("extra_mount_translate_options", extra_mount_translate_options),
    ):
        if table is not None and not isinstance(table, Mapping):
            return Plan.failed(f"{key} must be a map, not {table!r}")
    lenient = Leniency(
        options=(*words(lists["hidden_opts"]), *words(lists["extra_mount_invisible_options"])),
        keys=words(lists["extra_mount_invisible_keys"]),
        of_fs=extra_mount_ignore_fs_keys or {},
        translated=extra_mount_translate_options or {},
    )
    request = decision.WantedMount(without_slash(name), device, fstype, tuple(words(opts)), mkmnt, user)
    found = decision.inspect(ctx, request)
    if found.unknown_label:
        return Plan.failed(f"Unable to find device with label {found.unknown_label}.")
    action = decision.decide(ctx, request, found, lenient, words(lists["device_name_regex"]), wanted=mount)
    entry = (request.name, device, fstype, ",".join(request.opts), dump, pass_num, config)
    status = "present"
    if persist:
        try:
            status = ctx.call("mount.set_fstab", *entry, match_on=match_on, test=True)
        except CommandError as error:
            return Plan.failed(f"{request.name} cannot be kept in {config}: {error}")
    if not action.has_effect and status == "present":
        return Plan.unchanged(f"{action.comment}. {_PERSISTED[status]}" if persist else action.comment)

    def work() -> Outcome:
        comment, changes = action.comment, dict(action.changes)
        if not action.ok:
            return Outcome(comment, ok=False)
        if action.has_effect:
            comment, changes = decision.perform(ctx, request, found, action)
        try:
            if mount:
                ctx.call("mount.write_mount_cache", found.place, device, mkmnt, fstype, list(request.opts))
            if persist:
                ctx.call("mount.set_fstab", *entry, match_on=match_on)
        except CommandError as error:
            return Outcome(f"{comment}. However, it was not kept: {error}", changes, ok=False)
        if status in _KEPT:
            changes["persist"] = _KEPT[status]
        if not persist:
            return Outcome(comment, changes)
        return Outcome(f"{comment}. {_PERSISTED[status]}", changes)

    would = _would(request.name, action, status, mount=mount)
    file = _file(ctx, config, entry, match_on) if status != "present" else None
    return Plan.change(would, [Step(f"mount {request.name}", work, file)])


def unmounted(
    ctx: Context,
    name: str,
    device: str | None = None,
    config: str = "/etc/fstab",
    persist: bool = False,
    user: str | None = None,
) -> Plan:
    """Unmount the mount point ``name``.

    device
        unmount only this device, and remove only this device's fstab entry
    persist, config
        True: also remove the entry from fstab (``config``)
    user
        user that unmounts
    """
    if not name:
        return Plan.failed("Must provide name to mount.unmounted")
    place = mount_table.real_path(ctx.host, name)
    is_mounted = place in mount_table.parse(ctx.host.mount_table())
    note = "Target was already unmounted"
    entries = ctx.call("mount.fstab", config) if persist else {}
    entry = entries.get(fstab.written(without_slash(name)))
    other = entry is not None and device is not None and entry["device"] != fstab.written(device)
    left = ". fstab entry not found" if entry is None else f". fstab entry for device {device} not found"
    left = left if persist and (entry is None or other) else ""
    purge = persist and not left
    if not is_mounted and not purge:
        return Plan.unchanged(note + left)

    def work() -> Outcome:
        comment, changes = note, dict[str, object]()
        if is_mounted:
            done = ctx.call("mount.umount", place, device, user=user)
            if done is not True:
                return Outcome(str(done), ok=False)
            ctx.call("mount.delete_mount_cache", place)
            comment, changes = "Target was successfully unmounted", {"umount": True}
        if purge:
            try:
                ctx.call("mount.rm_fstab", without_slash(name), device, config)
            except CommandError as error:
                return Outcome(f"{comment}. Failed to persist purge: {error}", changes, ok=False)
            comment, changes = f"{comment}. Removed target from fstab", {**changes, "persist": "purged"}
        return Outcome(comment + left, changes)

    would = f"Mount point {name} is mounted but should not be"
    if not is_mounted:
        would = f"Mount point {name} is unmounted but needs to be purged from {config} to be made persistent"
    return Plan.change(would, [Step(f"unmount {name}", work)])


def swap(ctx: Context, name: str, persist: bool = True, config: str = "/etc/fstab") -> Plan:
    """Activate swap on a device or file if it is not active. ``persist``: also add an entry to fstab (``config``)."""
    place = ctx.host.path(name)
    # /proc/swaps shows a device by its path after links are resolved.
    own = name if place == ctx.host.path(name, follow=False) else f"/{place.relative_to(ctx.host.root)}"
    active = own in ctx.call("mount.swaps")
    entry = ("none", name, "swap", ["defaults"], 0, 0, config)
    known = ctx.call("mount.fstab", config)
    other = known.get("none", {})
    # As in Salt: fstab is not changed if it uses this device for something else without a mount point.
    ours = persist and not (other.get("device") == name and other.get("fstype") != "swap")
    status = ctx.call("mount.set_fstab", *entry, test=True) if ours else "present"
    comment = f"Swap {name} already active" if active else f"Swap {name} is set to be activated"
    if active and status == "present":
        return Plan.unchanged(comment)
    if status != "present":
        comment = f"Swap {name} is set to be added to the fstab" + ("" if active else " and to be activated")

    def work() -> Outcome:
        comment, changes = f"Swap {name} already active", {}
        if not active:
            stats = ctx.call("mount.swapon", own).get("stats")
            if stats is None:
                return Outcome(f"Swap {name} failed to activate", ok=False)
            comment, changes = f"Swap {name} activated", dict(stats)
        if status != "present":
            try:
                ctx.call("mount.set_fstab", *entry)
            except CommandError as error:
                return Outcome(f"{comment}. However, {config} was not written: {error}", changes, ok=False)
            changes["persist"] = {"new": "new", "change": "update"}[status]
            comment += {"new": ". Added new entry to the fstab.", "change": ". Updated the entry in the fstab."}[status]
        return Outcome(comment, changes)

    return Plan.change(comment, [Step(f"swap to {name}", work)])


def mod_watch(ctx: Context, name: str, sfun: str = "", user: str | None = None, **arguments: object) -> Plan:
    """Remount the file system of a ``mount.mounted`` state, because a watched state changed.

    Other ``mount`` states do not react to ``watch``.
    """
    if sfun != "mounted":
        return Plan.unchanged(f"Watch not supported in {sfun} at this time")
    device, fstype = (str(arguments[key]) for key in ("device", "fstype"))

    def work() -> Outcome:
        done = ctx.call("mount.remount", name, device, False, fstype, arguments.get("opts", "defaults"), user=user)
        return Outcome(f"{name} remounted" if done is True else f"{name} failed to remount: {done}", ok=done is True)

    return Plan.change(f"{name} would be remounted", [Step(f"remount {name}", work)])


def _would(name: str, action: decision.MountAction, status: str, *, mount: bool) -> str:
    if action.skips_fstab or status == "present":
        return action.would
    if status == "new":
        is_mounted = f"{name} is mounted, but" if mount else name
        needs = f"{is_mounted} needs to be written to the fstab in order to be made persistent."
    elif mount:
        needs = f"{name} is mounted, but its fstab entry must be updated."
    else:
        needs = f"The {name} fstab entry must be updated."
    return f"{action.would}. {needs}"


def _file(ctx: Context, config: str, entry: Sequence[object], match_on: str | Sequence[str]) -> FileChange:
    place = ctx.host.path(config)
    before = place.read_bytes()
    text = before.decode("utf-8", "surrogateescape")
    line = fstab.FstabEntry(*(fstab.written(str(each)) for each in (entry[1], entry[0], *entry[2:6])))
    _, after = fstab.put(text, line, fstab.criteria(text, line, match_on))
    return FileChange(config, before, after.encode("utf-8", "surrogateescape"))
