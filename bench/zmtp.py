"""One ZeroMQ connection on a plain socket: the part of ZMTP 3.0 without encryption that a minion needs.

libzmq has a thread of its own and checks all of its sockets whenever one is ready. With a thousand connections in one
process that costs more CPU time than the master uses. Here epoll names the connection that has data, and this class
reads from that connection only. Specification of ZMTP: https://rfc.zeromq.org/spec/23/.

Source: docs/protocol.md#request-framing and docs/protocol.md#publish-framing
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator

#: Signature, version 3.0, mechanism NULL, not a server, filler.
_GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)

_MORE, _LONG, _COMMAND = 1, 2, 4

#: Bytes that are read at once.
_READ = 65_536

#: What a SUB says to get everything.
SUBSCRIBE_ALL = b"\x01"


class Connection:
    """Client side of a connection: ``connect``, then ``receive`` when the poller reports data. ``ready`` is True once messages
    may be sent.
    """

    def __init__(self, kind: bytes) -> None:
        """Create a connection that is not open yet. ``kind``: ZeroMQ socket type, DEALER or SUB."""
        self._kind = kind
        self._socket: socket.socket | None = None
        self._arrived = bytearray()
        self._unsent = bytearray()
        self._frames: list[bytes] = []
        self._greeted = False
        self.ready = False

    def connect(self, port: int) -> int:
        """Connect to a port of this machine, replacing an earlier connection; return the file descriptor. Raises OSError."""
        self.close()
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(_GREETING + _frame(_COMMAND, b"\x05READY" + _property(b"Socket-Type", self._kind)))
        return self._socket.fileno()

    def fileno(self) -> int:
        """Return the file descriptor of the open connection, for a poller."""
        assert self._socket is not None
        return self._socket.fileno()

    def await_ready(self) -> None:
        """Wait for the peer's greeting, which precedes all messages. Raises OSError if there is none."""
        while not self.ready:
            self.receive()

    def send(self, *frames: bytes) -> None:
        """Send one message. Raises OSError if the peer closed the connection or reads nothing for a minute."""
        assert self._socket is not None
        self._unsent += _message(frames)
        self._socket.sendall(self._unsent)
        self._unsent.clear()

    def post(self, *frames: bytes) -> None:
        """Send one message as far as the peer takes it now; ``flush`` sends the rest. Raises OSError if the peer closed the
        connection.
        """
        self._unsent += _message(frames)
        self.flush()

    @property
    def unsent(self) -> bool:
        """Whether a part of a message waits for ``flush``."""
        return bool(self._unsent)

    def flush(self) -> None:
        """Send what waits as far as the peer takes it now. Raises OSError if the peer closed the connection."""
        assert self._socket is not None
        with contextlib.suppress(BlockingIOError):
            while self._unsent:
                del self._unsent[: self._socket.send(self._unsent, socket.MSG_DONTWAIT)]

    def receive(self) -> list[list[bytes]]:
        """Return the messages that are complete now. Raises ConnectionError if the peer closed the connection."""
        assert self._socket is not None
        read = self._socket.recv(_READ)
        if not read:
            raise ConnectionError("the master ended the connection")
        self._arrived += read
        return list(self._messages())

    def _messages(self) -> Iterator[list[bytes]]:
        if not self._greeted:
            if len(self._arrived) < len(_GREETING):
                return
            self._greeted = True
            del self._arrived[: len(_GREETING)]
        place = 0
        while (found := _next_frame(self._arrived, place)) is not None:
            flags, body, place = found
            if flags & _COMMAND:
                self._command(body)
                continue
            self._frames.append(body)
            if not flags & _MORE:
                yield self._frames
                self._frames = []
        del self._arrived[:place]

    def _command(self, body: bytes) -> None:
        if body.startswith(b"\x05READY"):
            self.ready = True
        elif body.startswith(b"\x04PING"):
            # Behind the name: how long the peer waits (2 bytes), and what it wants back.
            self._unsent += _frame(_COMMAND, b"\x04PONG" + body[7:])
            self.flush()

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._arrived.clear()
        self._unsent.clear()
        self._frames, self._greeted, self.ready = [], False, False


def _property(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + struct.pack(">I", len(value)) + value


def _message(frames: tuple[bytes, ...]) -> bytes:
    last = len(frames) - 1
    return b"".join(_frame(_MORE if n < last else 0, frame) for n, frame in enumerate(frames))


def _frame(flags: int, body: bytes) -> bytes:
    if len(body) > 255:
        return bytes([flags | _LONG]) + struct.pack(">Q", len(body)) + body
    return bytes([flags, len(body)]) + body


def _next_frame(data: bytearray, place: int) -> tuple[int, bytes, int] | None:
    """Return (flags, body, position of the next frame) of the frame at a position; None if the frame is incomplete."""
    wide = 8 if place < len(data) and data[place] & _LONG else 1
    begins = place + 1 + wide
    if len(data) < begins:
        return None
    ends = begins + int.from_bytes(data[place + 1 : begins], "big")
    return (data[place], bytes(data[begins:ends]), ends) if len(data) >= ends else None
