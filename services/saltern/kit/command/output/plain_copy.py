"""Copies a return into the form that it has after transport: plain dicts and lists, with no shared parts."""

from __future__ import annotations


def plain_copy(data: object) -> object:
    """Return a copy without subclasses (``repr`` would name them) and without sharing (YAML would write anchors)."""
    if isinstance(data, dict):
        return {name: plain_copy(value) for name, value in data.items()}
    return [plain_copy(item) for item in data] if isinstance(data, list) else data
