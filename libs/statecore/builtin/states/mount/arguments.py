"""Arguments that more than one state of ``mount`` takes."""

from __future__ import annotations

from collections.abc import Sequence


def trimmed(name: str) -> str:
    """A mount point without a slash at its end."""
    return name.rstrip("/") or "/"


def words(value: object) -> tuple[str, ...]:
    """A list, or text with commas, as a list."""
    if isinstance(value, str):
        return tuple(each for each in value.split(",") if each)
    return tuple(str(each) for each in value) if isinstance(value, Sequence) else ()


def option_fault(key: str, value: object) -> str | None:
    """What is wrong with an argument that is a list of words, or text with commas; None when nothing is."""
    fits = isinstance(value, str) or (
        isinstance(value, list | tuple) and all(isinstance(each, str | int) and each != "" for each in value)
    )
    return None if fits else f"{key}: a list of words is needed, or text with commas, not {value!r}"
