"""Files that are there whole or not at all, whoever reads and writes them at the same time."""

from __future__ import annotations

import errno
import os
from pathlib import Path

#: What file systems without hard links say to one.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


def put(path: Path, content: bytes, mode: int) -> None:
    """Writes a file, over one that is there. Raises OSError."""
    temporary = _beside(path, content, mode)
    try:
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def create(path: Path, content: bytes, mode: int) -> bool:
    """Writes a file where there is none. False: there is one by now, and it stays. Raises OSError.

    Of several at once one is the first; on a file system without hard links the last one counts.
    """
    temporary = _beside(path, content, mode)
    try:
        # Unlike a rename, it never takes the place of another file.
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return True


def _beside(path: Path, content: bytes, mode: int) -> Path:
    """A file with this content, never readable by more than ``mode`` says."""
    # Not named by the process: threads, and pods with one directory, may write the same file.
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return temporary
