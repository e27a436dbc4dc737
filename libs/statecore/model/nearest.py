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
