"""Pass: a chunk with ``names`` becomes one for each, with the arguments that a name overrides (seed 003)."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from statecore.compile.draft import Draft
from statecore.model.types import Low


def expand(draft: Draft) -> Draft:
    """Chunks of one name each. ``name_order`` counts them, so that sorting keeps their order."""
    return replace(draft, chunks=tuple(each for low in draft.chunks for each in _each(low)))


def _each(low: Low) -> Iterator[Low]:
    names = low.pop("names", None)
    if not names:
        yield low
        return
    unique: list[Any] = []
    for name in names:
        if name not in unique:
            unique.append(name)
    for position, entry in enumerate(unique, 1):
        chunk = copy.deepcopy(low)
        name, overrides = next(iter(entry.items())) if isinstance(entry, Mapping) else (entry, ())
        chunk["name"] = name if isinstance(name, str) else str(name)
        for override in [overrides] if isinstance(overrides, Mapping) else overrides:
            chunk.update(override)
        chunk["name_order"] = position
        yield chunk
