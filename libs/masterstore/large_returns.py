"""Large returns: stored compressed in a key of their own, with a small return in Salt's key that says so. No I/O."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence

from masterstore import values
from masterstore.errors import StoreCorrupt

#: Field of the small return: size of the whole return's JSON, bytes.
MARK = "__large__"

#: zlib level: fast; returns are text and compress well even so.
_LEVEL = 1

#: Largest JSON of a return, bytes. A minion sends at most 60 MiB (its option ``max_return_bytes``).
MOST_BYTES = 128 << 20

#: Most memory, bytes, that the large returns of one answer may take in a worker.
MOST_MEMORY = 512 << 20

#: Memory, bytes, that one value of JSON takes at most beside its text.
_VALUE = 100

#: All bytes but quotation marks and those that begin a value of JSON.
_OTHERS = bytes(set(range(256)) - set(b'"[{,'))
_TEXT = re.compile(rb'"[^"]*"')


def packed(ret: Mapping[str, object], above: int, key: str) -> tuple[bytes, bytes]:
    """Return (JSON to store in ``ret:<jid>``, compressed JSON or b"") of a minion's return.

    Up to ``above`` bytes (0: any size) the first JSON is the whole return. Above, the compressed JSON is the
    whole return, and the first JSON has a short note in place of the field ``return``, which names ``key``, the Redis
    key of the compressed JSON.
    """
    data = values.dumps(ret).encode()
    if not 0 < above < len(data):
        return data, b""
    if len(data) > MOST_BYTES:
        note = f"{len(data)} bytes: not stored, because the job cache takes returns of at most {MOST_BYTES} bytes"
        return values.dumps({**ret, "return": note}).encode(), b""
    note = f"{len(data)} bytes, compressed in {key}"
    return values.dumps({**ret, "return": note, MARK: len(data)}).encode(), zlib.compress(data, _LEVEL)


def is_large(ret: Mapping[str, object]) -> bool:
    """Return True if a return read from ``ret:<jid>`` has only a note in place of its value; ``unpacked`` reads
    the whole return.
    """
    return isinstance(ret.get(MARK), int)


def unpacked(data: bytes, key: str) -> dict[str, object]:
    """Return the large return in compressed bytes. Raises StoreCorrupt, which names the Redis key ``key``."""
    return values.loads_map(_text_of(data, key)[0], key)


def unpacked_together(
    found: Sequence[tuple[str, bytes]], key: str
) -> Iterator[tuple[str, dict[str, object] | StoreCorrupt]]:
    """Yield (minion, large return, or the error that it has) for pairs of minion and compressed bytes, until the returns take
    ``MOST_MEMORY``; the rest is left out.
    """
    left = MOST_MEMORY
    for minion, data in found:
        try:
            text, memory = _text_of(data, key)
            left -= memory
            if left < 0:
                return
            yield minion, values.loads_map(text, key)
        except StoreCorrupt as error:
            yield minion, error


def _text_of(data: bytes, key: str) -> tuple[bytes, int]:
    """Return (JSON, bytes of memory that its values take). Raises StoreCorrupt for data that takes more than a return may."""
    text = inflated(data, MOST_BYTES, key)
    # Counted before a value is built: a value of two bytes takes fifty times as much.
    bare = text.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _OTHERS)
    memory = 2 * len(text) + _VALUE * bare.count(b'"') // 2
    if memory <= MOST_MEMORY:
        memory = 2 * len(text) + _VALUE * len(_TEXT.sub(b"", bare))
    if memory > MOST_MEMORY:
        raise StoreCorrupt(key, f"a return of {len(text)} bytes whose values take {memory >> 20} MiB of memory")
    return text, memory


def inflated(data: bytes, most: int, key: str) -> bytes:
    """Return the bytes that zlib compressed to ``data``. Raises StoreCorrupt for more than ``most`` bytes, before they are
    there, and for bytes that zlib cannot read.
    """
    try:
        inflate = zlib.decompressobj()
        plain = inflate.decompress(data, most)
    except zlib.error as error:
        raise StoreCorrupt(key, f"not compressed by zlib: {error}") from error
    if not inflate.eof:
        raise StoreCorrupt(key, f"the compressed return is cut off, or larger than {most} bytes")
    return plain
