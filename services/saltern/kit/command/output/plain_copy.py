"""Copies a return into the form that it has after its way over the network: plain dicts and lists, with no shared parts."""

from __future__ import annotations


def plain_copy(data: object) -> object:
    """Return a copy of ``data`` made of plain dicts and lists only.

    Outputters need it: ``repr`` would name subclasses of dict, and YAML would write anchors for parts that occur twice.
    """
    if isinstance(data, dict):
        return {name: plain_copy(value) for name, value in data.items()}
    return [plain_copy(item) for item in data] if isinstance(data, list) else data
