"""``salt.utils.atomicfile`` for users' modules: files that are replaced as a whole."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from statecore.host.content import atomic_file

atomic_rename = os.replace


@contextlib.contextmanager
def atomic_open(filename: str, mode: str = "w") -> Iterator[IO[Any]]:
    """Context manager that yields a new file opened for writing, which replaces ``filename`` when the block ends; after
    an exception nothing changes.

    Raise TypeError if the mode is not one for writing.
    """
    if mode not in ("w", "wb", "w+", "w+b"):
        raise TypeError(f"Filemode '{mode}' not allowed")
    path = Path(filename)
    with atomic_file.replacement(path) as temporary:
        with open(temporary, mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
        if path.exists():
            shutil.copymode(path, temporary)


def safe_atomic_write(dst: str, data: str | bytes, backup_mode: str = "", cachedir: str = "") -> None:
    """Replace a file by one with this content. The file's mode and owner stay. ``backup_mode`` "minion" or "both" keeps a
    copy of the old file below ``cachedir``.
    """
    path = Path(dst)
    if path.exists() and backup_mode in ("minion", "both") and cachedir:
        kept = Path(cachedir, "file_backup") / path.relative_to(path.anchor).parent
        kept.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f"{path.name}_", dir=kept)
        os.close(handle)
        shutil.copy2(path, name)
    with atomic_file.replacement(path) as temporary:
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)
        if path.exists():
            shutil.copymode(path, temporary)
            found = path.stat()
            os.chown(temporary, found.st_uid, found.st_gid)
        else:
            temporary.chmod(0o600)
