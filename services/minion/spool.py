"""Results that the master has not acknowledged yet: one file each, written before anything is sent, in order of age.

A file's name is ``<nanoseconds>-<jid>.ret``; it holds the ``_return`` load (protocol section 7.3) as msgpack. A file that
cannot be read back is set aside as ``.bad`` and reported, never sent and never in the way of the others.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgpack

_LOG = logging.getLogger("saltern.minion")

_SUFFIX = ".ret"


class Spool:
    """A directory of unacknowledged returns. Safe for any number of writing processes and one reader."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def put(self, load: Mapping[str, Any]) -> Path:
        """Stores a return durably; it is there in full or not at all. Raises OSError (disk full)."""
        name = f"{time.time_ns():020d}-{load['jid']}{_SUFFIX}"
        temporary = self._directory / f".{name}.{os.getpid()}"
        with temporary.open("wb") as file:
            file.write(msgpack.packb(load, default=_plain))
            file.flush()
            os.fsync(file.fileno())
        path = self._directory / name
        temporary.rename(path)
        return path

    def waiting(self) -> list[Path]:
        """Unacknowledged returns, oldest first."""
        return sorted(self._directory.glob(f"*{_SUFFIX}"))

    def read(self, path: Path) -> dict[str, Any] | None:
        """The load; None for a file that is gone or unreadable (then it is set aside)."""
        try:
            load = msgpack.unpackb(path.read_bytes(), strict_map_key=False)
        except FileNotFoundError:
            return None
        except (ValueError, msgpack.UnpackException) as error:
            aside = path.with_suffix(".bad")
            path.rename(aside)
            _LOG.error(
                "the spooled return %s cannot be read (%s) and was set aside as %s", path.name, error, aside.name
            )
            return None
        return load if isinstance(load, dict) else None

    def acknowledged(self, path: Path) -> None:
        """The master has it."""
        path.unlink(missing_ok=True)

    def size(self) -> int:
        """Bytes that wait."""
        return sum(_sizes(self._directory))


def _sizes(directory: Path) -> Iterator[int]:
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                yield entry.stat().st_size
            except FileNotFoundError:
                continue


def _plain(value: Any) -> Any:
    """What msgpack does not know: sets as lists, everything else as its text, so that no result is ever lost for its type."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return dict(value) if isinstance(value, Mapping) else str(value)
