"""OpenPGP public key files: binary or ASCII-armoured (RFC 9580, section 6)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator

_BLOCK = re.compile(
    rb"-----BEGIN PGP PUBLIC KEY BLOCK-----[ \t]*\r?\n(?P<body>.*?)\r?\n?-----END PGP PUBLIC KEY BLOCK-----", re.DOTALL
)

#: Tags of packets with a public key, and with a public subkey.
_KEY_TAGS = (6, 14)

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


def armoured(data: bytes) -> bytes:
    """Return binary OpenPGP keys as ASCII-armoured data, with checksum."""
    text = base64.b64encode(data)
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    checksum = b"=" + base64.b64encode(_crc24(data).to_bytes(3, "big"))
    block = [b"-----BEGIN PGP PUBLIC KEY BLOCK-----", b"", *lines, checksum, b"-----END PGP PUBLIC KEY BLOCK-----", b""]
    return b"\n".join(block)


def fingerprints(data: bytes) -> list[str]:
    """Return the fingerprints (capital hexadecimal digits) of all keys and subkeys in binary OpenPGP keys. Raises ValueError
    if the data are cut short.
    """
    found = []
    for tag, body in _packets(data):
        if tag in _KEY_TAGS and body[:1] == b"\x04":
            # Version 4: RFC 9580, section 5.5.4.2. SHA-1 is what the format prescribes.
            found.append(hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body, usedforsecurity=False).hexdigest())
        elif tag in _KEY_TAGS and body[:1] == b"\x06":
            found.append(hashlib.sha256(b"\x9b" + len(body).to_bytes(4, "big") + body).hexdigest())
    return [each.upper() for each in found]


def belongs(key_id: str, fingerprint: str) -> bool:
    """Return True if a key ID, or fingerprint, in capital hexadecimal digits names the key with this fingerprint."""
    # Key IDs are the last digits of a fingerprint of version 4 (40 digits), and the first ones of version 6.
    return fingerprint.endswith(key_id) if len(fingerprint) == 40 else fingerprint.startswith(key_id)


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (tag, body) of each OpenPGP packet in binary data. Raises ValueError if the data are cut short."""
    at = 0
    while at < len(data):
        head = data[at]
        if not head & 0x80:
            raise ValueError("it is no sequence of OpenPGP packets")
        at += 1
        if head & 0x40:
            tag, first = head & 0x3F, data[at] if at < len(data) else 0
            width, size = (1, first) if first < 192 else (2, ((first - 192) << 8) + 192) if first < 224 else (5, 0)
            size += int.from_bytes(data[at + 1 : at + width], "big")
        else:
            tag, width = (head >> 2) & 0x0F, (1, 2, 4, 0)[head & 3]
            size = int.from_bytes(data[at : at + width], "big") if width else len(data) - at
        at += width
        if at + size > len(data):
            raise ValueError("it is cut short")
        yield tag, data[at : at + size]
        at += size


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
