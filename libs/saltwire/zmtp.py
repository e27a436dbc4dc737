"""The master's side of one connection on port 4506: the part of ZMTP 3 without encryption that minions use. Opens no socket.

libzmq is not used there, because a stranger's connection can make it call abort(), keep file descriptors of broken
connections, or hold messages without limit. Here nothing but one request is kept, and an identity that a peer chooses
means nothing. Specification of ZMTP: https://rfc.zeromq.org/spec/23/ and https://rfc.zeromq.org/spec/37/.

Source: docs/protocol.md#request-framing
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

#: Signature, version 3.1, mechanism NULL, not a server, filler.
GREETING = b"\xff" + bytes(7) + b"\x01\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)

_MORE, _LONG, _COMMAND = 1, 2, 4

#: Largest command of a peer, bytes. READY has about 50; an identity in it has at most 255.
_MAX_COMMAND = 1024

#: Types of sockets that may send requests.
_KINDS = frozenset({b"REQ", b"DEALER", b"ROUTER"})

#: Bytes of a heartbeat that its answer repeats at most.
_CONTEXT = 16

_READY = b"\x05READY\x0bSocket-Type" + struct.pack(">I", 6) + b"ROUTER\x08Identity" + struct.pack(">I", 0)

#: Number of frames of a message that is no request.
_TOO_MANY = 3


class ZmtpFault(Exception):
    """Raised when the peer does not speak ZMTP, or its message is too large. The connection must be closed."""


class RequestConnection:
    """The ZMTP state of one connection: give received bytes to ``feed``, send the bytes in ``outgoing``."""

    __slots__ = ("_frames", "_greeted", "_max", "_pending", "_skip", "_want", "outgoing", "ready")

    def __init__(self, max_bytes: int) -> None:
        """Create the state of a connection whose handshake has not begun. ``max_bytes``: size of the largest request;
        a larger one raises ZmtpFault.
        """
        self._max = max_bytes
        #: Bytes that were received and not read yet: less than one frame.
        self._pending = bytearray()
        #: Bytes that ``_pending`` must have before it is worth reading.
        self._want = len(GREETING)
        #: Bytes to throw away, because they belong to a message that is no request.
        self._skip = 0
        #: Number of frames of the current message so far.
        self._frames = 0
        self._greeted = False
        #: Whether the handshake is complete.
        self.ready = False
        #: Bytes to send: handshake and answers to heartbeats. The owner takes them out, and may add its own.
        self.outgoing = bytearray(GREETING)

    @property
    def held(self) -> int:
        """Number of bytes that wait for the rest of their frame."""
        return len(self._pending)

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """Yield each request that is complete now, None for a message that is no request. Raises ZmtpFault."""
        if self._skip:
            skipped = min(self._skip, len(data))
            self._skip -= skipped
            data = data[skipped:]
        whole: bytes | bytearray = data
        if self._pending or len(data) < self._want:
            self._pending += data
            if len(self._pending) < self._want:
                return
            whole = self._pending
        place = 0
        if not self._greeted:
            _check_greeting(whole)
            self._greeted, place = True, len(GREETING)
            self.outgoing += bytes([_COMMAND, len(_READY)]) + _READY
        end = len(whole)
        self._want = 2
        while end - place >= 2:
            flags = whole[place]
            if not flags & _LONG:
                size, begins = whole[place + 1], place + 2
            elif end - place >= 9:
                size, begins = int.from_bytes(whole[place + 1 : place + 9], "big"), place + 9
            else:
                self._want = 9
                break
            if size > (_MAX_COMMAND if flags & _COMMAND else self._max):
                raise ZmtpFault(f"a frame of {size} bytes")
            rest = begins + size - end
            if flags & _COMMAND:
                if rest > 0:
                    self._want = begins + size - place
                    break
                self._command(bytes(whole[begins : begins + size]))
            else:
                kept = self._is_kept(flags, size)
                if kept and rest > 0:
                    self._want = begins + size - place
                    break
                if not self.ready:
                    raise ZmtpFault("a message before the handshake")
                self._frames = self._frames + 1 if kept else _TOO_MANY
                if not flags & _MORE:
                    complete, self._frames = self._frames == 2, 0
                    yield bytes(whole[begins : begins + size]) if complete else None
                if rest > 0:
                    self._skip = rest
                    place = end
                    break
            place = begins + size
        if whole is self._pending:
            del self._pending[:place]
        elif place < end:
            self._pending += whole[place:]

    def _is_kept(self, flags: int, size: int) -> bool:
        """Return whether a frame is the empty delimiter of a request, or its payload."""
        if self._frames == 0:
            return size == 0 and bool(flags & _MORE)
        return self._frames == 1 and not flags & _MORE

    def _command(self, body: bytes) -> None:
        if body.startswith(b"\x05READY"):
            if self.ready or _kind(body[6:]) not in _KINDS:
                raise ZmtpFault("a READY that does not fit")
            self.ready = True
        elif not self.ready or body.startswith(b"\x05ERROR"):
            raise ZmtpFault("no handshake")
        elif body.startswith(b"\x04PING"):
            # Behind the name: how long the peer waits (2 bytes), and what it wants back.
            answer = b"\x04PONG" + body[7 : 7 + _CONTEXT]
            self.outgoing += bytes([_COMMAND, len(answer)]) + answer


def reply_header(size: int) -> bytes:
    """Return the bytes of a reply that precede its payload of ``size`` bytes: the delimiter, and the payload's header."""
    return b"\x01\x00" + (bytes([0, size]) if size < 256 else bytes([_LONG]) + struct.pack(">Q", size))


def _check_greeting(data: bytes | bytearray) -> None:
    if data[0] != 0xFF or not data[9] & 1 or data[10] < 3:
        raise ZmtpFault("not ZMTP 3")
    if bytes(data[12:32]).rstrip(b"\0") != b"NULL":
        raise ZmtpFault("another mechanism than NULL")


def _kind(properties: bytes) -> bytes:
    """Return the ZeroMQ socket type of the peer (such as b"REQ") from its handshake; b"" if the handshake names none."""
    place = 0
    while place < len(properties):
        name_end = place + 1 + properties[place]
        value = name_end + 4
        value_end = value + int.from_bytes(properties[name_end:value], "big")
        if properties[place + 1 : name_end].lower() == b"socket-type":
            return properties[value:value_end]
        place = value_end
    return b""
