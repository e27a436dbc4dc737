"""Copies of files and directories, plain or of a mounted host: bytes in blocks, modes, times, extended attributes."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

from statecore.host.rooted_path import located

#: Bytes read at a time.
_BLOCK = 1024 * 1024

#: Extended attributes that speak of the content: a new one must not inherit the powers or the seal of the old.
_OF_CONTENT = frozenset({"security.capability", "security.ima", "security.evm"})

#: What a file system says that has no extended attributes, or not for such files.
_NO_EXTENDED = frozenset({errno.ENOTSUP, errno.ENOSYS, errno.ENODATA})


def same_content(one: Path, other: Path) -> bool:
    """Whether two files hold the same bytes; never both, or either, in memory. Raises OSError."""
    with one.open("rb") as first, other.open("rb") as second:
        if os.fstat(first.fileno()).st_size != os.fstat(second.fileno()).st_size:
            return False
        while block := first.read(_BLOCK):
            if block != second.read(_BLOCK):
                return False
        return not second.read(1)


def copy_content(source: Path, target: Path) -> None:
    """Puts the bytes of a file into another, which is made. Raises OSError."""
    with source.open("rb") as data, target.open("wb") as file:
        shutil.copyfileobj(data, file, _BLOCK)


def copy_attributes(source: Path, target: Path) -> None:
    """Gives a file or directory another's mode, times and extended attributes. Raises OSError."""
    found = source.stat()
    target.chmod(stat.S_IMODE(found.st_mode))
    with located(target, follow=True) as (name, way):
        os.utime(name, ns=(found.st_atime_ns, found.st_mtime_ns), dir_fd=way, follow_symlinks=False)


def copy(source: Path, target: Path) -> None:
    """Copies a file with its mode and times; a link as a link, which replaces what is there. Raises OSError."""
    if source.is_symlink():
        target.unlink(missing_ok=True)
        target.symlink_to(source.readlink())
        return
    copy_content(source, target)
    copy_attributes(source, target)


def copy_tree(origin: Path, place: Path) -> None:
    """A directory with all that is in it; links as links. Pipes and devices are made anew, not read."""
    place.mkdir()
    for entry in origin.iterdir():
        mode = entry.lstat().st_mode
        if stat.S_ISDIR(mode):
            copy_tree(entry, place / entry.name)
        elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            copy(entry, place / entry.name)
        else:
            with located(place / entry.name) as (name, way):
                os.mknod(name, mode, entry.lstat().st_rdev, dir_fd=way)
    copy_attributes(origin, place)


def extended(path: str | int) -> dict[str, bytes]:
    """Extended attributes, ACLs and the security context among them; {} where the file system has none."""
    try:
        names = os.listxattr(path)
        return {name: os.getxattr(path, name) for name in names if name not in _OF_CONTENT}
    except OSError as error:
        if error.errno not in _NO_EXTENDED:
            raise
        return {}


def extend(descriptor: int, name: str, value: bytes) -> None:
    try:
        os.setxattr(descriptor, name, value)
    except OSError as error:
        # Security contexts are the policy's to refuse: the new file has the one that its directory gives.
        if error.errno not in _NO_EXTENDED and not name.startswith("security."):
            raise
