"""Random values: Salt's ``random`` execution module."""

from __future__ import annotations

import base64
import hashlib
import random
import secrets
import string
from collections.abc import Sequence

from statecore.model.context import Context
from statecore.model.errors import InvocationError

VIRTUAL = "random"
ALIASES = {"hash": "hash_"}


def hash_(ctx: Context, value: object, algorithm: str = "sha512") -> str:
    """Return the hexadecimal digest of a value, converted to text. Raise InvocationError for an unknown algorithm."""
    if algorithm not in hashlib.algorithms_guaranteed:
        raise InvocationError(f"unknown digest algorithm '{algorithm}'")
    return hashlib.new(algorithm, value if isinstance(value, bytes) else str(value).encode()).hexdigest()


def str_encode(ctx: Context, value: str, encoder: str = "base64") -> str:
    """Return a text encoded as base64. Raise InvocationError for an unknown encoder."""
    if encoder != "base64":
        raise InvocationError("You must specify a valid encoder: base64")
    return base64.b64encode(value.encode()).decode()


def get_str(
    ctx: Context,
    length: int = 20,
    chars: str | None = None,
    lowercase: bool = True,
    uppercase: bool = True,
    digits: bool = True,
    punctuation: bool = True,
    whitespace: bool = False,
    printable: bool = False,
) -> str:
    """Return a random text of ``length`` characters that is safe as a password. Raise InvocationError if no
    characters are allowed.

    chars
        all characters that may appear; default: those of the kinds that are True

    CLI Example:

        salt '*' random.get_str 16 punctuation=False
    """
    kinds = {
        string.ascii_lowercase: lowercase,
        string.ascii_uppercase: uppercase,
        string.digits: digits,
        string.punctuation: punctuation,
        string.whitespace: whitespace,
        string.printable: printable,
    }
    allowed = chars or "".join(sorted({sign for kind, wanted in kinds.items() if wanted for sign in kind}))
    if not allowed:
        raise InvocationError("no characters are allowed")
    return "".join(secrets.choice(allowed) for _ in range(int(length)))


def rand_int(ctx: Context, start: int = 1, end: int = 10, seed: int | float | str | None = None) -> int:
    """Return a random integer from ``start`` to ``end``. The same ``seed`` gives the same number."""
    return _generator(seed).randint(int(start), int(end))


def seed(ctx: Context, range: int = 10, hash: int | float | str | None = None) -> int:
    """Return an integer from 0 to below ``range`` that is always the same on one minion, and differs between
    minions.

    hash
        value to derive the number from; default: the minion's id

    CLI Example:

        salt '*' random.seed 60
    """
    return _generator(ctx.grains["id"] if hash is None else hash).randrange(int(range))


def sample(ctx: Context, value: Sequence[object], size: int, seed: int | float | str | None = None) -> list[object]:
    """Return ``size`` random elements of a list. The same ``seed`` gives the same elements."""
    # Seed with a digest, as Salt does, so that both choose the same elements.
    return _generator(None if seed is None else hash_(ctx, seed)).sample(list(value), int(size))


def shuffle(ctx: Context, value: Sequence[object], seed: int | float | str | None = None) -> list[object]:
    """Return the elements of a list in random order. The same ``seed`` gives the same order."""
    return sample(ctx, value, len(value), seed)


def _generator(seed: int | float | str | None) -> random.Random:
    return random.Random() if seed is None else random.Random(seed)
