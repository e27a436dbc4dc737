"""Returns that are too large for a value that every listing reads: kept compressed, beside a small one that says so. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from masterstore import keys, values
from masterstore.errors import StoreCorrupt

#: Field of the small one: bytes of the JSON of the whole.
MARK = "__large__"

#: Quick rather than small: returns are text and shrink well at once.
_LEVEL = 1

#: The most that a compressed return may grow to, bytes: more than any request brings.
_MOST = 1 << 30


def packed(ret: Mapping[str, Any], above: int) -> tuple[bytes, bytes]:
    """(the JSON for Salt's key, the compressed whole): empty where the JSON is the whole. ``above``: bytes, 0: never compressed."""
    data = values.dumps(ret).encode()
    if not 0 < above < len(data):
        return data, b""
    said = f"{len(data)} bytes, compressed in {keys.large(str(ret.get('jid', '')))}"
    return values.dumps({**ret, "return": said, MARK: len(data)}).encode(), zlib.compress(data, _LEVEL)


def is_large(ret: Mapping[str, Any]) -> bool:
    """Whether the whole is elsewhere."""
    return isinstance(ret.get(MARK), int)


def unpacked(data: bytes, key: str) -> dict[str, Any]:
    """The whole return. Raises StoreCorrupt, which names ``key``."""
    try:
        inflate = zlib.decompressobj()
        text = inflate.decompress(data, _MOST)
    except zlib.error as error:
        raise StoreCorrupt(key, f"not compressed by zlib: {error}") from error
    if not inflate.eof:
        raise StoreCorrupt(key, "the compressed return is cut off, or larger than any return")
    return values.loads_map(text, key)
