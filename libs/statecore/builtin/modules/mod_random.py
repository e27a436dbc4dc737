"""Chance (Salt's ``random`` module)."""

from __future__ import annotations

import base64
import hashlib
import random
import secrets
import string
from collections.abc import Sequence
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import InvocationError

VIRTUAL = "random"
ALIASES = {"hash": "hash_"}


def hash_(ctx: Context, value: Any, algorithm: str = "sha512") -> str:
    """Hexadecimal digest of a value's text. Raises InvocationError for an algorithm that there is not."""
    if algorithm not in hashlib.algorithms_guaranteed:
        raise InvocationError(f"there is no digest '{algorithm}'")
    return hashlib.new(algorithm, value if isinstance(value, bytes) else str(value).encode()).hexdigest()


def str_encode(ctx: Context, value: str, encoder: str = "base64") -> str:
    """A text in base64."""
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
    """A random text, fit for a password; ``chars`` are all that may be in it.

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


def rand_int(ctx: Context, start: int = 1, end: int = 10, seed: Any = None) -> int:
    """A number from start to end, the same for the same seed."""
    return _chance(seed).randint(int(start), int(end))


def seed(ctx: Context, range: int = 10, hash: Any = None) -> int:
    """A number below ``range`` that is always the same on a minion.

    CLI Example:

        salt '*' random.seed 60
    """
    return _chance(ctx.grains["id"] if hash is None else hash).randrange(int(range))


def sample(ctx: Context, value: Sequence[Any], size: int, seed: Any = None) -> list[Any]:
    """So many of a list, the same for the same seed."""
    # A digest, as Salt has it: the same choice there and here.
    return _chance(None if seed is None else hash_(ctx, seed)).sample(list(value), int(size))


def shuffle(ctx: Context, value: Sequence[Any], seed: Any = None) -> list[Any]:
    """A list in another order."""
    return sample(ctx, value, len(value), seed)


def _chance(seed: Any) -> random.Random:
    return random.Random() if seed is None else random.Random(seed)
