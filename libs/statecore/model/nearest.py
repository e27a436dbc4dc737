"""The nearest of the names that there are to one that there is not: what a message about a wrong name ends with."""

from __future__ import annotations

from collections.abc import Iterable


def close_matches(word: str, names: Iterable[str], n: int = 3, cutoff: float = 0.6) -> list[str]:
    """At most ``n`` of the names that are like the word, the nearest first: as ``difflib.get_close_matches``."""
    # Only here: most runs have no wrong name, and all would load it.
    import difflib

    return difflib.get_close_matches(word, list(names), n, cutoff)
