"""Functions of the ``file`` module that create, copy, move and remove files, links and directories."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from statecore.builtin.modules.file.queries import get_mode
from statecore.host import copies
from statecore.host.content import atomic_file, managed_file
from statecore.host.content.managed_file import Attributes
from statecore.host.rooted_path import lexists, located, walk
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError

#: Seconds of a day.
_DAY = 86400


def touch(ctx: Context, name: str, atime: object = None, mtime: object = None) -> bool:
    """Create a file, or set its access and modification time (seconds since 1970). Return True. Raise CommandError if
    this fails.

    If one of the two times is missing, the other one is used. If both are missing, the present time is used.
    """
    real_path = ctx.host.path(name)
    try:
        real_path.touch()
        with located(real_path, follow=True) as (own, way):
            os.utime(own, managed_file.times(atime, mtime), dir_fd=way)
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from error
    return True


def remove(ctx: Context, path: str, **kwargs: object) -> bool:
    """Remove a file, a link or a whole directory. Return True; False if the path does not exist. Raise InvocationError
    for a path that is not absolute.
    """
    if not path.startswith("/"):
        raise InvocationError(f"File path must be absolute: {path}")
    real_path = ctx.host.path(path, follow=False)
    if not lexists(real_path):
        return False
    managed_file.remove(real_path)
    return True


def copy(ctx: Context, src: str, dst: str, recurse: bool = False, remove_existing: bool = False) -> bool:
    """Copy a file, or with ``recurse`` a directory. Return True. Raise CommandError if the source does not exist.

    remove_existing
        True: remove an existing target directory first
    """
    source, target = ctx.host.path(src), ctx.host.path(dst)
    if not source.exists():
        raise CommandError(f"No such file or directory '{src}'")
    if source.is_dir() and not recurse:
        raise InvocationError("Cannot copy overtop of directory unless recurse=True")
    try:
        if not source.is_dir():
            _copied(source, target / source.name if target.is_dir() else target)
            return True
        if remove_existing and target.exists():
            managed_file.remove(target)
        _copy_tree(ctx, source, dst.rstrip("/"))
    except OSError as error:
        raise CommandError(f"Could not copy '{src}' to '{dst}': {error.strerror}") from error
    return True


def rename(ctx: Context, src: str, dst: str) -> bool:
    """Rename a file or directory. Return True. Raise CommandError if this fails."""
    try:
        ctx.host.path(src, follow=False).rename(ctx.host.path(dst, follow=False))
    except OSError as error:
        raise CommandError(f"Could not rename '{src}' to '{dst}': {error.strerror}") from error
    return True


def move(ctx: Context, src: str, dst: str, disallow_copy_and_unlink: bool = False) -> object:
    """Move a file or directory. If ``dst`` is a directory, move into it. Return a map with ``result`` and
    ``comment``.

    disallow_copy_and_unlink
        True: only rename; a move to another file system then fails
    """
    if disallow_copy_and_unlink:
        return rename(ctx, src, dst)
    origin, target = ctx.host.path(src, follow=False), ctx.host.path(dst, follow=False)
    if ctx.host.path(dst).is_dir():
        target = ctx.host.path(dst) / origin.name
    try:
        managed_file.move_into_place(origin, target)
    except OSError as error:
        raise CommandError(f"Unable to move '{src}' to '{dst}': {error.strerror}") from error
    return {"result": True, "comment": f"'{src}' moved to '{dst}'"}


def link(ctx: Context, src: str, path: str) -> bool:
    """Create the hard link ``path`` to the file ``src``. Return True. Raise CommandError if it cannot be created."""
    try:
        ctx.host.path(path, follow=False).hardlink_to(ctx.host.path(src))
    except OSError as error:
        raise CommandError(f"Could not create '{path}': {error.strerror}") from error
    return True


def symlink(
    ctx: Context, src: str, path: str, force: bool = False, atomic: bool = False, follow_symlinks: bool = True
) -> bool:
    """Create the symbolic link ``path`` to ``src``. Return True. The link appears in one atomic step.

    force, atomic
        True: replace a file or link that exists; ``force`` also replaces a directory
    follow_symlinks
        accepted, without effect: an existing link itself is compared, not its target

    Raise CommandError if something else exists at ``path``.
    """
    real_path = ctx.host.path(path, follow=False)
    if lexists(real_path):
        if real_path.is_symlink() and str(real_path.readlink()) == src:
            return True
        if not (force or atomic):
            raise CommandError(f"Found existing {path}; use force=True to replace it")
    try:
        with atomic_file.replacement(real_path) as new:
            new.symlink_to(src)
            if force and not real_path.is_symlink() and real_path.is_dir():
                managed_file.remove(real_path)
    except OSError as error:
        raise CommandError(f"Could not create '{path}': {error.strerror}") from error
    return True


def mkdir(
    ctx: Context, dir_path: str, user: str | int | None = None, group: str | int | None = None, mode: object = None
) -> bool:
    """Create a directory and its missing parents. Return True."""
    wanted = Attributes(user, group, managed_file.parse_mode(mode))
    managed_file.make_directories(ctx.host, ctx.host.path(dir_path), wanted, ctx.host.root)
    return True


def makedirs(
    ctx: Context, path: str, user: str | int | None = None, group: str | int | None = None, mode: object = None
) -> bool:
    """Create the missing parent directories of a path. The part after the last slash is not created. Return True."""
    return mkdir(ctx, path if path.endswith("/") else str(Path(path).parent), user, group, mode)


def rmdir(
    ctx: Context, path: str, recurse: bool = False, verbose: bool = False, older_than: float | None = None
) -> bool | dict[str, object]:
    """Remove an empty directory. With ``recurse``, first remove the empty directories below it. Files are never
    removed. Return whether the directory is removed.

    older_than
        only remove directories that have not changed for this number of days
    verbose
        True: return a map with ``deleted``, ``errors`` and ``result``, instead of a boolean
    """
    if not ctx.host.path(path, follow=False).is_dir():
        raise InvocationError(f"{path} is not a directory")
    before = time.time() - older_than * _DAY if older_than else None
    deleted, errors = [], []
    for each in _directories(ctx, path.rstrip("/") or "/", below=recurse):
        real_path = ctx.host.path(each, follow=False)
        try:
            if before is None or real_path.stat().st_mtime < before:
                real_path.rmdir()
                deleted.append(each)
        except OSError as error:
            errors.append([each, f"{error.strerror}"])
    result = not errors and (recurse or bool(deleted))
    return {"deleted": deleted, "errors": errors, "result": result} if verbose else result


def _directories(ctx: Context, path: str, *, below: bool) -> list[str]:
    """Return the directory as a list of one path. With ``below``, the list begins with all directories below it, the
    deepest first. Symbolic links are not followed.
    """
    if not below:
        return [path]
    top = ctx.host.path(path)
    found = [f"{path}/{each.relative_to(top).as_posix()}" for each, *_ in walk(top) if each != top]
    return [*sorted(found, key=lambda each: (-each.count("/"), each)), path]


def set_mode(ctx: Context, path: str, mode: object) -> str:
    """Set the mode of a file, given in octal. Return the new mode as text, such as "0644". Raise CommandError if the
    file does not exist.
    """
    real_path = ctx.host.path(path)
    # Raises the module's usual CommandError if the path does not exist.
    get_mode(ctx, path)
    managed_file.set_attributes(ctx.host, real_path, Attributes(mode=managed_file.parse_mode(mode)))
    return get_mode(ctx, path)


def chown(ctx: Context, path: str, user: str | int | None, group: str | int | None) -> str | None:
    """Set owner and group of a file. Return None on success, else each reason as a line, in Salt's words."""
    real_path = ctx.host.path(path)
    missing = "User does not exist\n" if user and not _is_known(ctx.host.uid, user) else ""
    missing += "Group does not exist\n" if group and not _is_known(ctx.host.gid, group) else ""
    missing += "" if real_path.exists() else "File not found"
    if missing:
        return missing
    try:
        managed_file.set_attributes(ctx.host, real_path, Attributes(user or None, group or None))
    except HostError as error:
        return str(error)
    return None


def _is_known(number_of: Callable[[str | int], int], name: str | int) -> bool:
    try:
        number_of(name)
    except HostError:
        return False
    return True


def chgrp(ctx: Context, path: str, group: str | int | None) -> str | None:
    """Set the group of a file. Return None on success, else the reason as text."""
    return chown(ctx, path, None, group)


def _copy_tree(ctx: Context, source: Path, dst: str) -> None:
    """Copy a directory to the path ``dst`` of the host. Each target path is resolved anew, so that links below the
    target cannot lead the copy out of the host's root.
    """
    for directory_path, names, files in walk(source):
        here = f"{dst}/{directory_path.relative_to(source).as_posix()}"
        directory = ctx.host.path(here)
        directory.mkdir(parents=True, exist_ok=True)
        copies.copy_attributes(directory_path, directory)
        for name in (*files, *(name for name in names if (directory_path / name).is_symlink())):
            target = ctx.host.path(f"{here}/{name}", follow=False)
            _copied(directory_path / name, target)


def _copied(source: Path, target: Path) -> None:
    """Copy the file ``source`` to ``target`` atomically: an interrupted copy leaves the old file. An existing target
    keeps its owner.
    """
    with atomic_file.replacement(target) as new:
        copies.copy(source, new)
        if not source.is_symlink() and target.exists() and not target.is_symlink():
            found = target.stat()
            with located(new) as (name, way):
                os.chown(name, found.st_uid, found.st_gid, dir_fd=way, follow_symlinks=False)
