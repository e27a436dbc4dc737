"""Copies of files and directories, on this machine or on a mounted host: content, modes, times, extended attributes."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

from statecore.host.rooted_path import located

#: Bytes per read.
_BLOCK = 1024 * 1024

#: Extended attributes that belong to the content: a new content must not inherit capabilities and signatures of the old.
_OF_CONTENT = frozenset({"security.capability", "security.ima", "security.evm"})

#: Error numbers of file systems without extended attributes, or without them for this kind of file.
_NO_EXTENDED = frozenset({errno.ENOTSUP, errno.ENOSYS, errno.ENODATA})


def same_content(one: Path, other: Path) -> bool:
    """Return whether two files have the same bytes. The files are compared in blocks. Raise OSError if one of them
    cannot be read.
    """
    with one.open("rb") as first, other.open("rb") as second:
        if os.fstat(first.fileno()).st_size != os.fstat(second.fileno()).st_size:
            return False
        while block := first.read(_BLOCK):
            if block != second.read(_BLOCK):
                return False
        return not second.read(1)


def copy_content(source: Path, target: Path) -> None:
    """Copy the content of a file to ``target``, which is created or overwritten. Raise OSError if it cannot be copied."""
    with target.open("wb") as file:
        fill(file, source)


def fill(file: IO[bytes], source: Path) -> None:
    """Write the content of the file ``source`` into an open file. Raise OSError if it cannot be read or written."""
    # shutil.copyfileobj does the same. The import of shutil takes longer than that of all that commands need from here.
    with source.open("rb") as data:
        while block := data.read(_BLOCK):
            file.write(block)


def copy_attributes(source: Path, target: Path) -> None:
    """Copy the mode and the times of a file or directory to another one. Raise OSError if one of the two does not
    exist, or may not be changed.
    """
    found = source.stat()
    target.chmod(stat.S_IMODE(found.st_mode))
    with located(target, follow=True) as (name, way):
        os.utime(name, ns=(found.st_atime_ns, found.st_mtime_ns), dir_fd=way, follow_symlinks=False)


def copy(source: Path, target: Path) -> None:
    """Copy a file with its mode and times. A symbolic link is copied as a link and replaces ``target``. Raise OSError
    if the file cannot be copied.
    """
    if source.is_symlink():
        target.unlink(missing_ok=True)
        target.symlink_to(source.readlink())
        return
    copy_content(source, target)
    copy_attributes(source, target)


def copy_tree(origin: Path, target: Path) -> None:
    """Copy a directory with its content. Links are copied as links; pipes and device files are created anew. Raise
    OSError at the first file that cannot be copied, or if ``target`` exists.
    """
    target.mkdir()
    for entry in origin.iterdir():
        mode = entry.lstat().st_mode
        if stat.S_ISDIR(mode):
            copy_tree(entry, target / entry.name)
        elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            copy(entry, target / entry.name)
        else:
            with located(target / entry.name) as (name, way):
                os.mknod(name, mode, entry.lstat().st_rdev, dir_fd=way)
    copy_attributes(origin, target)


def extended_attributes(path: str | int) -> dict[str, bytes]:
    """Map of name to value (bytes) of a file's extended attributes, including ACLs and the SELinux context.

    {} if the file system has none.
    """
    try:
        names = os.listxattr(path)
        return {name: os.getxattr(path, name) for name in names if name not in _OF_CONTENT}
    except OSError as error:
        if error.errno not in _NO_EXTENDED:
            raise
        return {}


def set_extended_attribute(descriptor: int, name: str, value: bytes) -> None:
    """Set an extended attribute of an open file. Nothing happens if the file system has no extended attributes, or if
    the security policy refuses a security context. Raise OSError for other failures.
    """
    try:
        os.setxattr(descriptor, name, value)
    except OSError as error:
        # The security policy may refuse a context. The new file then keeps the default of its directory.
        if error.errno not in _NO_EXTENDED and not name.startswith("security."):
            raise
