"""``salt.utils.hashutils``."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path


def get_hash(path: str, form: str = "sha256", chunk_size: int = 65536) -> str:
    """The digest, hex, of a file of this machine."""
    digest = hashlib.new(form)
    with Path(path).open("rb") as file:
        while block := file.read(chunk_size):
            digest.update(block)
    return digest.hexdigest()


def sha256_digest(instr: str) -> str:
    """The SHA-256, hex, of a text."""
    return hashlib.sha256(instr.encode()).hexdigest()


def md5_digest(instr: str) -> str:
    """The MD5, hex, of a text; for names, not for security."""
    return hashlib.md5(instr.encode(), usedforsecurity=False).hexdigest()


def base64_b64encode(instr: str) -> str:
    """Base64 of a text."""
    return base64.b64encode(instr.encode()).decode()


def base64_b64decode(instr: str) -> str:
    """The text of base64."""
    return base64.b64decode(instr).decode()
