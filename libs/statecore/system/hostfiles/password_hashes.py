"""Password hashes of /etc/shadow (crypt(5)): SHA-256 and SHA-512, by Ulrich Drepper's "Unix crypt using SHA-256 and
SHA-512".

Other hash methods are neither created nor compared.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

_ALPHABET = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

#: Default, smallest and largest number of rounds.
_ROUNDS, _LEAST, _MOST = 5000, 1000, 999_999_999

#: Largest number of salt characters that are used.
_SALT = 16

_HASH = re.compile(r"\$(?P<kind>[56])\$(?:rounds=(?P<rounds>\d+)\$)?(?P<salt>[^$]{0,16})\$[./0-9A-Za-z]+$")


class _Digest(Protocol):
    """Interface of a hash object of hashlib."""

    @property
    def digest_size(self) -> int: ...

    def digest(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class _HashKind:
    """One method of crypt(5) to hash passwords: its prefix, its digest and the order of its output bytes."""

    prefix: str
    digest: Callable[[bytes], _Digest]
    #: Indexes of the digest's bytes in output order, in groups of three.
    order: tuple[tuple[int, int, int], ...]
    #: Indexes of the last bytes (high, middle, low; -1: none), and the number of characters they make.
    rest: tuple[int, int, int, int]


def _rotations(count: int, step: tuple[int, int, int]) -> tuple[tuple[int, int, int], ...]:
    """Return groups of three byte indexes, each a third of the digest apart, rotated by ``step`` from group to
    group.
    """
    third = count // 3
    first = (0, third, 2 * third)
    rows = []
    for at in range(third):
        row = tuple(first[(each + at * step[0]) % 3] + at for each in range(3))
        rows.append((row[0], row[1], row[2]))
    return tuple(rows)


KINDS: Mapping[str, _HashKind] = {
    "sha256": _HashKind("$5$", hashlib.sha256, _rotations(30, (2, 0, 0)), (-1, 31, 30, 3)),
    "sha512": _HashKind("$6$", hashlib.sha512, _rotations(63, (1, 0, 0)), (-1, -1, 63, 2)),
}


def make(password: str, *, algorithm: str = "sha512", salt: str | None = None, rounds: int | None = None) -> str:
    """Return the hash of a password for /etc/shadow. Without a salt a random one is drawn.

    Raises ValueError for an unknown algorithm or an invalid salt.
    """
    if algorithm not in KINDS:
        raise ValueError(f"algorithm '{algorithm}' is not supported; there are {', '.join(KINDS)}")
    salt = "".join(secrets.choice(_ALPHABET) for _ in range(_SALT)) if salt is None else salt[:_SALT]
    if any(sign in salt for sign in "$:\n"):
        raise ValueError("a salt must not contain $, a colon or a newline")
    kind = KINDS[algorithm]
    count = _ROUNDS if rounds is None else min(max(rounds, _LEAST), _MOST)
    rounds_part = "" if rounds is None else f"rounds={count}$"
    return f"{kind.prefix}{rounds_part}{salt}${_encoded(kind, _digest(kind, password.encode(), salt.encode(), count))}"


def matches(password: str, known: str) -> bool:
    """Return True if ``known``, a hash of /etc/shadow, is a SHA-256 or SHA-512 hash of this password."""
    found = _HASH.match(known)
    if found is None:
        return False
    algorithm = "sha256" if found["kind"] == "5" else "sha512"
    rounds = int(found["rounds"]) if found["rounds"] else None
    return hmac.compare_digest(make(password, algorithm=algorithm, salt=found["salt"], rounds=rounds), known)


def _digest(kind: _HashKind, password: bytes, salt: bytes, rounds: int) -> bytes:
    """Compute the digest of a password by crypt(5). The numbers in the comments are the specification's steps."""
    size = kind.digest(b"").digest_size
    inner = kind.digest(password + salt + password).digest()  # 4-8
    start = password + salt + _filled(inner, len(password))  # 1-3, 9-10
    bits = len(password)
    while bits:  # 11
        start += inner if bits & 1 else password
        bits >>= 1
    mixed: bytes = kind.digest(start).digest()  # 12
    long_password = _filled(kind.digest(password * len(password)).digest(), len(password))  # 13-16
    long_salt = _filled(kind.digest(salt * (16 + mixed[0])).digest(), len(salt))  # 17-20
    for number in range(rounds):  # 21
        text = long_password if number & 1 else mixed[:size]
        text += long_salt if number % 3 else b""
        text += long_password if number % 7 else b""
        text += mixed[:size] if number & 1 else long_password
        mixed = kind.digest(text).digest()
    return mixed


def _filled(digest: bytes, length: int) -> bytes:
    return (digest * (length // len(digest) + 1))[:length]


def _encoded(kind: _HashKind, digest: bytes) -> str:  # 22
    text = "".join(_sixes(digest[high], digest[middle], digest[low], 4) for high, middle, low in kind.order)
    *last, length = kind.rest
    high, middle, low = (digest[each] if each >= 0 else 0 for each in last)
    return text + _sixes(high, middle, low, length)


def _sixes(high: int, middle: int, low: int, length: int) -> str:
    number = high << 16 | middle << 8 | low
    return "".join(_ALPHABET[number >> 6 * at & 63] for at in range(length))
