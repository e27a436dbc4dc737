"""RSA keys as minions and masters hold them, Salt's own signature primitive, and key strings (protocol sections 4.1, 4.6, 5)."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from saltwire import key_formats
from saltwire.errors import OwnFault, PeerFault, SignatureError

#: Bytes behind a key string: 24 for AES-192, 32 for HMAC-SHA256.
KEY_BYTES = 56

#: RSA keys of other sizes are refused: smaller ones are weak, larger ones make each sign-in a denial of service.
_MIN_BITS, _MAX_BITS = 1024, 16384

#: Largest public exponent: the peer chooses it, and every token and signature of its is raised to it.
_MAX_EXPONENT_BITS = 64


def _oaep(algorithm: hashes.HashAlgorithm) -> padding.OAEP:
    return padding.OAEP(mgf=padding.MGF1(algorithm=algorithm), algorithm=algorithm, label=None)


#: Encryption of keys and tokens; named by the minion in each request.
ENC_ALGOS: Mapping[str, padding.OAEP] = {"OAEP-SHA1": _oaep(hashes.SHA1()), "OAEP-SHA224": _oaep(hashes.SHA224())}

#: Signatures of replies, pillar and publications.
SIG_ALGOS: Mapping[str, hashes.HashAlgorithm] = {"PKCS1v15-SHA1": hashes.SHA1(), "PKCS1v15-SHA224": hashes.SHA224()}


def clean_pem(text: str) -> str:
    """A PEM with plain newlines and no space around it: the form that keys are compared in."""
    return "\n".join(text.strip().splitlines())


class PublicKey:
    """A peer's RSA public key."""

    def __init__(self, key: rsa.RSAPublicKey) -> None:
        self._key = key
        encoded = key.public_bytes(key_formats.Encoding.PEM, key_formats.PublicFormat.SubjectPublicKeyInfo)
        #: SubjectPublicKeyInfo, cleaned.
        self.pem: str = clean_pem(encoded.decode())
        numbers = key.public_numbers()
        self._n, self._e, self._size = numbers.n, numbers.e, (key.key_size + 7) // 8

    @classmethod
    def from_pem(cls, pem: str | bytes) -> PublicKey:
        """Reads a PEM; the header ``RSA PUBLIC KEY`` of old keys is understood. Raises PeerFault."""
        try:
            data = pem.encode() if isinstance(pem, str) else pem
            key = key_formats.load_pem_public_key(data.replace(b"RSA PUBLIC KEY", b"PUBLIC KEY"))
        except (ValueError, TypeError, UnsupportedAlgorithm, UnicodeError) as error:
            raise PeerFault(f"not a public key in PEM: {error}") from error
        if not isinstance(key, rsa.RSAPublicKey) or not _MIN_BITS <= key.key_size <= _MAX_BITS:
            raise PeerFault(f"only RSA keys of {_MIN_BITS} to {_MAX_BITS} bits are understood")
        read = cls(key)
        if read._e.bit_length() > _MAX_EXPONENT_BITS:
            raise PeerFault(f"only RSA keys with an exponent of at most {_MAX_EXPONENT_BITS} bits are understood")
        return read

    def verify(self, data: bytes, signature: bytes, algo: str) -> None:
        """Raises SignatureError unless the key's owner signed ``data``; OwnFault for an unknown algorithm."""
        try:
            self._key.verify(signature, data, padding.PKCS1v15(), _signature(algo))
        except InvalidSignature as error:
            raise SignatureError("the signature does not fit the key") from error

    def encrypt(self, data: bytes, algo: str) -> bytes:
        """OAEP. Raises PeerFault for a key too small for ``data``, OwnFault for an unknown algorithm."""
        try:
            return self._key.encrypt(data, _encryption(algo))
        except ValueError as error:
            raise PeerFault(
                f"a key of {self._size * 8} bits is too small to send {len(data)} bytes under {algo}"
            ) from error

    def x931_recover(self, signature: bytes) -> bytes:
        """The message that the owner's private key wrapped (section 4.6). Raises SignatureError."""
        if len(signature) != self._size:
            raise SignatureError("a signature of the wrong length")
        plain = pow(int.from_bytes(signature, "big"), self._e, self._n)
        if plain & 0x0F != 0x0C:
            plain = self._n - plain
        return _x931_message(plain.to_bytes(self._size, "big"))

    def fingerprint(self, hash_type: str = "sha256") -> str:
        """Colon-separated digest of the PEM's body, as ``salt-key -f`` shows it. Raises OwnFault for an unknown digest."""
        return fingerprint_of(self.pem, hash_type)


def fingerprint_of(pem: str, hash_type: str = "sha256") -> str:
    """The fingerprint of a PEM: its non-blank lines but the first and the last, newlines kept (section 4.5)."""
    lines = [line for line in pem.strip().splitlines(keepends=True) if line.strip()]
    try:
        return hashlib.new(hash_type, "".join(lines[1:-1]).encode()).digest().hex(":")
    except (ValueError, TypeError) as error:
        # TypeError: a digest without a size of its own (shake).
        raise OwnFault(f"there is no digest '{hash_type}'") from error


class PrivateKey:
    """Our own RSA key."""

    def __init__(self, key: rsa.RSAPrivateKey) -> None:
        self._key = key
        self.public = PublicKey(key.public_key())
        numbers = key.private_numbers()
        self._n, self._d, self._size = numbers.public_numbers.n, numbers.d, (key.key_size + 7) // 8
        #: The last message and its X9.31 signature: a master signs one digest an epoch, a minion one word for ever.
        self._wrapped: tuple[bytes, bytes] | None = None

    @classmethod
    def generate(cls, bits: int = 2048) -> PrivateKey:
        """A new key."""
        return cls(rsa.generate_private_key(public_exponent=65537, key_size=bits))

    @classmethod
    def from_pem(cls, pem: bytes) -> PrivateKey:
        """Reads a PEM without a passphrase. Raises OwnFault."""
        try:
            key = key_formats.load_pem_private_key(pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise OwnFault(f"not a private key in PEM: {error}") from error
        if not isinstance(key, rsa.RSAPrivateKey):
            raise OwnFault("only RSA keys are understood")
        return cls(key)

    def to_pem(self) -> bytes:
        """PKCS#1, as Salt stores it."""
        return self._key.private_bytes(
            key_formats.Encoding.PEM, key_formats.PrivateFormat.TraditionalOpenSSL, key_formats.NoEncryption()
        )

    def sign(self, data: bytes, algo: str) -> bytes:
        """RSASSA-PKCS1-v1_5. Raises OwnFault for an unknown algorithm."""
        return self._key.sign(data, padding.PKCS1v15(), _signature(algo))

    def decrypt(self, data: bytes, algo: str) -> bytes:
        """OAEP. Raises PeerFault for what was not encrypted to this key."""
        try:
            return self._key.decrypt(data, _encryption(algo))
        except ValueError as error:
            raise PeerFault("not encrypted to this key") from error

    def x931_sign(self, message: bytes) -> bytes:
        """Wraps a message with the private key (section 4.6); deterministic. ``message`` is at most the key's size less two."""
        known = self._wrapped
        if known is not None and known[0] == message:
            return known[1]
        number = pow(int.from_bytes(_x931_wrap(message, self._size), "big"), self._d, self._n)
        signature = min(number, self._n - number).to_bytes(self._size, "big")
        self._wrapped = (message, signature)
        return signature


def generate_key_string() -> str:
    """A fresh key string: 76 characters."""
    return base64.b64encode(os.urandom(KEY_BYTES)).decode()


def derive_key_string(secret: bytes, *, purpose: str, epoch: int, minion_id: str = "", fingerprint: str = "") -> str:
    """The key string that every holder of ``secret`` agrees on without a word: HKDF-SHA256 over purpose, epoch, id and key."""
    fields = (b"saltern", purpose.encode(), str(epoch).encode(), minion_id.encode(), fingerprint.encode())
    # Lengths before fields, so that no two sets of fields have one encoding.
    info = b"".join(len(field).to_bytes(4, "big") + field for field in fields)
    derived = HKDF(algorithm=hashes.SHA256(), length=KEY_BYTES, salt=None, info=info).derive(secret)
    return base64.b64encode(derived).decode()


def _x931_wrap(message: bytes, size: int) -> bytes:
    room = size - 2 - len(message)
    if room < 0:
        raise OwnFault(f"a message of {len(message)} bytes does not fit a key of {size}")
    if room == 0:
        return b"\x6a" + message + b"\xcc"
    return b"\x6b" + b"\xbb" * (room - 1) + b"\xba" + message + b"\xcc"


def _x931_message(block: bytes) -> bytes:
    if block[-1] != 0xCC:
        raise SignatureError("no X9.31 trailer")
    if block[0] == 0x6A:
        return block[1:-1]
    body = block[1:-1].lstrip(b"\xbb")
    if block[0] != 0x6B or not body.startswith(b"\xba"):
        raise SignatureError("no X9.31 header")
    return body[1:]


def _signature(algo: str) -> hashes.HashAlgorithm:
    if algo not in SIG_ALGOS:
        raise OwnFault(f"there is no signing algorithm '{algo}'; there are {', '.join(SIG_ALGOS)}")
    return SIG_ALGOS[algo]


def _encryption(algo: str) -> padding.OAEP:
    if algo not in ENC_ALGOS:
        raise OwnFault(f"there is no encryption algorithm '{algo}'; there are {', '.join(ENC_ALGOS)}")
    return ENC_ALGOS[algo]
