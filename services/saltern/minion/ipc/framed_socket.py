"""The two ends between main process and zygote: whole messages of any size, over a socket that takes small ones only.

A socket pair takes no message larger than the system's send buffer (about 400 kB where nobody raised it), and a pillar or the
arguments of a job may be larger. So a message travels in parts. Several processes write to the zygote's end (it, and each
jobber); jobbers send small messages only, which are never cut, so that parts of two messages never mix.
"""

from __future__ import annotations

import socket
from collections import deque

#: Bytes of a part: well below the smallest send buffer in use.
PART_BYTES = 64 * 1024

_WHOLE, _PART, _LAST = b"w", b"p", b"l"


class FramedSocket:
    """One end. ``fileno`` makes it fit for select and poll."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._parts: list[bytes] = []
        self._outgoing: deque[bytes] = deque()

    def fileno(self) -> int:
        """The socket's number."""
        return self._end.fileno()

    def close(self) -> None:
        """Ends it; the other end notices."""
        self._end.close()

    def send(self, message: bytes) -> None:
        """Sends a message, waiting for the other end to read. Raises OSError when that is gone."""
        for part in _cut(message):
            self._end.send(part)

    def put(self, message: bytes) -> None:
        """Sends what goes without waiting, and keeps the rest for ``flush``. Raises OSError."""
        self._outgoing.extend(_cut(message))
        self.flush()

    def flush(self) -> None:
        """Sends on as much of what was put as goes without waiting. Raises OSError."""
        while self._outgoing:
            try:
                self._end.send(self._outgoing[0], socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            self._outgoing.popleft()

    @property
    def pending(self) -> bool:
        """Whether something waits for ``flush``."""
        return bool(self._outgoing)

    def receive(self) -> bytes | None:
        """A message; None when only a part of one came; empty when the other end is gone. Waits for something to come."""
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
