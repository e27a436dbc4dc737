"""Files in which a minion keeps data between processes (below its cachedir): msgpack, replaced whole, nobody else's to read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgpack

from statecore.host.content import atomic_file
from statecore.model.errors import CommandError

#: Names that callers may choose: they become file names.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def is_plain(name: str) -> bool:
    """Whether a name can be a file's and leads nowhere else."""
    return _PLAIN.fullmatch(name) is not None


def load(path: Path) -> Any:
    """What was stored, None when there is no such file. Raises CommandError for a file that cannot be read or is damaged."""
    try:
        return msgpack.unpackb(path.read_bytes(), strict_map_key=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise CommandError(f"{path} is damaged ({error}); it may be deleted") from error


def store(path: Path, data: Any) -> None:
    """Replaces the file at once, so that no reader sees half of it. Raises CommandError when that cannot be done.

    What msgpack has no form for is stored as its text.
    """
    try:
        packed = msgpack.packb(data, default=str, unicode_errors="surrogatepass")
    except (ValueError, OverflowError, RecursionError) as error:
        raise CommandError(f"What belongs into {path} cannot be stored: {error}") from error
    store_bytes(path, packed)


def store_bytes(path: Path, packed: bytes) -> None:
    """``store`` of what is packed already."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        atomic_file.write(path, packed, 0o600)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error


def remove(path: Path) -> bool:
    """Whether there was such a file. Raises CommandError when it cannot be removed."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CommandError(f"{path} cannot be removed: {error.strerror}") from error
    return True
