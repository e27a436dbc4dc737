"""OpenPGP public key files: binary or ASCII-armoured (RFC 9580, section 6)."""

from __future__ import annotations

import base64
import binascii
import re

_BLOCK = re.compile(
    rb"-----BEGIN PGP PUBLIC KEY BLOCK-----[ \t]*\r?\n(?P<body>.*?)\r?\n?-----END PGP PUBLIC KEY BLOCK-----", re.DOTALL
)

#: Possible first bytes of a binary key: a public key packet in the old or the new format.
_PUBLIC_KEY = (0x98, 0x99, 0x9A, 0xC6)


def is_armoured(data: bytes) -> bool:
    """Return True if the bytes of a file contain an ASCII-armoured OpenPGP public key."""
    return _BLOCK.search(data) is not None


def is_binary(data: bytes) -> bool:
    """Return True if the bytes of a file begin like a binary OpenPGP public key."""
    return data[:1] != b"" and data[0] in _PUBLIC_KEY


def dearmoured(data: bytes) -> bytes:
    """Return the OpenPGP keys in ASCII-armoured data in binary, concatenated. Raises ValueError if there is no valid
    key.
    """
    if is_binary(data):
        return data
    found = [_decoded(match["body"]) for match in _BLOCK.finditer(data)]
    if not found:
        raise ValueError("it holds no public key")
    return b"".join(found)


def _decoded(body: bytes) -> bytes:
    lines = body.replace(b"\r", b"").split(b"\n")
    # Headers end with an empty line.
    start = lines.index(b"") + 1 if b"" in lines else 0
    text = [line.strip() for line in lines[start:] if line.strip()]
    checksum = text.pop()[1:] if text and text[-1].startswith(b"=") and len(text[-1]) == 5 else b""
    try:
        data = base64.b64decode(b"".join(text), validate=True)
        wanted = int.from_bytes(base64.b64decode(checksum, validate=True), "big") if checksum else None
    except binascii.Error as error:
        raise ValueError(f"its armour is damaged: {error}") from error
    if wanted is not None and wanted != _crc24(data):
        raise ValueError("its armour is damaged: the checksum does not match")
    return data


def _crc24(data: bytes) -> int:
    crc = 0xB704CE
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1864CFB
    return crc & 0xFFFFFF
