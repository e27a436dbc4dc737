"""The symmetric layer: AES-192-CBC, then HMAC-SHA256 over it (protocol section 5)."""

from __future__ import annotations

import base64
import binascii
import os
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.constant_time import bytes_eq
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from saltwire.errors import AuthenticationError, NonceError, OwnFault
from saltwire.keys import KEY_BYTES
from saltwire.pack import packb, unpackb

_MAGIC = b"pickle::"
_BLOCK = 16
_MAC = 32
_AES_KEY = 24
NONCE_CHARS = 32


class Crypticle:
    """Seals and opens values under one key string. Immutable; safe to share."""

    def __init__(self, key_string: str) -> None:
        """Raises OwnFault for what is not a key string."""
        try:
            key = base64.b64decode(key_string, validate=False)
        except (binascii.Error, ValueError) as error:
            raise OwnFault(f"not a key string: {error}") from error
        if len(key) != KEY_BYTES:
            raise OwnFault(f"a key string holds {KEY_BYTES} bytes, this one {len(key)}")
        self.key_string = key_string
        self._aes = algorithms.AES(key[:_AES_KEY])
        self._mac_key = key[_AES_KEY:]

    def dumps(self, value: object, nonce: str | None = None, *, iv: bytes | None = None) -> bytes:
        """Seals a value; replies carry the request's nonce. ``iv`` is for test vectors alone."""
        prefix = nonce.encode() if nonce else b""
        return self.encrypt(_MAGIC + prefix + packb(value), iv=iv)

    def loads(self, data: bytes, nonce: str | None = None, *, raw: bool = False) -> Any:
        """The sealed value, {} where it is none of Salt's. Raises AuthenticationError, NonceError, PeerFault."""
        plain = self.decrypt(data)
        if not plain.startswith(_MAGIC):
            return {}
        body = plain[len(_MAGIC) :]
        if nonce is not None:
            found, body = body[:NONCE_CHARS], body[NONCE_CHARS:]
            if not bytes_eq(found, nonce.encode()):
                raise NonceError("the answer's nonce is not the request's")
        return unpackb(body, raw=raw)

    def encrypt(self, plain: bytes, *, iv: bytes | None = None) -> bytes:
        """IV, ciphertext, MAC."""
        start = os.urandom(_BLOCK) if iv is None else iv
        room = _BLOCK - len(plain) % _BLOCK
        encryptor = Cipher(self._aes, modes.CBC(start)).encryptor()
        sealed = start + encryptor.update(plain + bytes([room]) * room) + encryptor.finalize()
        return sealed + self._mac(sealed)

    def decrypt(self, data: bytes) -> bytes:
        """The plaintext. Raises AuthenticationError unless the MAC fits."""
        sealed, mac = data[:-_MAC], data[-_MAC:]
        if len(sealed) < 2 * _BLOCK or len(sealed) % _BLOCK:
            raise AuthenticationError("not a ciphertext: wrong length")
        if not bytes_eq(mac, self._mac(sealed)):
            raise AuthenticationError("the message authentication code does not fit")
        decryptor = Cipher(self._aes, modes.CBC(sealed[:_BLOCK])).decryptor()
        padded = decryptor.update(sealed[_BLOCK:]) + decryptor.finalize()
        return padded[: -padded[-1]] if 1 <= padded[-1] <= _BLOCK else padded

    def _mac(self, sealed: bytes) -> bytes:
        # By the same OpenSSL as the rest: Python's own hmac would load the system's beside it.
        mac = HMAC(self._mac_key, SHA256())
        mac.update(sealed)
        return mac.finalize()


class SerialGate:
    """Lets publications through in rising order of their serial. A new key starts a new gate."""

    def __init__(self) -> None:
        self._last = 0

    def admits(self, value: object) -> bool:
        """Takes ``serial`` out of a map; False when it is not above the last one (or no number)."""
        if not isinstance(value, dict) or "serial" not in value:
            return True
        serial = value.pop("serial")
        if not isinstance(serial, int) or serial <= self._last:
            return False
        self._last = serial
        return True
