"""``salt.crypt`` for users' modules: signatures with RSA keys in files. Other parts of Salt's module do not exist here."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from statecore.loader.compat.exceptions import InvalidKeyError, UnsupportedAlgorithm
from statecore.loader.compat.utils.stringutils import to_bytes
from statecore.loader.current_context import current
from statecore.model.ports import MasterCall

PKCS1v15_SHA1 = "PKCS1v15-SHA1"
PKCS1v15_SHA224 = "PKCS1v15-SHA224"
OAEP_SHA1 = "OAEP-SHA1"
OAEP_SHA224 = "OAEP-SHA224"

#: Name of a signature's algorithm -> name of its hash in the library cryptography.
_HASHES = {PKCS1v15_SHA1: "SHA1", PKCS1v15_SHA224: "SHA224"}


def _scheme(algorithm: str) -> tuple[Any, Any]:
    """Return (padding, hash), objects of the library cryptography, for an RSA signature algorithm such as
    "PKCS1v15-SHA224". Raise UnsupportedAlgorithm if it is unknown.
    """
    if algorithm not in _HASHES:
        raise UnsupportedAlgorithm(f"Invalid signing algorithm: {algorithm!r}")
    asymmetric = importlib.import_module("cryptography.hazmat.primitives.asymmetric.padding")
    hashes = importlib.import_module("cryptography.hazmat.primitives.hashes")
    return asymmetric.PKCS1v15(), getattr(hashes, _HASHES[algorithm])()


def _keys() -> Any:
    return importlib.import_module("cryptography.hazmat.primitives.serialization")


class PrivateKey:
    """A private RSA key."""

    def __init__(self, key_bytes: bytes, passphrase: str | None = None) -> None:
        """Read a key in PEM form. Raise InvalidKeyError if it cannot be read."""
        try:
            self.key = _keys().load_pem_private_key(key_bytes, to_bytes(passphrase) if passphrase else None)
        except (ValueError, TypeError) as error:
            raise InvalidKeyError(f"Encountered bad RSA private key: {error}") from error

    @classmethod
    def from_file(cls, path: str, passphrase: str | None = None) -> PrivateKey:
        """Return the PrivateKey in a PEM file. Raise OSError if the file cannot be read, InvalidKeyError if it has no
        key.
        """
        return cls(Path(path).read_bytes(), passphrase)

    def sign(self, data: str | bytes, algorithm: str = PKCS1v15_SHA1) -> bytes:
        """Return the signature (bytes) of a text or of bytes. Raise UnsupportedAlgorithm for an unknown algorithm."""
        signature: bytes = self.key.sign(to_bytes(data), *_scheme(algorithm))
        return signature


class PublicKey:
    """A public RSA key."""

    def __init__(self, key_bytes: bytes) -> None:
        """Read a key in PEM form. Raise InvalidKeyError if it cannot be read."""
        try:
            self.key = _keys().load_pem_public_key(key_bytes)
        except ValueError as error:
            raise InvalidKeyError(f"Encountered bad RSA public key: {error}") from error

    @classmethod
    def from_file(cls, path: str) -> PublicKey:
        """Return the PublicKey in a PEM file. Raise OSError if there is no such file.

        On a master, the path ``<pki_dir>/minions/<id>`` names the accepted key of a minion, which is not in a file.
        """
        file = Path(path)
        if not file.exists() and file.parent.name == "minions" and (known := _key_of(file.name)):
            return cls(known.encode())
        return cls(file.read_bytes())

    def verify(self, data: str | bytes, signature: bytes, algorithm: str = PKCS1v15_SHA1) -> bool:
        """Return whether ``signature`` is a signature of ``data`` by the private key that belongs to this public
        key.
        """
        invalid = importlib.import_module("cryptography.exceptions").InvalidSignature
        try:
            self.key.verify(signature, to_bytes(data), *_scheme(algorithm))
        except invalid:
            return False
        return True


def _key_of(minion: str) -> str:
    """Return the accepted public key of a minion as PEM text, from the running master; "" on a minion or without such a
    key.
    """
    ctx = current.get()
    if ctx is None or ctx.master is None:
        return ""
    answer = ctx.master.wheel(MasterCall("key.key_str", (), {"match": minion}))["return"]
    found = answer.get("minions", {}).get(minion) if isinstance(answer, dict) else None
    return str(found or "")


def sign_message(
    privkey_path: str, message: str | bytes, passphrase: str | None = None, algorithm: str = PKCS1v15_SHA1
) -> bytes:
    """Return the signature (bytes) of a message, made with the private RSA key in a PEM file."""
    return PrivateKey.from_file(privkey_path, passphrase).sign(message, algorithm)


def verify_signature(pubkey_path: str, message: str | bytes, signature: bytes, algorithm: str = PKCS1v15_SHA1) -> bool:
    """Return whether the signature of a message was made by the private key that belongs to the public RSA key in a
    file.
    """
    return PublicKey.from_file(pubkey_path).verify(message, signature, algorithm)
