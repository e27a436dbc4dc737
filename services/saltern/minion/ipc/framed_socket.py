"""Messages of any size over a socket that takes only small packets; used between main process and zygote.

A SEQPACKET socket takes no packet larger than its send buffer (about 400 kB by default). A pillar or the arguments of a job may
be larger, so a message is cut into parts. Several processes write to the zygote's end (the zygote and each jobber). Jobbers
send only small messages, which are not cut, so parts of two messages never mix.
"""

from __future__ import annotations

import socket
from collections import deque

#: Bytes of a part, well below the smallest send buffer.
PART_BYTES = 64 * 1024

_WHOLE, _PART, _LAST = b"w", b"p", b"l"


class FramedSocket:
    """One end of a socket pair for messages of any size. It has ``fileno``, so select and poll accept it."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._parts: list[bytes] = []
        self._outgoing: deque[bytes] = deque()

    def fileno(self) -> int:
        """Return the socket's file descriptor."""
        return self._end.fileno()

    def close(self) -> None:
        """Close the socket. The other end receives an empty message."""
        self._end.close()

    def send(self, message: bytes) -> None:
        """Send a message; wait until the other end reads. Raise OSError if the other end is gone."""
        for part in _cut(message):
            self._end.send(part)

    def put(self, message: bytes) -> None:
        """Send as much of the message as the socket takes at once, and keep the rest for ``flush``. Raise OSError."""
        self._outgoing.extend(_cut(message))
        self.flush()

    def flush(self) -> None:
        """Send as much of the kept messages as the socket takes. Raise OSError if the other end is gone."""
        while self._outgoing:
            try:
                self._end.send(self._outgoing[0], socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            self._outgoing.popleft()

    @property
    def pending(self) -> bool:
        """Return whether parts of messages wait for ``flush``."""
        return bool(self._outgoing)

    def receive(self) -> bytes | None:
        """Wait for one packet of the socket. Return the message if it is complete; None if further packets of it are
        still to come; empty bytes if the other end has closed the socket.
        """
        packet = self._end.recv(PART_BYTES + 1)
        kind, content = packet[:1], packet[1:]
        if kind == _PART:
            self._parts.append(content)
            return None
        if kind == _LAST:
            content = b"".join([*self._parts, content])
            self._parts.clear()
        return content


def _cut(message: bytes) -> list[bytes]:
    if len(message) <= PART_BYTES:
        return [_WHOLE + message]
    parts = [message[start : start + PART_BYTES] for start in range(0, len(message), PART_BYTES)]
    return [*(_PART + part for part in parts[:-1]), _LAST + parts[-1]]
