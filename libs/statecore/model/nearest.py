"""Similar names, for the hint in a message about an unknown name."""

from __future__ import annotations

from collections.abc import Iterable


def close_matches(word: str, names: Iterable[str], n: int = 3, cutoff: float = 0.6) -> list[str]:
    """Return at most ``n`` of the names that are similar to ``word``, the most similar first. See
    ``difflib.get_close_matches``.
    """
    # Imported here, because most runs have no unknown name.
    import difflib

    return difflib.get_close_matches(word, list(names), n, cutoff)


def one_letter_off(word: str, name: str) -> bool:
    """Return whether one letter added, left out, changed, or exchanged with its neighbour makes ``name`` of ``word``."""
    if abs(len(word) - len(name)) > 1 or word == name:
        return False
    start = next((at for at, (a, b) in enumerate(zip(word, name, strict=False)) if a != b), min(len(word), len(name)))
    rest, other = word[start:], name[start:]
    return (
        rest[1:] == other[1:]
        or rest[1:] == other
        or rest == other[1:]
        or (rest[:2] == other[1::-1] and rest[2:] == other[2:])
    )
