"""What is shown of values that nobody should read (Salt 3008's masking)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MASK = "**********"


def redacted(value: Any) -> Any:
    """The value with every scalar in it masked; None, zero and what is empty tell nothing and stay as they are."""
    if isinstance(value, Mapping):
        return {key: redacted(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item) for item in value]
    return MASK if value else value
