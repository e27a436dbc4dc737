"""Digests of files: computed, and parsed from texts such as ``sha256=...``."""

from __future__ import annotations

import hashlib
from pathlib import Path

from statecore.model.errors import InvocationError

#: Bytes read at a time.
_BLOCK = 1024 * 1024

#: Number of hexadecimal digits -> algorithm.
_ALGORITHMS = {32: "md5", 40: "sha1", 56: "sha224", 64: "sha256", 96: "sha384", 128: "sha512"}

#: Possible numbers of hexadecimal digits of a digest.
DIGEST_LENGTHS = frozenset(_ALGORITHMS)


def digest_of(path: Path, algorithm: str, block: int = _BLOCK) -> str:
    """Return the hexadecimal digest of a file, read in blocks of ``block`` bytes. Raises InvocationError for an
    unknown algorithm.
    """
    try:
        made = hashlib.new(algorithm)
    except ValueError as error:
        raise InvocationError(f"there is no digest '{algorithm}'") from error
    with path.open("rb") as file:
        while data := file.read(block):
            made.update(data)
    return made.hexdigest()


def length_of(algorithm: str) -> int:
    """Return the number of hexadecimal digits of an algorithm's digests, 0 for an unknown algorithm."""
    return next((length for length, name in _ALGORITHMS.items() if name == algorithm), 0)


def parse_digest(text: str) -> tuple[str, str]:
    """Return (algorithm, digest in lower case) of ``sha256=...``, ``sha256:...`` or a digest alone.

    For a digest alone, its length determines the algorithm. Raise InvocationError if no algorithm has this length.
    """
    algorithm, _, hexadecimal = text.replace(":", "=").rpartition("=")
    algorithm = algorithm or _ALGORITHMS.get(len(hexadecimal), "")
    if not algorithm:
        raise InvocationError(f"'{text}' is no digest; write algorithm=hexadecimal")
    return algorithm, hexadecimal.lower()
