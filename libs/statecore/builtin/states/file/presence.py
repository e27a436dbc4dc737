"""Existence of a path: ``absent``, ``exists``, ``missing``, ``touch``; and device nodes (``mknod``)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from statecore.builtin.states.file.arguments import Refused, ensure_parent, local_path, step
from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.host.rooted_path import lexists, located
from statecore.model.context import Context
from statecore.model.errors import HostError, InvocationError, StateFailure
from statecore.model.types import FileChange, Outcome, Plan

#: Size in bytes above which the removal of a file is not shown as a diff.
_LARGE = 256 * 1024


#: ``ntype`` -> (file type bits, name, name with its article).
_KINDS = {
    "c": (stat.S_IFCHR, "Character device", "a character device"),
    "b": (stat.S_IFBLK, "Block device", "a block device"),
    "p": (stat.S_IFIFO, "Fifo pipe", "a fifo pipe"),
}


def absent(ctx: Context, name: str) -> Plan:
    """Remove a file, link or directory with all its content. Nothing happens if it does not exist."""
    try:
        place = local_path(ctx, name, follow=False)
    except (Refused, HostError) as error:
        return Plan.failed(str(error))
    if str(Path(name)) == "/":
        return Plan.failed('Refusing to make "/" absent')
    if not lexists(place):
        return Plan.unchanged(f"File {name} is not present")
    kind = "directory" if place.is_dir() and not place.is_symlink() else "file"

    def work() -> Outcome:
        managed_file.remove(place)
        return Outcome(f"Removed {kind} {name}", {"removed": name})

    removal = step(f"remove {name}", work, _content(place, name))
    return Plan.change(f"{kind.title()} {name} is set for removal", (removal,), {"removed": name})


def exists(ctx: Context, name: str) -> Plan:
    """Check that the path exists; the state fails if it does not. Nothing is changed."""
    try:
        there = local_path(ctx, name).exists()
    except (Refused, HostError) as error:
        return Plan.failed(str(error))
    return Plan.unchanged(f"Path {name} exists") if there else Plan.failed(f"Specified path {name} does not exist")


def missing(ctx: Context, name: str) -> Plan:
    """Check that the path does not exist; the state fails if it does. Nothing is changed."""
    try:
        there = local_path(ctx, name).exists()
    except (Refused, HostError) as error:
        return Plan.failed(str(error))
    return Plan.failed(f"Specified path {name} exists") if there else Plan.unchanged(f"Path {name} is missing")


def touch(ctx: Context, name: str, atime: object = None, mtime: object = None, makedirs: bool = False) -> Plan:
    """Create an empty file, or set the times of an existing file or directory.

    atime, mtime
        access and modification time, in seconds since 1970; default: now
    makedirs
        True: create missing parent directories
    """
    try:
        place = local_path(ctx, name)
        times = managed_file.times(atime, mtime)
    except (Refused, HostError, InvocationError) as error:
        return Plan.failed(str(error))
    there = place.exists()
    kind = "directory" if place.is_dir() else "file"

    def work() -> Outcome:
        ensure_parent(ctx, place, makedirs, Attributes(), f"Directory not present to touch file {name}")
        if not there:
            place.touch()
        with located(place, follow=True) as (own, way):
            os.utime(own, times, dir_fd=way)
        if there:
            return Outcome(f"Updated times on {kind} {name}", {"touched": name})
        return Outcome(f"Created empty file {name}", {"new": name})

    if there:
        return Plan.change(
            f"Times set to be updated on {kind} {name}", (step(f"touch {name}", work),), {"touched": name}
        )
    return Plan.change(f"File {name} is set to be created", (step(f"create {name}", work),), {"new": name})


def mknod(
    ctx: Context,
    name: str,
    ntype: str,
    major: int = 0,
    minor: int = 0,
    user: str | int | None = None,
    group: str | int | None = None,
    mode: object = "0600",
) -> Plan:
    """Create a character device (``ntype: c``), block device (``b``) or named pipe (``p``).

    major, minor
        device numbers, not used for a pipe
    user, group, mode
        owner, group and mode; default mode 0600
    """
    if ntype not in _KINDS:
        return Plan.failed(
            f"Node type unavailable: '{ntype}'. Available node types are character ('c'), block ('b'), and pipe ('p')"
        )
    kind, word, article = _KINDS[ntype]
    try:
        place = local_path(ctx, name)
        wanted = Attributes(user, group, managed_file.parse_mode(mode))
        managed_file.check_owner(ctx.host, wanted)
        device = 0 if ntype == "p" else os.makedev(int(major), int(minor))
        if not lexists(place):
            return _new(ctx, name, local_path(ctx, name), kind | (wanted.mode or 0o600), device, wanted, word)
        found = place.stat()
        if stat.S_IFMT(found.st_mode) != kind:
            raise Refused(f"File {name} exists and is not {article}. Refusing to continue")
        if found.st_rdev != device:
            numbers = f"{os.major(found.st_rdev)}/{os.minor(found.st_rdev)}"
            raise Refused(f"{word} {name} exists and has a different major/minor {numbers}. Refusing to continue")
        changes = managed_file.attribute_changes(ctx.host, place, wanted)
    except (Refused, HostError, InvocationError) as error:
        return Plan.failed(str(error))
    except (TypeError, ValueError, OverflowError) as error:
        return Plan.failed(f"major and minor are numbers, not {major!r} and {minor!r}: {error}")
    if not changes:
        return Plan.unchanged(f"{word} {name} is in the correct state")

    def work() -> Outcome:
        managed_file.set_attributes(ctx.host, place, wanted)
        return Outcome("", changes)

    return Plan.change("", (step(f"set owner and mode of {name}", work),), changes)


def _content(place: Path, name: str) -> FileChange | None:
    """Return the content of a file that ``file.absent`` removes, for the diff; None for other types, unreadable files
    and files over 256 KiB.
    """
    try:
        if place.is_symlink() or place.stat().st_size > _LARGE:
            return None
        old = managed_file.read(place, name)
    except (OSError, HostError):
        return None
    return FileChange(name, old, None)


def _new(ctx: Context, name: str, place: Path, mode: int, device: int, wanted: Attributes, word: str) -> Plan:
    changes = {"new": f"{word} {name} created."}

    def work() -> Outcome:
        managed_file.make_directories(ctx.host, place.parent, Attributes(wanted.user, wanted.group), ctx.host.root)
        try:
            with located(place) as (own, way):
                os.mknod(own, mode, device, dir_fd=way)
        except OSError as error:
            raise StateFailure(f"{name} cannot be made: {error.strerror}") from error
        managed_file.set_attributes(ctx.host, place, wanted)
        return Outcome("", changes)

    return Plan.change(f"{word} {name} is set to be created", (step(f"make {name}", work),), changes)
