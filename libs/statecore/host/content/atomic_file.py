"""Atomic replacement of files: readers see the old content or the complete new content, never a part of it.

Each function makes a temporary file in the directory of the target and renames it over the target. When anything fails,
the temporary file is removed and the target stays as it was. Files of the managed host are replaced by
``managed_file``, which also keeps the owner, the ACL and the extended attributes of the old file.

The name of a temporary file ends in the id of the process that writes it. A cleanup can therefore tell the files of
killed processes from the files of running ones.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from statecore.host.rooted_path import located

#: Error numbers of link(2) on file systems that have no hard links.
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})

#: Characters of the target's name that the temporary name keeps: a name may have at most 255 bytes.
_KEPT_CHARACTERS = 100


def temporary_name(name: str) -> str:
    """Return an unused hidden name for a temporary file beside ``name``: a file name, or a path whose last part is the
    name.
    """
    directory, own = os.path.split(name)
    # Random: threads, and containers that share a directory, may have the same process id.
    return os.path.join(directory, f".{own[:_KEPT_CHARACTERS]}.saltern-{os.urandom(6).hex()}.{os.getpid()}")


@contextlib.contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """Yield an unused path in the directory of ``path``, and rename it over ``path`` when the block ends without an
    error.

    The block makes a file, a symbolic link or a hard link at the yielded path. ``path`` may be a ``RootedPath``. Raise
    OSError if the rename fails.
    """
    temporary = path.with_name(temporary_name(path.name))
    try:
        yield temporary
        temporary.replace(path)
    finally:
        # Also after the rename: a rename between two hard links of one file does nothing.
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def writer(
    path: Path,
    mode: int = 0o666,
    *,
    exact: bool = False,
    sync: bool = False,
    owner: tuple[int, int] | None = None,
) -> Iterator[BinaryIO]:
    """Yield a new binary file that replaces ``path`` when the block ends without an error. Raise OSError if it cannot
    be written.

    mode
        permission bits of the new file, reduced by the umask of the process
    exact
        sets ``mode`` regardless of the umask, after the content is written
    sync
        writes the content to the disk (fsync) before the rename
    owner
        (uid, gid) of the new file, set by its descriptor before it has its name; None: the user of this process
    """
    with replacement(path) as temporary, _created(temporary, mode & 0o700 if exact else mode) as file:
        yield file
        if owner is not None:
            os.fchown(file.fileno(), *owner)
        if exact:
            os.fchmod(file.fileno(), mode)
        if sync:
            file.flush()
            os.fsync(file.fileno())


def write(
    path: Path,
    content: bytes | str,
    mode: int = 0o666,
    *,
    exact: bool = False,
    sync: bool = False,
    owner: tuple[int, int] | None = None,
) -> None:
    """Replace a file by one with this content; text is encoded as UTF-8. ``mode``, ``exact``, ``sync`` and ``owner``
    are as in ``writer``. Raise OSError if the file cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    with writer(path, mode, exact=exact, sync=sync, owner=owner) as file:
        file.write(data)


def create(path: Path, content: bytes, mode: int, *, owner: tuple[int, int] | None = None) -> bool:
    """Write a new file and return True. Return False if the file exists already; it is then left unchanged. Raise
    OSError if the file cannot be written.

    When several processes create one file at the same time, the first one wins. On a file system without hard links,
    the last one wins. ``mode`` is reduced by the umask of the process. ``owner`` is as in ``writer``.
    """
    temporary = path.with_name(temporary_name(path.name))
    try:
        with _created(temporary, mode) as file:
            file.write(content)
            if owner is not None:
                os.fchown(file.fileno(), *owner)
        # A hard link, unlike a rename, never replaces an existing file.
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return True


def _created(path: Path, mode: int) -> BinaryIO:
    # The mode is given to open(2), so that no other user can read the file before it is complete.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with located(path) as (name, way):
        return os.fdopen(os.open(name, flags, mode, dir_fd=way), "wb")
