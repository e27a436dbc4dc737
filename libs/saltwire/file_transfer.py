"""File transfer in chunks: the master's replies, and the minion's loop without a socket.

Source: docs/protocol.md#file-transfer
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from saltwire.errors import PeerFault
from saltwire.messages import FileChunk, FileRequest
from saltwire.pack import octets, text

#: Largest chunk after decompression: a small gzip stream must not become gigabytes.
MAX_CHUNK = 64 * 1024 * 1024


def is_inside(path: str) -> bool:
    """Return whether a relative path stays inside the state tree: not absolute, no ``..``, no null byte."""
    return bool(path) and not path.startswith("/") and "\0" not in path and ".." not in path.split("/")


def chunk(data: bytes, relative: str, *, gzip_level: int | None = None) -> FileChunk:
    """Return the master's reply with one chunk of a file: {data, dest: path in the state tree, gzip}. Empty data ends the file.

    ``gzip_level`` 1 to 9 compresses the chunk, None or 0 does not.
    """
    if data and gzip_level:
        level = min(max(gzip_level, 1), 9)
        return {"data": zlib.compress(data, level=level, wbits=31), "dest": relative, "gzip": level}
    return {"data": data, "dest": relative}


def missing() -> FileChunk:
    """Return the master's reply for a file that does not exist in the state tree: empty data and empty ``dest``."""
    return {"data": b"", "dest": ""}


class MissingFile(Exception):
    """Raised when the state tree has no such file, or the file was removed during its transfer."""


@dataclass
class Download:
    """A minion's side of one file transfer: send ``request()``, pass the reply to ``feed``, repeat until ``done``."""

    path: str
    saltenv: str
    received: int = 0
    done: bool = False

    def request(self) -> FileRequest:
        """Return the load of the request for the file's next chunk."""
        return {"cmd": "_serve_file", "path": self.path, "saltenv": self.saltenv, "loc": self.received}

    def feed(self, reply: object) -> bytes:
        """Take the master's reply with a chunk; return the bytes to append to the file. ``done`` is True after the last
        one.

        Raises MissingFile if the master does not have the file, PeerFault for a malformed reply.
        """
        if not isinstance(reply, Mapping):
            raise PeerFault(f"the master answered {reply!r} to a request for a file")
        data, dest = octets(reply.get("data")), text(reply.get("dest"))
        if data is None:
            raise PeerFault("a chunk without data")
        if not data:
            if not dest:
                # The last reply of a complete file still names it. Without a name the file was removed during the transfer.
                raise MissingFile(self.path)
            self.done = True
            return b""
        if reply.get("gzip"):
            data = _inflate(data)
        self.received += len(data)
        return data


def _inflate(data: bytes) -> bytes:
    inflater = zlib.decompressobj(wbits=31)
    try:
        plain = inflater.decompress(data, MAX_CHUNK + 1)
    except zlib.error as error:
        raise PeerFault(f"a chunk that is no gzip stream: {error}") from error
    if len(plain) > MAX_CHUNK:
        raise PeerFault(f"a chunk of more than {MAX_CHUNK} bytes")
    if not inflater.eof:
        raise PeerFault("a chunk whose gzip stream is cut off")
    if not plain:
        # Without progress the next request would have the same offset, for ever.
        raise PeerFault("a chunk whose gzip stream is empty")
    return plain
