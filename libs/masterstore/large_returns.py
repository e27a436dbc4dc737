"""Large returns: stored compressed in a key of their own, with a small return in Salt's key that says so. No I/O."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from masterstore import values
from masterstore.errors import StoreCorrupt

#: Field of the small return: size of the whole return's JSON, bytes.
MARK = "__large__"

#: zlib level: fast; returns are text and compress well even so.
_LEVEL = 1

#: Largest decompressed return, bytes; more than any request can carry.
_MOST = 1 << 30


def packed(ret: Mapping[str, object], above: int, key: str) -> tuple[bytes, bytes]:
    """Return (JSON to store in ``ret:<jid>``, compressed JSON or b"") of a minion's return.

    Up to ``above`` bytes (0: any size) the first JSON is the whole return. Above, the compressed JSON is the
    whole return, and the first JSON has a short note in place of the field ``return``, which names ``key``, the Redis
    key of the compressed JSON.
    """
    data = values.dumps(ret).encode()
    if not 0 < above < len(data):
        return data, b""
    note = f"{len(data)} bytes, compressed in {key}"
    return values.dumps({**ret, "return": note, MARK: len(data)}).encode(), zlib.compress(data, _LEVEL)


def is_large(ret: Mapping[str, object]) -> bool:
    """Return True if a return read from ``ret:<jid>`` has only a note in place of its value; ``unpacked`` reads
    the whole return.
    """
    return isinstance(ret.get(MARK), int)


def unpacked(data: bytes, key: str) -> dict[str, object]:
    """Return the large return in compressed bytes. Raises StoreCorrupt, which names the Redis key ``key``."""
    try:
        inflate = zlib.decompressobj()
        text = inflate.decompress(data, _MOST)
    except zlib.error as error:
        raise StoreCorrupt(key, f"not compressed by zlib: {error}") from error
    if not inflate.eof:
        raise StoreCorrupt(key, "the compressed return is cut off, or larger than any return")
    return values.loads_map(text, key)
