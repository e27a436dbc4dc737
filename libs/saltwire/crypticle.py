"""Symmetric encryption of messages: AES-192-CBC, followed by an HMAC-SHA256 of IV and ciphertext.

Source: docs/protocol.md#crypticle
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from typing import TypeGuard

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.constant_time import bytes_eq
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from saltwire.errors import AuthenticationError, NonceError, OwnFault, PeerFault
from saltwire.keys import KEY_BYTES
from saltwire.pack import packb, unpackb

_MAGIC = b"pickle::"
_BLOCK = 16
_MAC = 32
_AES_KEY = 24

#: Bytes from which on a message is encrypted into its place: below this, concatenation is faster.
_IN_PLACE = 1 << 16

NONCE_CHARS = 32

_NONCE = re.compile(rf"[0-9a-fA-F]{{{NONCE_CHARS}}}")


def is_nonce(value: object) -> TypeGuard[str]:
    """Return whether ``value`` is a nonce: a text of 32 hexadecimal characters.

    A master signs the nonce of its peer. Other bytes in its place could make the signed message a valid publication.
    Source: docs/protocol.md#signed-messages
    """
    return isinstance(value, str) and _NONCE.fullmatch(value) is not None


class Crypticle:
    """Encrypts and decrypts messages with one key string (AES-192-CBC and HMAC-SHA256), as Salt does.

    Objects are immutable and may be shared between threads.
    """

    def __init__(self, key_string: str) -> None:
        """Create the cipher from a key string: base64 of 56 bytes. Raises OwnFault for any other text."""
        try:
            key = base64.b64decode(key_string, validate=False)
        except (binascii.Error, ValueError) as error:
            raise OwnFault(f"the key string is not base64: {error}") from error
        if len(key) != KEY_BYTES:
            raise OwnFault(f"a key string has {KEY_BYTES} bytes, this one has {len(key)}")
        self.key_string = key_string
        self._aes = algorithms.AES(key[:_AES_KEY])
        self._mac_key = key[_AES_KEY:]

    def dumps(self, value: object, nonce: str | None = None, *, iv: bytes | None = None) -> bytes:
        """Return the encrypted bytes of a value. ``nonce``: the nonce of the request, for a reply. ``iv``: only set by
        test vectors.
        """
        prefix = nonce.encode() if nonce else b""
        packed = packb(value)
        if len(packed) >= _IN_PLACE:
            return self._encrypt_in_place(_MAGIC + prefix, packed, iv)
        return self.encrypt(_MAGIC + prefix + packed, iv=iv)

    def loads(self, data: bytes, nonce: str | None = None, *, raw: bool = False, most: int | None = None) -> object:
        """Decrypt and unpack a value; return {} if the plaintext lacks Salt's prefix ``pickle::``.

        ``raw``: only the keys of maps become text, all other texts stay bytes. ``most``: largest number of values in
        the message; None: unlimited. Raises AuthenticationError for a wrong key, NonceError if the message does not
        carry ``nonce``, PeerFault if the plaintext is not msgpack.
        """
        plain = self.decrypt(data)
        if not plain.startswith(_MAGIC):
            return {}
        body = plain[len(_MAGIC) :]
        if nonce is not None:
            found, body = body[:NONCE_CHARS], body[NONCE_CHARS:]
            if not bytes_eq(found, nonce.encode()):
                raise NonceError("the answer's nonce is not the request's")
        return unpackb(body, raw=raw, most=most)

    def loads_map(self, data: bytes) -> dict[str, object]:
        """Decrypt and unpack a map. Raises AuthenticationError for a wrong key, PeerFault if the plaintext is not
        msgpack or the value is not a map.
        """
        value = self.loads(data)
        if not isinstance(value, dict):
            raise PeerFault(f"an encrypted {type(value).__name__} where a map is needed")
        return value

    def encrypt(self, plain: bytes, *, iv: bytes | None = None) -> bytes:
        """Return IV, ciphertext and MAC as one byte string. ``iv`` is only set by test vectors."""
        start = os.urandom(_BLOCK) if iv is None else iv
        room = _BLOCK - len(plain) % _BLOCK
        encryptor = Cipher(self._aes, modes.CBC(start)).encryptor()
        sealed = start + encryptor.update(plain + bytes([room]) * room) + encryptor.finalize()
        return sealed + self._mac(sealed)

    def _encrypt_in_place(self, begin: bytes, rest: bytes, iv: bytes | None) -> bytes:
        """Return what ``encrypt(begin + rest)`` returns, with two copies of a large message instead of four."""
        length = len(begin) + len(rest)
        room = _BLOCK - length % _BLOCK
        sealed = bytearray(_BLOCK + length + room + _MAC)
        view = memoryview(sealed)
        view[:_BLOCK] = start = os.urandom(_BLOCK) if iv is None else iv
        encryptor = Cipher(self._aes, modes.CBC(start)).encryptor()
        end = _BLOCK
        for part in (begin, rest, bytes([room]) * room):
            end += encryptor.update_into(part, view[end:])
        encryptor.finalize()
        view[end:] = self._mac(view[:end])
        return bytes(sealed)

    def decrypt(self, data: bytes) -> bytes:
        """Return the plaintext. Raises AuthenticationError if the MAC does not match."""
        sealed, mac = data[:-_MAC], data[-_MAC:]
        if len(sealed) < 2 * _BLOCK or len(sealed) % _BLOCK:
            raise AuthenticationError("not a ciphertext: wrong length")
        if not bytes_eq(mac, self._mac(sealed)):
            raise AuthenticationError("the message authentication code does not fit")
        decryptor = Cipher(self._aes, modes.CBC(sealed[:_BLOCK])).decryptor()
        padded = decryptor.update(sealed[_BLOCK:]) + decryptor.finalize()
        return padded[: -padded[-1]] if 1 <= padded[-1] <= _BLOCK else padded

    def _mac(self, sealed: bytes | memoryview) -> bytes:
        # The HMAC of the cryptography package: Python's own hmac would load the system's OpenSSL as a second copy.
        mac = HMAC(self._mac_key, SHA256())
        mac.update(sealed)
        return mac.finalize()


class SerialGate:
    """Refuses publications whose serial number is not larger than that of an earlier one (repeated messages).

    Each new publication key starts a new SerialGate.
    """

    def __init__(self) -> None:
        self._last = 0

    def admits(self, value: object) -> bool:
        """Remove the serial from the map of a publication. Return True if it is larger than that of the last publication.

        A value without a serial is accepted. A serial that is not an integer is refused.
        """
        if not isinstance(value, dict) or "serial" not in value:
            return True
        serial = value.pop("serial")
        if not isinstance(serial, int) or serial <= self._last:
            return False
        self._last = serial
        return True
