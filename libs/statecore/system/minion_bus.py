"""The event bus of a minion: events from one process of the minion to others on the same host, such as its engines.

A subscriber binds a datagram socket in the directory ``bus`` of the minion's cache directory; a sender writes each event to
every socket there. No process has to run for it. Only the minion's user may open the directory.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgpack

from statecore.host.content import private_files

_LOG = logging.getLogger(__name__)

#: Seconds that a sender waits for a subscriber whose queue is full; then the subscriber loses the event.
_PATIENCE = 0.5

#: Bytes of the longest event. The kernel refuses longer datagrams (net.core.wmem_max).
_MOST_BYTES = 200_000


class TooLarge(Exception):
    """Raised for an event that is too large for the minion's event bus. The message has the event's size and the
    largest size.
    """


def bus_directory(opts: Mapping[str, object]) -> Path | None:
    """Return the directory of the minion's event bus; None if the options name no cache directory."""
    cachedir = opts.get("cachedir")
    return Path(str(cachedir)) / "bus" if cachedir else None


def fire(directory: Path | None, tag: str, data: Mapping[str, object]) -> None:
    """Send an event to all subscribers of the minion's event bus in ``directory``. The key ``_stamp`` (the current
    time) is added to the data. Raises TooLarge.

    A subscriber that does not read for half a second loses the event, which is logged.
    """
    if directory is None or not directory.is_dir():
        return
    stamped = {**data, "_stamp": data.get("_stamp") or datetime.now(UTC).isoformat()}
    frame: bytes = msgpack.packb([tag, stamped], default=str)
    if len(frame) > _MOST_BYTES:
        raise TooLarge(f"the event {tag} has {len(frame)} bytes; the minion's bus takes {_MOST_BYTES}")
    with _opened(directory) as way, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        for name in sorted(path.name for path in directory.iterdir()):
            # A process that does not read its own events must not wait for itself.
            sender.settimeout(0 if name.startswith(f"{os.getpid()}-") else _PATIENCE)
            try:
                sender.sendto(frame, f"/proc/self/fd/{way}/{name}")
            except ConnectionRefusedError:
                # Its subscriber was killed.
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=way)
            except (TimeoutError, BlockingIOError):
                _LOG.warning(
                    "the event %s is lost to a subscriber of the minion's bus that does not read (%s)", tag, name
                )
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.EPIPE):
                    raise


class Subscription:
    """A subscriber of a minion's event bus. It gets all events that are fired after it was made."""

    def __init__(self, directory: Path) -> None:
        """Subscribe to the bus in ``directory``, which is made if it is missing. Raises OSError."""
        private_files.directory(directory)
        self._path = directory / f"{os.getpid()}-{os.urandom(4).hex()}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with _opened(directory) as way:
            self._socket.bind(f"/proc/self/fd/{way}/{self._path.name}")

    def next(self, seconds: float) -> tuple[str, dict[str, Any]] | None:
        """Return the next event as (tag, data); None if none arrives within the given seconds."""
        self._socket.settimeout(max(seconds, 0.001))
        try:
            frame = self._socket.recv(_MOST_BYTES)
        except TimeoutError:
            return None
        tag, data = msgpack.unpackb(frame, strict_map_key=False)
        return str(tag), dict(data)

    def events(self, seconds: float) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (tag, data) of the events that arrive within the given seconds."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            event = self.next(min(left, 3600.0))
            if event is not None:
                yield event

    def close(self) -> None:
        """Stop receiving events, and delete the subscriber's socket."""
        self._socket.close()
        self._path.unlink(missing_ok=True)


@contextlib.contextmanager
def _opened(directory: Path) -> Iterator[int]:
    """Yield a descriptor of a directory. Its path below /proc is short enough for the address of a socket (107 bytes)."""
    way = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield way
    finally:
        os.close(way)
