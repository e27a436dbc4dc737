"""``salt.utils.stringutils``."""

from __future__ import annotations


def to_unicode(s: str | bytes, encoding: str | None = None, errors: str = "strict", normalize: bool = False) -> str:
    """Text of text or bytes."""
    return s.decode(encoding or "utf-8", errors) if isinstance(s, bytes | bytearray) else s


def to_bytes(s: str | bytes, encoding: str | None = None, errors: str = "strict") -> bytes:
    """Bytes of text or bytes."""
    return s.encode(encoding or "utf-8", errors) if isinstance(s, str) else bytes(s)


to_str = to_unicode
