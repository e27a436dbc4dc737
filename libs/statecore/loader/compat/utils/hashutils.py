"""``salt.utils.hashutils``."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Any

from statecore.loader.compat.utils.stringutils import to_bytes


def get_hash(path: str, form: str = "sha256", chunk_size: int = 65536) -> str:
    """The digest, hex, of a file of this machine. Raises ValueError for an unknown algorithm."""
    if form not in hashlib.algorithms_available:
        raise ValueError(f"Invalid hash type: {form}")
    digest = hashlib.new(form)
    with Path(path).open("rb") as file:
        while block := file.read(chunk_size):
            digest.update(block)
    return digest.hexdigest()


def md5_digest(instr: str | bytes) -> str:
    """The MD5, hex; for names, not for security."""
    return hashlib.md5(to_bytes(instr), usedforsecurity=False).hexdigest()


def sha1_digest(instr: str | bytes) -> str:
    """The SHA-1, hex; for names, not for security."""
    return hashlib.sha1(to_bytes(instr), usedforsecurity=False).hexdigest()


def sha256_digest(instr: str | bytes) -> str:
    """The SHA-256, hex."""
    return hashlib.sha256(to_bytes(instr)).hexdigest()


def sha512_digest(instr: str | bytes) -> str:
    """The SHA-512, hex."""
    return hashlib.sha512(to_bytes(instr)).hexdigest()


def base64_b64encode(instr: str | bytes) -> str:
    """Base64, in one line."""
    return base64.b64encode(to_bytes(instr)).decode()


def base64_encodestring(instr: str | bytes) -> str:
    """Base64, in lines of 76 characters."""
    return base64.encodebytes(to_bytes(instr)).decode()


def base64_b64decode(instr: str | bytes) -> str | bytes:
    """What is behind base64; bytes where it is no text."""
    return _text_or_bytes(base64.b64decode(to_bytes(instr)))


def base64_decodestring(instr: str | bytes) -> str | bytes:
    """What is behind base64 in lines; bytes where it is no text."""
    return _text_or_bytes(base64.decodebytes(to_bytes(instr)))


def _text_or_bytes(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def hmac_signature(string: str, shared_secret: str, challenge_hmac: str) -> bool:
    """Whether a challenge is the base64 of the text's HMAC-SHA256."""
    digest = hmac.new(to_bytes(shared_secret), to_bytes(string), hashlib.sha256).digest()
    return hmac.compare_digest(base64.b64encode(digest), to_bytes(challenge_hmac))


def hmac_compute(string: str, shared_secret: str) -> str:
    """HMAC-SHA256, hex."""
    return hmac.new(to_bytes(shared_secret), to_bytes(string), hashlib.sha256).hexdigest()


def random_hash(size: int = 9999999999, hash_type: str | None = None) -> str:
    """The digest of a number below ``size`` that nobody can guess."""
    return hashlib.new(hash_type or "md5", str(secrets.randbelow(size + 1)).encode()).hexdigest()


class DigestCollector:
    """One digest of many files and texts."""

    def __init__(self, form: str = "sha256", buff: int = 65536) -> None:
        if form not in hashlib.algorithms_available:
            raise ValueError(f"Invalid hash type: {form}")
        self._digest, self._size = hashlib.new(form), buff

    def add(self, path: str) -> None:
        """A file more."""
        with Path(path).open("rb") as file:
            while block := file.read(self._size):
                self._digest.update(block)

    def add_data(self, data: Any) -> None:
        """A text more."""
        self._digest.update(to_bytes(data))

    def digest(self) -> str:
        """Of everything so far, hex, with an end of line."""
        return self._digest.hexdigest() + os.linesep
