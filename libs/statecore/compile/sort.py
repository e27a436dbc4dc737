"""Pass: chunks are sorted by ``order``, then by what they are (seed 001)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from statecore.compile.draft import Draft
from statecore.types import ChunkId, Low

#: Lies between the highest order in the tree and ``last``.
_BEYOND = 1_000_000


def sort(draft: Draft) -> Draft:
    """Chunks in order of evaluation, but for requisites. ``order`` is a number in each."""
    cap = 1
    for low in draft.chunks:
        order = low.get("order")
        if isinstance(order, int) and order > cap - 1 and order > 0:
            cap = order + 100
    for low in draft.chunks:
        low["order"] = _position(low.get("order"), cap, low.pop("name_order", 0))
    return replace(draft, chunks=tuple(sorted(draft.chunks, key=_key)))


def _position(order: Any, cap: int, name_order: int) -> int | float:
    """A number for ``first``, ``last``, nothing and what is no number; a negative one counts from the end."""
    if isinstance(order, bool) or not isinstance(order, int | float):
        order = {"first": 0, "last": cap + _BEYOND}.get(order, cap) if isinstance(order, str) else cap
    position: int | float = order
    if name_order:
        position += name_order / 10000.0
    if position < 0:
        position += cap + _BEYOND
    return position


def _key(low: Low) -> tuple[int | float, ChunkId]:
    return low["order"], ChunkId.of(low)
