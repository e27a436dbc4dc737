"""RSA keys of minions and masters, Salt's X9.31 signature, fingerprints, and symmetric key strings.

Source: docs/protocol.md#keys-and-algorithms, docs/protocol.md#x931
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
from collections.abc import Mapping, Sequence

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from saltwire.errors import OwnFault, PeerFault, SignatureError

#: Bytes in a key string: 24 for AES-192 and 32 for HMAC-SHA256.
KEY_BYTES = 56

#: RSA keys of other sizes are refused: smaller keys are weak, larger ones make each sign-in expensive for the master.
MIN_BITS, MAX_BITS = 2048, 16384

#: Longest text of a public key that is read, bytes; the largest key has 2,800. A parser of PEM skips text around the key.
_MAX_PEM = 16 * 1024

#: Smallest and largest public exponent. The peer chooses it: each check of its signatures costs time in proportion to its bits,
#: and what is encrypted with the exponent 1 can be read by anybody.
_MIN_EXPONENT, _MAX_EXPONENT = 3, 2**32


def _oaep(algorithm: hashes.HashAlgorithm) -> padding.OAEP:
    return padding.OAEP(mgf=padding.MGF1(algorithm=algorithm), algorithm=algorithm, label=None)


#: Map of algorithm name to encryption of keys and tokens; the minion names one in each request.
ENC_ALGOS: Mapping[str, padding.OAEP] = {"OAEP-SHA1": _oaep(hashes.SHA1()), "OAEP-SHA224": _oaep(hashes.SHA224())}

#: Map of algorithm name to the hash used in signatures of replies, pillar and publications.
SIG_ALGOS: Mapping[str, hashes.HashAlgorithm] = {"PKCS1v15-SHA1": hashes.SHA1(), "PKCS1v15-SHA224": hashes.SHA224()}


def clean_pem(text: str) -> str:
    """Return a key in PEM with LF newlines and without surrounding space. Keys are compared in this form."""
    return text.strip().replace("\r\n", "\n").replace("\r", "\n")


def canonical_pem(text: str) -> str:
    """Return a public key as ``PublicKey.pem`` writes it, so that equal keys are equal texts. A text that is no valid
    key is returned with LF newlines and without surrounding space.
    """
    try:
        return PublicKey.from_pem(text).pem
    except PeerFault:
        return clean_pem(text)


#: End of one key in a text with several.
_PEM_END = "-----END PUBLIC KEY-----"

#: Most keys of a master that a minion trusts at one time: the one in use, and the one before.
_MOST_MASTER_KEYS = 2


class MasterPublicKeys:
    """The public keys of the master from which a minion accepts signatures: one, or two while the key is replaced.

    The form ``pem`` is one PEM text after the other, the newest first; readers that expect one key read the newest.
    """

    def __init__(self, keys: Sequence[PublicKey]) -> None:
        """Store the master's public keys. ``keys`` has the newest key first and at least one key."""
        self._keys = tuple(keys)
        self.newest = self._keys[0]

    @classmethod
    def from_pem(cls, pem: str | bytes) -> MasterPublicKeys:
        """Return the MasterPublicKeys in one or two PEM texts. Raises PeerFault for malformed keys or more than two."""
        text = pem.decode("utf-8", "replace") if isinstance(pem, bytes) else pem
        text = text.replace("RSA PUBLIC KEY", "PUBLIC KEY")
        parts = [part + _PEM_END for part in text.split(_PEM_END)[:-1]] or [text]
        if len(parts) > _MOST_MASTER_KEYS:
            raise PeerFault(f"{len(parts)} keys of a master; {_MOST_MASTER_KEYS} are allowed")
        return cls([PublicKey.from_pem(part) for part in parts])

    @property
    def pem(self) -> str:
        """Return the PEMs of all keys joined into one text, the newest first."""
        return "\n".join(self.pems)

    @property
    def pems(self) -> tuple[str, ...]:
        """Return a tuple with the PEM text of each key, the newest first."""
        return tuple(key.pem for key in self._keys)

    def verify(self, data: bytes, signature: bytes, algo: str) -> None:
        """Raise SignatureError unless one of the keys made ``signature`` of ``data``, OwnFault for an unknown algorithm."""
        for key in self._keys[:-1]:
            with contextlib.suppress(SignatureError):
                key.verify(data, signature, algo)
                return
        self._keys[-1].verify(data, signature, algo)


class PublicKey:
    """RSA public key of the remote side: of the master for a minion, of a minion for the master."""

    def __init__(self, key: rsa.RSAPublicKey) -> None:
        self._key = key
        encoded = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        #: SubjectPublicKeyInfo PEM in the form of ``clean_pem``.
        self.pem: str = clean_pem(encoded.decode())
        numbers = key.public_numbers()
        self._n, self._e, self._size = numbers.n, numbers.e, (key.key_size + 7) // 8

    @classmethod
    def from_pem(cls, pem: str | bytes) -> PublicKey:
        """Return the RSA public key in a PEM; the old header ``RSA PUBLIC KEY`` is accepted too.

        Raises PeerFault unless it is an RSA key of 2048 to 16384 bits with an odd exponent from 3 to 2^32, in at most
        16 kB.
        """
        if len(pem) > _MAX_PEM:
            raise PeerFault(f"a public key of {len(pem)} characters; {_MAX_PEM} are allowed")
        try:
            data = pem.encode() if isinstance(pem, str) else pem
            key = load_pem_public_key(data.replace(b"RSA PUBLIC KEY", b"PUBLIC KEY"))
        except (ValueError, TypeError, UnsupportedAlgorithm, UnicodeError) as error:
            raise PeerFault(f"not a public key in PEM: {error}") from error
        if not isinstance(key, rsa.RSAPublicKey):
            raise PeerFault("a public key that is no RSA key")
        if not MIN_BITS <= key.key_size <= MAX_BITS:
            raise PeerFault(f"an RSA key of {key.key_size} bits; {MIN_BITS} to {MAX_BITS} are allowed")
        exponent = key.public_numbers().e
        if not _MIN_EXPONENT <= exponent <= _MAX_EXPONENT or not exponent % 2:
            said = str(exponent) if exponent <= _MAX_EXPONENT else f"of {exponent.bit_length()} bits"
            raise PeerFault(f"an RSA key with the exponent {said}; odd ones from {_MIN_EXPONENT} to 2^32 are allowed")
        return cls(key)

    def verify(self, data: bytes, signature: bytes, algo: str) -> None:
        """Raise SignatureError unless ``signature`` is the key owner's signature of ``data``, OwnFault for an unknown
        algorithm.
        """
        try:
            self._key.verify(signature, data, padding.PKCS1v15(), _signature(algo))
        except InvalidSignature as error:
            raise SignatureError("the signature does not fit the key") from error

    def encrypt(self, data: bytes, algo: str) -> bytes:
        """Return ``data`` encrypted with OAEP. Raises PeerFault if the key is too small for ``data``, OwnFault for an
        unknown algorithm.
        """
        try:
            return self._key.encrypt(data, _encryption(algo))
        except ValueError as error:
            raise PeerFault(
                f"a key of {self._size * 8} bits is too small to send {len(data)} bytes under {algo}"
            ) from error

    def x931_recover(self, signature: bytes) -> bytes:
        """Return the message inside an X9.31 signature. Raises SignatureError if the key did not make it. Source:
        docs/protocol.md#x931
        """
        if len(signature) != self._size:
            raise SignatureError("a signature of the wrong length")
        plain = pow(int.from_bytes(signature, "big"), self._e, self._n)
        if plain & 0x0F != 0x0C:
            plain = self._n - plain
        return _x931_message(plain.to_bytes(self._size, "big"))

    def fingerprint(self, hash_type: str = "sha256") -> str:
        """Return the fingerprint that ``salt-key -f`` shows. Raises OwnFault for an unknown digest name."""
        return fingerprint_of(self.pem, hash_type)


def fingerprint_of(pem: str, hash_type: str = "sha256") -> str:
    """Return the colon-separated hex digest of a PEM's lines without the first and the last one; blank lines are left
    out.

    Raises OwnFault for an unknown digest name.
    """
    lines = [f"{line}\n" for line in pem.strip().split("\n") if line.strip()]
    try:
        return hashlib.new(hash_type, "".join(lines[1:-1]).encode()).digest().hex(":")
    except (ValueError, TypeError) as error:
        # TypeError: digests of variable size (shake) need a length.
        raise OwnFault(f"there is no digest '{hash_type}'") from error


class PrivateKey:
    """RSA private key of this process's side: of the minion, or of the master."""

    def __init__(self, key: rsa.RSAPrivateKey) -> None:
        self._key = key
        self.public = PublicKey(key.public_key())
        numbers = key.private_numbers()
        self._n, self._d, self._size = numbers.public_numbers.n, numbers.d, (key.key_size + 7) // 8
        #: The last message and its X9.31 signature. A cache of one: a master signs one digest per epoch, a minion always "salt".
        self._wrapped: tuple[bytes, bytes] | None = None

    @classmethod
    def generate(cls, bits: int = 2048) -> PrivateKey:
        """Return a new RSA private key of ``bits`` bits with the exponent 65537."""
        return cls(rsa.generate_private_key(public_exponent=65537, key_size=bits))

    @classmethod
    def from_pem(cls, pem: bytes) -> PrivateKey:
        """Return the RSA private key in a PEM without a passphrase. Raises OwnFault for any other content."""
        try:
            key = load_pem_private_key(pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise OwnFault(f"not a private key in PEM: {error}") from error
        if not isinstance(key, rsa.RSAPrivateKey):
            raise OwnFault("only RSA keys are understood")
        return cls(key)

    def to_pem(self) -> bytes:
        """Return the key as a PKCS#1 PEM without a passphrase, the form in which Salt stores it."""
        return self._key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())

    def sign(self, data: bytes, algo: str) -> bytes:
        """Return the RSASSA-PKCS1-v1_5 signature of ``data``. Raises OwnFault for an unknown algorithm."""
        return self._key.sign(data, padding.PKCS1v15(), _signature(algo))

    def decrypt(self, data: bytes, algo: str) -> bytes:
        """Return the plaintext of OAEP-encrypted ``data``. Raises PeerFault if it was not encrypted to this key."""
        try:
            return self._key.decrypt(data, _encryption(algo))
        except ValueError as error:
            raise PeerFault("not encrypted to this key") from error

    def x931_sign(self, message: bytes) -> bytes:
        """Return the X9.31 signature of ``message``, which is at most the key's size in bytes minus two. The same
        message gives the same bytes.

        Source: docs/protocol.md#x931
        """
        known = self._wrapped
        if known is not None and known[0] == message:
            return known[1]
        number = pow(int.from_bytes(_x931_wrap(message, self._size), "big"), self._d, self._n)
        signature = min(number, self._n - number).to_bytes(self._size, "big")
        self._wrapped = (message, signature)
        return signature


def generate_key_string() -> str:
    """Return a random key string for a Crypticle: base64 of 56 bytes, 76 characters."""
    return base64.b64encode(os.urandom(KEY_BYTES)).decode()


def derive_key_string(secret: bytes, *, purpose: str, epoch: int, minion_id: str = "", fingerprint: str = "") -> str:
    """Return the key string for a Crypticle that is derived from the master's secret.

    It is HKDF-SHA256 over purpose, epoch, minion id and key fingerprint. Every worker that has ``secret`` computes the
    same key string, so no key is ever stored or sent between workers.
    """
    fields = (b"saltern", purpose.encode(), str(epoch).encode(), minion_id.encode(), fingerprint.encode())
    # Each field is preceded by its length, so that different fields never have the same encoding.
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
