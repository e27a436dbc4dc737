"""What a return looks like once it has travelled: dicts and lists of the plain kind, none of them in two places."""

from __future__ import annotations

from typing import Any


def plain_copy(data: Any) -> Any:
    """A copy without subclasses (Python shows an OrderedDict by its name) and without sharing (YAML would write anchors)."""
    if isinstance(data, dict):
        return {name: plain_copy(value) for name, value in data.items()}
    return [plain_copy(item) for item in data] if isinstance(data, list) else data
