"""SQLite databases that are files of the managed host."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from statecore.host.rooted_path import located


@contextlib.contextmanager
def opened(path: Path, timeout: float = 5.0) -> Iterator[sqlite3.Connection]:
    """Yield a connection to the SQLite database at a path of the host. A missing file is created. The block's changes
    are committed at its end, and rolled back after an exception. ``timeout``: seconds to wait while another process
    locks the database.

    Raise sqlite3.Error if the file cannot be opened or is no database, OSError for a missing directory.
    """
    with located(path, follow=True) as (name, way):
        place = name if way is None else f"/proc/self/fd/{way}/{name}"
        with contextlib.closing(sqlite3.connect(place, timeout=timeout)) as connection, connection:
            yield connection
