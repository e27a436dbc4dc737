"""``salt.utils.hashutils`` for users' modules: digests, HMAC and base64."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from statecore.loader.compat.utils.stringutils import to_bytes


def get_hash(path: str, form: str = "sha256", chunk_size: int = 65536) -> str:
    """Return the hexadecimal digest of a file on this machine. Raise ValueError for an unknown algorithm."""
    if form not in hashlib.algorithms_available:
        raise ValueError(f"Invalid hash type: {form}")
    digest = hashlib.new(form)
    with Path(path).open("rb") as file:
        while block := file.read(chunk_size):
            digest.update(block)
    return digest.hexdigest()


def md5_digest(instr: str | bytes) -> str:
    """Return the hexadecimal MD5 digest of a text. Not for security."""
    return hashlib.md5(to_bytes(instr), usedforsecurity=False).hexdigest()


def sha1_digest(instr: str | bytes) -> str:
    """Return the hexadecimal SHA-1 digest of a text. Not for security."""
    return hashlib.sha1(to_bytes(instr), usedforsecurity=False).hexdigest()


def sha256_digest(instr: str | bytes) -> str:
    """Return the hexadecimal SHA-256 digest of a text."""
    return hashlib.sha256(to_bytes(instr)).hexdigest()


def sha512_digest(instr: str | bytes) -> str:
    """Return the hexadecimal SHA-512 digest of a text."""
    return hashlib.sha512(to_bytes(instr)).hexdigest()


def base64_b64encode(instr: str | bytes) -> str:
    """Return a text encoded as base64, in one line."""
    return base64.b64encode(to_bytes(instr)).decode()


def base64_encodestring(instr: str | bytes) -> str:
    """Return a text encoded as base64, in lines of 76 characters."""
    return base64.encodebytes(to_bytes(instr)).decode()


def base64_b64decode(instr: str | bytes) -> str | bytes:
    """Return the text that base64 text encodes; bytes if the content is not UTF-8."""
    return _text_or_bytes(base64.b64decode(to_bytes(instr)))


def base64_decodestring(instr: str | bytes) -> str | bytes:
    """Return the text that base64 text of several lines encodes; bytes if the content is not UTF-8."""
    return _text_or_bytes(base64.decodebytes(to_bytes(instr)))


def _text_or_bytes(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def hmac_signature(string: str, shared_secret: str, challenge_hmac: str) -> bool:
    """Return whether ``challenge_hmac`` is the base64 form of the HMAC-SHA256 of a text with the key ``shared_secret``."""
    digest = hmac.new(to_bytes(shared_secret), to_bytes(string), hashlib.sha256).digest()
    return hmac.compare_digest(base64.b64encode(digest), to_bytes(challenge_hmac))


def hmac_compute(string: str, shared_secret: str) -> str:
    """Return the hexadecimal HMAC-SHA256 of a text with the key ``shared_secret``."""
    return hmac.new(to_bytes(shared_secret), to_bytes(string), hashlib.sha256).hexdigest()


def random_hash(size: int = 9999999999, hash_type: str | None = None) -> str:
    """Return the hexadecimal digest (MD5 by default) of a random number up to ``size``, from a cryptographic source."""
    return hashlib.new(hash_type or "md5", str(secrets.randbelow(size + 1)).encode()).hexdigest()


class DigestCollector:
    """Computes one digest of several files and texts together."""

    def __init__(self, form: str = "sha256", buff: int = 65536) -> None:
        if form not in hashlib.algorithms_available:
            raise ValueError(f"Invalid hash type: {form}")
        self._digest, self._size = hashlib.new(form), buff

    def add(self, path: str) -> None:
        """Add the content of a file to the digest."""
        with Path(path).open("rb") as file:
            while block := file.read(self._size):
                self._digest.update(block)

    def add_data(self, data: object) -> None:
        """Add a text or bytes to the digest."""
        self._digest.update(to_bytes(data))

    def digest(self) -> str:
        """Return the hexadecimal digest of all added content, with a newline at the end as in Salt."""
        return self._digest.hexdigest() + os.linesep
