"""``salt.utils.gzip_util`` for users' modules: compression with gzip."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import IO

GzipFile = gzip.GzipFile
open = gzip.open


def open_fileobj(fileobj: IO[bytes], mode: str = "rb", compresslevel: int = 9) -> gzip.GzipFile:
    """Return a GzipFile that reads or writes compressed data in an open file."""
    return gzip.GzipFile(mode=mode, compresslevel=compresslevel, fileobj=fileobj)


def compress(data: bytes, compresslevel: int = 9) -> bytes:
    """Return bytes compressed by gzip."""
    return gzip.compress(data, compresslevel)


def uncompress(data: bytes) -> bytes:
    """Return the decompressed content of gzip data. Raise OSError for bytes that are not gzip data."""
    return gzip.decompress(data)


def compress_file(fh_: IO[bytes], compresslevel: int = 9, chunk_size: int = 1048576) -> Iterator[bytes]:
    """Yield the content of an open file compressed by gzip: one piece (bytes) for each ``chunk_size`` bytes of the
    file.
    """
    while piece := fh_.read(int(chunk_size)):
        yield gzip.compress(piece, compresslevel)
