"""``salt.utils.args``."""

from __future__ import annotations

from typing import Any


def clean_kwargs(**kwargs: Any) -> dict[str, Any]:
    """Keyword arguments without the publication's."""
    return {key: value for key, value in kwargs.items() if not key.startswith("__")}


def split_input(val: Any) -> list[Any]:
    """A list of a list, or of text with commas."""
    return list(val) if isinstance(val, list) else [part.strip() for part in str(val).split(",")]
