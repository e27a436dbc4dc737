"""``file.symlink`` and ``file.hardlink``.

A link is created under a temporary name and renamed, so that the name always exists.
"""

from __future__ import annotations

import re
import stat
from dataclasses import replace
from functools import partial
from pathlib import Path

from statecore.builtin.states.file.arguments import Refused, ensure_parent, local_path, refuse_windows, step
from statecore.host.content import atomic_file, managed_file
from statecore.host.content.managed_file import Attributes
from statecore.host.rooted_path import lexists
from statecore.model.context import Context
from statecore.model.errors import HostError, InvocationError, StateFailure
from statecore.model.types import Outcome, Plan

#: How the host tells that it does not know a user or group.
_NOT_AVAILABLE = re.compile(r"is not available(?= Group |$)")


def symlink(
    ctx: Context,
    name: str,
    target: str,
    force: bool = False,
    backupname: str | None = None,
    makedirs: bool = False,
    user: str | int | None = None,
    group: str | int | None = None,
    mode: object = None,
    disallow_copy_and_unlink: bool = False,
    inherit_user_and_group: bool = False,
    follow_symlinks: bool = True,
    atomic: bool = False,
    win_owner: object = None,
    win_perms: object = None,
    win_deny_perms: object = None,
    win_inheritance: bool | None = None,
) -> Plan:
    """Create a symbolic link ``name`` that points to ``target``. An existing link is replaced in one step.

    makedirs, mode
        True: create missing parent directories; their mode
    user, group
        owner and group of the link
    inherit_user_and_group
        True: a replaced link keeps owner and group, unless ``user`` or ``group`` is given
    backupname
        rename a file that already has this name to ``backupname``
    disallow_copy_and_unlink
        True: fail if ``backupname`` is on another file system, where a rename is not possible
    force
        True: remove a file or directory that already has this name
    atomic
        True: remove a file that already has this name, but no directory
    follow_symlinks
        no effect: the link itself is always compared
    """
    try:
        refuse_windows(locals())
        place = local_path(ctx, name, follow=False)
        wanted = Attributes(user, group, managed_file.parse_mode(mode))
        if place.is_symlink() and inherit_user_and_group:
            found = place.lstat()
            wanted = replace(
                wanted, user=found.st_uid if user is None else user, group=found.st_gid if group is None else group
            )
        if place.is_symlink():
            now = str(place.readlink())
            if now == target:
                return _link_owner(ctx, name, place, wanted)
            return _make_link(
                ctx,
                name,
                place,
                target,
                wanted,
                makedirs,
                f"Link {name} target is set to be changed to {target}",
                "change",
            )
        if lexists(place):
            return _replace_existing(
                ctx,
                name,
                place,
                target,
                wanted,
                makedirs,
                force=force,
                atomic=atomic and not place.is_dir(),
                backupname=backupname,
                rename_alone=disallow_copy_and_unlink,
            )
        would = f"Symlink {name} to {target} is set for creation"
        if not place.parent.is_dir():
            top = Path(name).parent
            would += f"\n{top} will be created" if makedirs else f"\nDirectory {top} for symlink is not present"
        return _make_link(ctx, name, place, target, wanted, makedirs, would, "new")
    except (Refused, HostError, InvocationError) as error:
        return Plan.failed(str(error))


def hardlink(
    ctx: Context,
    name: str,
    target: str,
    force: bool = False,
    makedirs: bool = False,
    user: str | int | None = None,
    group: str | int | None = None,
    dir_mode: object = None,
) -> Plan:
    """Create a hard link ``name`` to the file ``target``.

    force
        True: replace a file that already has this name
    makedirs
        True: create missing parent directories, with ``user``, ``group`` and ``dir_mode``
    """
    try:
        owner = Attributes(user, group, managed_file.parse_mode(dir_mode))
        _check_owner(ctx, owner)
        place = local_path(ctx, name, follow=False)
        if not target.startswith("/"):
            raise Refused(f"Specified target {target} is not an absolute path")
        origin = ctx.host.path(target)
        for direction, path, one in (("to", name, place), ("from", target, origin)):
            if one.is_dir():
                raise Refused(f"Unable to hard link {direction} directory {path}")
        if not origin.exists():
            raise Refused(f"Target {target} for hard link does not exist")
        found = place.lstat() if lexists(place) else None
    except StateFailure as failure:
        return Plan.failed(failure.comment)
    except (Refused, HostError, InvocationError) as error:
        return Plan.failed(str(error))
    if found is None:
        would = f"Hard link {name} to {target} is set for creation"
        changes, did = {"new": name}, f"Created new hard link {name} -> {target}"
    elif found.st_ino == origin.stat().st_ino and found.st_dev == origin.stat().st_dev:
        return Plan.unchanged(
            f"Target of hard link {name} is already pointing to {target}",
            in_test=f"The hard link {name} is presently targetting {target}",
        )
    elif found.st_nlink > 1 and stat.S_ISREG(found.st_mode):
        would = f"Link {name} target is set to be changed to {target}"
        changes, did = {"new": name}, f"Set target of hard link {name} -> {target}"
    elif not force:
        return _in_the_way("File", "hard link", name)
    else:
        would = f"The file or directory {name} is set for removal to make way for a new hard link targeting {target}"
        changes = {"forced": "File for hard link was forcibly replaced", "new": name}
        did = f"Created new hard link {name} -> {target}"

    def work() -> Outcome:
        ensure_parent(ctx, place, makedirs, owner, f"Directory {Path(name).parent} for hard link is not present")
        try:
            with atomic_file.replacement(place) as new:
                new.hardlink_to(origin)
        except OSError as error:
            raise StateFailure(f"Unable to create new hard link {name} -> {target}: {error.strerror}") from error
        return Outcome(did, changes)

    return Plan.change(would, (step(f"link {name} to {target}", work),), changes)


def shortcut(ctx: Context, name: str, target: str, **kwargs: object) -> Plan:
    """Fail always, because shortcuts are a feature of Windows. Use ``file.symlink``."""
    return Plan.failed("Shortcuts are only supported on Windows")


def _check_owner(ctx: Context, wanted: Attributes) -> None:
    """Raise StateFailure, in Salt's words for links, if the host does not know the wanted user or group."""
    try:
        managed_file.check_owner(ctx.host, wanted)
    except HostError as error:
        words, count = _NOT_AVAILABLE.subn("does not exist.", str(error))
        raise StateFailure(words.rstrip(".") if count == 1 else words) from error


def _in_the_way(kind: str, link: str, name: str) -> Plan:
    """Return the failure for a file or directory (``kind``) that has the name of a link."""
    return Plan.failed(
        f"{kind} exists where the {link} {name} should be",
        in_test=f"File or directory exists where the {link} {name} should be. Did you mean to use force?",
    )


def _link_owner(ctx: Context, name: str, place: Path, wanted: Attributes) -> Plan:
    found = place.lstat()
    user, group = ctx.host.user_name(found.st_uid), ctx.host.group_name(found.st_gid)
    changes = managed_file.attribute_changes(ctx.host, place, wanted)
    if not changes:
        return Plan.unchanged(
            f"Symlink {name} is present and owned by {user}:{group}", in_test=f"The symlink {name} is present"
        )
    owner = f"{wanted.user or user}:{wanted.group or group}"

    def work() -> Outcome:
        managed_file.set_attributes(ctx.host, place, wanted)
        return Outcome(f"Set ownership of symlink {name} to {owner}", {"ownership": owner})

    would = f"The symlink {name} is present, but the ownership of the symlink would be changed from {user}:{group} to {owner}"
    return Plan.change(would, (step(f"set the owner of {name}", work),), {"ownership": owner})


def _make_link(
    ctx: Context, name: str, place: Path, target: str, wanted: Attributes, makedirs: bool, would: str, kind: str
) -> Plan:
    def work() -> Outcome:
        _check_owner(ctx, wanted)
        if not place.parent.is_dir():
            if not makedirs:
                raise StateFailure(f"Directory {Path(name).parent} for symlink is not present")
            managed_file.make_directories(ctx.host, place.parent, wanted, ctx.host.root)
        try:
            with atomic_file.replacement(place) as new:
                new.symlink_to(target)
                managed_file.set_attributes(ctx.host, new, wanted)
        except OSError as error:
            raise StateFailure(f"Unable to create new symlink {name} -> {target}: {error.strerror}") from error
        return Outcome(f"Created new symlink {name} -> {target}", {"new": name})

    return Plan.change(would, (step(f"link {name} to {target}", work),), {kind: name})


def _replace_existing(
    ctx: Context,
    name: str,
    place: Path,
    target: str,
    wanted: Attributes,
    makedirs: bool,
    *,
    force: bool,
    atomic: bool,
    backupname: str | None,
    rename_alone: bool,
) -> Plan:
    kind = "Directory" if place.is_dir() else "File"
    link = _make_link(ctx, name, place, target, wanted, makedirs, "", "new")
    if backupname:
        kept = str(Path(name).parent / backupname)
        aside = local_path(ctx, kept, follow=False)
        if lexists(aside) and not force:
            return Plan.failed(
                f"Symlink & backup dest exists and Force not set. {name} -> {target} - backup: {kept}",
                in_test=_in_the_way(kind, "symlink", name).in_test,
            )

        move_to = partial(managed_file.move_into_place, place)

        def move() -> Outcome:
            if lexists(aside):
                managed_file.remove(aside)
            (place.rename if rename_alone else move_to)(aside)
            return Outcome("", {"moved": f"File {name} moved to backup {backupname}"})

        would = f"{name} exists and is set to be moved to {backupname}\nSymlink {name} to {target} is set for creation"
        return Plan.change(would, (step(f"move {name} aside", move), *link.steps), {"new": name})
    if atomic and not force:
        would = f"{name} is set to be replaced by a symlink targeting {target}"
        return Plan.change(would, link.steps, {"new": name})
    if not force:
        return _in_the_way(kind, "symlink", name)

    def clear() -> Outcome:
        managed_file.remove(place)
        return Outcome("", {"forced": "Symlink was forcibly replaced"})

    would = f"The file or directory {name} is set for removal to make way for a new symlink targeting {target}"
    return Plan.change(would, (step(f"remove {name}", clear), *link.steps), {"forced": "Symlink was forcibly replaced"})
