"""Makes the files and directories that Saltern keeps for itself: caches, keys, spools, records, backups, copies for one run.

They may contain what a state later writes with mode 0600, so only their owner may read them: a file has mode 0600 and a
directory 0700, whatever the umask of the process is. Everything else, such as what states, commands and users' modules
make, follows the umask.

``close`` takes the rights of others from what earlier versions left.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

from statecore.host import copies
from statecore.host.beneath import DIRECTORY
from statecore.host.content import atomic_file
from statecore.host.rooted_path import located

#: Permission bits of a private file and of a private directory.
FILE_MODE = 0o600
DIRECTORY_MODE = 0o700

#: Rights of the group and of others.
_GROUP_AND_OTHERS, _OTHERS = 0o077, 0o007

#: Entries that ``close`` looks at: an unbounded cache must not delay a start for long.
MOST_ENTRIES = 500_000


def top(path: Path) -> Path:
    """Make the directory that an option names, such as ``cachedir``, if it is missing, and return it. The directories
    above it are not private, because others may have files there: their mode is 0777 without the umask.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    return path


def directory(path: Path) -> Path:
    """Make a directory and the missing directories above it, all of them private, and return it. An existing directory
    keeps its mode.
    """
    try:
        path.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    except FileNotFoundError:
        if path.parent == path:
            raise
        directory(path.parent)
        path.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    return path


def write(path: Path, content: bytes | str, *, sync: bool = False) -> None:
    """Replace a file atomically by a private one with this content, and make its missing directories; text is encoded
    as UTF-8. ``sync``: write the content to the disk before the rename.
    """
    directory(path.parent)
    atomic_file.write(path, content, FILE_MODE, exact=True, sync=sync)


@contextlib.contextmanager
def writer(path: Path, *, executable: bool = False) -> Iterator[BinaryIO]:
    """Yield a new private file that replaces ``path`` when the block ends without an error. Its missing directories
    are made. ``executable``: the owner may run it.
    """
    directory(path.parent)
    with atomic_file.writer(path, DIRECTORY_MODE if executable else FILE_MODE, exact=True) as file:
        yield file


def create(path: Path, content: bytes, *, unchanging: bool = False) -> bool:
    """Write a new private file, with its missing directories, and return True. Return False if it exists already.

    ``unchanging``: mode 0400, for a file that is only ever replaced.
    """
    directory(path.parent)
    return atomic_file.create(path, content, 0o400 if unchanging else FILE_MODE)


def opener(path: str, flags: int) -> int:
    """Argument ``opener`` of ``open``: a missing file is made private. An existing file keeps its mode."""
    return os.open(path, flags | os.O_CLOEXEC, FILE_MODE)


def opened(path: Path, mode: str = "ab") -> IO[Any]:
    """Open a private file for writing, with the mode ``a`` or ``w`` of ``open``, and return it. A missing file is made; its
    directory must exist.
    """
    return open(path, mode, encoding=None if "b" in mode else "utf-8", opener=opener)


def lock_file(path: Path) -> int:
    """Return a descriptor for reading and writing of a private file, for flock. A missing file is made; its directory
    must exist.
    """
    return opener(str(path), os.O_RDWR | os.O_CREAT)


def touch(path: Path, *, exist_ok: bool = True) -> None:
    """Make an empty private file. Without ``exist_ok``, raise FileExistsError for an existing one."""
    path.touch(FILE_MODE, exist_ok)


def copy(origin: Path, path: Path) -> None:
    """Replace a file by a private copy of another one, with its times, and make its missing directories. A link is
    copied as a link.
    """
    directory(path.parent)
    with atomic_file.replacement(path) as new:
        if origin.is_symlink():
            new.symlink_to(origin.readlink())
            return
        with new_file(new) as file:
            copies.fill(file, origin)
        found = origin.stat()
        with located(new) as (name, way):
            os.utime(name, ns=(found.st_atime_ns, found.st_mtime_ns), dir_fd=way, follow_symlinks=False)


def new_file(path: Path, *, executable: bool = False) -> BinaryIO:
    """Open a new private file for writing. ``path`` may be a ``RootedPath``. Raise FileExistsError if it exists, also as
    a link. The directory must exist.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with located(path) as (name, way):
        descriptor = os.open(name, flags, DIRECTORY_MODE if executable else FILE_MODE, dir_fd=way)
    return os.fdopen(descriptor, "wb")


def close(path: Path, *, group: bool = False) -> int:
    """Take the rights of the group and of others from this user's files and directories below a directory. Return how
    many were changed; 0 if the directory does not exist.

    The directory itself keeps the rights of its group, which an administrator may have given. ``group``: so do the files
    and directories below it, if the directory has rights of its group. Files of other users, files with several names
    and links are left alone. The walk ends after MOST_ENTRIES entries. No link is followed.
    """
    try:
        own = os.open(path, DIRECTORY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    try:
        found = os.fstat(own)
        mask = _OTHERS if group and found.st_mode & 0o070 else _GROUP_AND_OTHERS
        count = _closed(own, found, _OTHERS)
        left = MOST_ENTRIES
        waiting = [os.dup(own)]
        try:
            while waiting and left > 0:
                way = waiting.pop()
                try:
                    for name in _names(way)[:left]:
                        left -= 1
                        count += _close_entry(way, name, mask, waiting)
                finally:
                    os.close(way)
        finally:
            for way in waiting:
                os.close(way)
    finally:
        os.close(own)
    return count


def close_file(path: Path, *, group: bool = False) -> int:
    """Take the rights of others from a regular file of this user, and those of its group unless ``group``. Return 1 if they
    were changed; 0 for a file that does not exist, is a link, or has several names.
    """
    try:
        entry = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        found = os.fstat(entry)
        regular = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
        return _closed(entry, found, _OTHERS if group else _GROUP_AND_OTHERS) if regular else 0
    finally:
        os.close(entry)


def _close_entry(way: int, name: str, mask: int, waiting: list[int]) -> int:
    """Close one entry of a directory. Add the descriptor of a directory to ``waiting``. Return 1 if the mode was changed."""
    try:
        entry = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=way)
    except FileNotFoundError:
        # Another process removed it.
        return 0
    try:
        found = os.fstat(entry)
        if stat.S_ISDIR(found.st_mode):
            waiting.append(os.dup(entry))
            return _closed(entry, found, mask)
        # With several names, one of them may be a file outside.
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
            return _closed(entry, found, mask)
        return 0
    finally:
        os.close(entry)


def _closed(entry: int, found: os.stat_result, mask: int) -> int:
    if found.st_uid != os.geteuid() or not found.st_mode & mask:
        return 0
    # fchmod does not accept O_PATH descriptors, and another descriptor needs read permission.
    os.chmod(f"/proc/self/fd/{entry}", stat.S_IMODE(found.st_mode) & ~mask)  # noqa: PTH101
    return 1


def _names(way: int) -> list[str]:
    try:
        opened_directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=way)
    except PermissionError:
        # Another user's directory.
        return []
    try:
        return os.listdir(opened_directory)  # noqa: PTH208 - a descriptor
    finally:
        os.close(opened_directory)
