"""``salt.utils.gzip_util`` for users' modules."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import IO

GzipFile = gzip.GzipFile
open = gzip.open


def open_fileobj(fileobj: IO[bytes], mode: str = "rb", compresslevel: int = 9) -> gzip.GzipFile:
    """Return a gzip file over an open file."""
    return gzip.GzipFile(mode=mode, compresslevel=compresslevel, fileobj=fileobj)


def compress(data: bytes, compresslevel: int = 9) -> bytes:
    """Return bytes in gzip form."""
    return gzip.compress(data, compresslevel)


def uncompress(data: bytes) -> bytes:
    """Return the bytes of a gzip form. Raise OSError for other bytes."""
    return gzip.decompress(data)


def compress_file(fh_: IO[bytes], compresslevel: int = 9, chunk_size: int = 1048576) -> Iterator[bytes]:
    """Yield the content of an open file in gzip form, a piece for each ``chunk_size`` bytes of it."""
    while piece := fh_.read(int(chunk_size)):
        yield gzip.compress(piece, compresslevel)
