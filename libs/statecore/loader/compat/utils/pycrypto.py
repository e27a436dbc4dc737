"""``salt.utils.pycrypto`` for users' modules: random passwords."""

from __future__ import annotations

import secrets
import string


def secure_password(
    length: int = 20,
    use_random: bool = True,
    chars: str | None = None,
    lowercase: bool = True,
    uppercase: bool = True,
    digits: bool = True,
    punctuation: bool = True,
    whitespace: bool = False,
    printable: bool = False,
) -> str:
    """Return a random password of ``length`` characters, from a cryptographic source. The flags choose the kinds of
    characters.

    ``chars`` replaces the kinds of characters by its own. ``use_random`` is accepted and ignored.
    """
    kinds = (
        (lowercase, string.ascii_lowercase),
        (uppercase, string.ascii_uppercase),
        (digits, string.digits),
        (punctuation, string.punctuation),
        (whitespace, string.whitespace),
    )
    alphabet = string.printable if printable else chars or "".join(each for wanted, each in kinds if wanted)
    return "".join(secrets.choice(alphabet) for _ in range(int(length)))
