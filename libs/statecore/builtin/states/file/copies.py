"""``file.copy`` and ``file.rename``: files and directories of the host, copied or moved."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from statecore.builtin.states.file.arguments import Refused, ensure_parent, local_path, parent_attributes, step
from statecore.host import copies
from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.host.rooted_path import lexists
from statecore.model.context import Context
from statecore.model.errors import HostError, InvocationError, StateFailure
from statecore.model.types import Outcome, Plan


def copy(
    ctx: Context,
    name: str,
    source: str,
    force: bool = False,
    makedirs: bool = False,
    preserve: bool = False,
    user: str | int | None = None,
    group: str | int | None = None,
    mode: object = None,
    dir_mode: object = None,
    subdir: bool = False,
) -> Plan:
    """Copy a file or directory of the host. An existing target is kept unless ``force`` is True.

    preserve
        True: the copy gets owner, group and mode of the source
    user, group, mode
        owner, group and mode of the copy. Default: the user that runs the state, and the source's mode.
    makedirs, dir_mode
        True: create missing parent directories; their mode
    subdir
        True: if ``name`` is a directory, copy into this directory
    """
    try:
        place, origin = local_path(ctx, name), _origin(ctx, source)
        if not origin.exists():
            raise Refused(f'Source file "{source}" is not present')
        if subdir and place.is_dir():
            name = f"{name.rstrip('/')}/{Path(source).name}"
            place = local_path(ctx, name)
        wanted = _copied_attributes(ctx, origin, preserve, user, group, mode)
        directories = parent_attributes(wanted, dir_mode)
    except (Refused, HostError, InvocationError) as error:
        return Plan.failed(str(error))
    there = lexists(place)
    if there and not force:
        return Plan.unchanged(f'The target file "{name}" exists and will not be overwritten')
    if there and _same(origin, place) and not managed_file.attribute_changes(ctx.host, place, wanted):
        return Plan.unchanged(f'The target file "{name}" is the same as "{source}"')

    changes = {name: source} | ({} if preserve else _reported_attributes(ctx, origin, wanted))

    def work() -> Outcome:
        managed_file.check_owner(ctx.host, wanted)
        ensure_parent(ctx, place, makedirs, directories, f"The target directory {Path(name).parent} is not present")
        try:
            managed_file.copy_into_place(ctx.host, origin, place, wanted)
        except OSError as error:
            raise StateFailure(f'Failed to copy "{source}" to "{name}": {error.strerror or error}') from error
        return Outcome(f'Copied "{source}" to "{name}"', changes)

    would = f'File "{source}" is set to be copied to "{name}"'
    return Plan.change(would, (step(f"copy {source} to {name}", work),), changes)


def rename(ctx: Context, name: str, source: str, force: bool = False, makedirs: bool = False) -> Plan:
    """Rename ``source`` to ``name``.

    An existing ``name`` is kept unless ``force`` is True. Nothing to do if ``source`` is absent.
    """
    try:
        place = local_path(ctx, name, follow=False)
        origin = _origin(ctx, source, follow=False)
    except (Refused, HostError) as error:
        return Plan.failed(str(error))
    if not lexists(origin):
        return Plan.unchanged(f'Source file "{source}" has already been moved out of place')
    there = lexists(place)
    if there and not force:
        return Plan.unchanged(f'The target file "{name}" exists and will not be overwritten')

    def work() -> Outcome:
        ensure_parent(ctx, place, makedirs, Attributes(), f"The target directory {Path(name).parent} is not present")
        try:
            managed_file.move_into_place(origin, place)
        except OSError as error:
            raise StateFailure(f'Failed to move "{source}" to "{name}": {error.strerror or error}') from error
        return Outcome(f'Moved "{source}" to "{name}"', {name: source})

    would = f'File "{source}" is set to be moved to "{name}"'
    return Plan.change(would, (step(f"rename {source} to {name}", work),), {name: source})


def _origin(ctx: Context, source: str, *, follow: bool = True) -> Path:
    if not source.startswith("/"):
        raise Refused(f'Source file "{source}" is not an absolute path')
    return ctx.host.path(source, follow=follow)


def _copied_attributes(
    ctx: Context, origin: Path, preserve: bool, user: str | int | None, group: str | int | None, mode: object
) -> Attributes:
    found = origin.stat()
    if preserve:
        return Attributes(found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode))
    owner = os.geteuid() if user is None else user
    if group is None:
        group = os.getegid() if user is None else ctx.host.login_group(user)
    own = managed_file.parse_mode(mode)
    return Attributes(owner, group, stat.S_IMODE(found.st_mode) if own is None else own)


def _reported_attributes(ctx: Context, origin: Path, wanted: Attributes) -> dict[str, object]:
    """Map of the changes that ``file.copy`` reports: owner, group and mode of the copy that differ from those of a
    plain copy by this process.
    """
    reported: dict[str, object] = {}
    if wanted.user is not None and wanted.user not in (os.geteuid(), ctx.host.user_name(os.geteuid())):
        reported["user"] = wanted.user
    if wanted.group is not None and wanted.group not in (os.getegid(), ctx.host.group_name(os.getegid())):
        reported["group"] = ctx.host.group_name(wanted.group) if isinstance(wanted.group, int) else wanted.group
    if wanted.mode is not None and wanted.mode != stat.S_IMODE(origin.stat().st_mode):
        reported["mode"] = managed_file.shown_mode(wanted.mode)
    return reported


def _same(one: Path, other: Path) -> bool:
    """Return True if two paths have the same content: files, links, or whole directories.

    Owners and modes are not compared.
    """
    if one.is_symlink() or other.is_symlink():
        return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
    if one.is_dir() and other.is_dir():
        names = sorted(path.name for path in one.iterdir())
        return names == sorted(path.name for path in other.iterdir()) and all(
            _same(one / name, other / name) for name in names
        )
    return one.is_file() and other.is_file() and copies.same_content(one, other)
