"""Files in chunks: the master's answers and the minion's loop, without a socket (protocol section 7.4)."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from saltwire.errors import PeerFault
from saltwire.messages import FileChunk, FileRequest
from saltwire.pack import octets, text

#: Largest chunk after decompression: a small gzip stream must not become gigabytes.
MAX_CHUNK = 64 * 1024 * 1024


def is_inside(path: str) -> bool:
    """Whether a relative path stays inside the tree it is looked up in."""
    return bool(path) and not path.startswith("/") and "\0" not in path and ".." not in path.split("/")


def chunk(data: bytes, relative: str, *, gzip_level: int | None = None) -> FileChunk:
    """The answer that carries a chunk; empty data ends the file."""
    if data and gzip_level:
        level = min(max(gzip_level, 1), 9)
        return {"data": gzip.compress(data, compresslevel=level), "dest": relative, "gzip": level}
    return {"data": data, "dest": relative}


def missing() -> FileChunk:
    """The answer for a file that is not there."""
    return {"data": b"", "dest": ""}


class MissingFile(Exception):
    """The master has no such file, or no longer."""


@dataclass
class Download:
    """A minion's side of one file: ask ``request``, ``feed`` the answer, until ``done``."""

    path: str
    saltenv: str
    received: int = 0
    done: bool = False

    def request(self) -> FileRequest:
        """The load of the next request."""
        return {"cmd": "_serve_file", "path": self.path, "saltenv": self.saltenv, "loc": self.received}

    def feed(self, reply: object) -> bytes:
        """Bytes to append. Raises MissingFile, PeerFault."""
        if not isinstance(reply, Mapping):
            raise PeerFault(f"the master answered {reply!r} to a request for a file")
        data, dest = octets(reply.get("data")), text(reply.get("dest"))
        if data is None:
            raise PeerFault("a chunk without data")
        if not data:
            if not dest:
                # At the end of a file the answer still names it; a file that went away in the middle is not whole.
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
        # It would be asked for again at the same place, for ever.
        raise PeerFault("a chunk that is empty but for its gzip stream")
    return plain
