"""Decompression with a bound: data from another machine becomes at most so many bytes."""

from __future__ import annotations

import gzip
import io


def inflated(data: bytes, most: int) -> bytes:
    """Return the decompressed bytes of gzip data.

    Raises OSError for data that is not gzip, EOFError for data that is cut off, zlib.error for damaged data, ValueError for
    more than ``most`` bytes.
    """
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        plain = file.read(most + 1)
    if len(plain) > most:
        raise ValueError(f"the decompressed data is larger than {most} bytes")
    return plain
