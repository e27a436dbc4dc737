"""Files in which a minion stores data between processes, below its cachedir: msgpack, mode 0600, replaced
atomically.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgpack

from statecore.host.content import private_files
from statecore.model.errors import CommandError

#: Names that callers may choose. They become file names.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def is_plain(name: str) -> bool:
    """Return whether a name that a caller chose is safe as a file name: no slash, no leading dot."""
    return _PLAIN.fullmatch(name) is not None


def load(path: Path) -> object:
    """Return the data that a minion stored in a msgpack file; None if there is no such file.

    Raises CommandError for an unreadable or damaged file.
    """
    try:
        return msgpack.unpackb(path.read_bytes(), strict_map_key=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise CommandError(f"{path} is damaged ({error}); it may be deleted") from error


def store(path: Path, data: object) -> None:
    """Store data in a msgpack file, which is replaced atomically. Values that msgpack does not support are stored as
    text.

    Raises CommandError if the file cannot be written.
    """
    try:
        packed = msgpack.packb(data, default=str, unicode_errors="surrogatepass")
    except (ValueError, OverflowError, RecursionError) as error:
        raise CommandError(f"What belongs into {path} cannot be stored: {error}") from error
    store_bytes(path, packed)


def store_bytes(path: Path, packed: bytes) -> None:
    """Replace the file atomically by msgpack-packed ``bytes``. Raises CommandError when the file cannot be written."""
    try:
        private_files.write(path, packed)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error


def remove(path: Path) -> bool:
    """Remove a file with stored data. Return True if it existed. Raises CommandError if it cannot be removed."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CommandError(f"{path} cannot be removed: {error.strerror}") from error
    return True
