"""Pass: every state without an ``order`` gets the next number from 10000 on, in the order of declaration (seed 001)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from statecore.compile.draft import Draft, arguments
from statecore.model.types import High

FIRST = 10000


def number(draft: Draft) -> Draft:
    """High data with orders; unchanged where ``state_auto_order`` is False."""
    if not draft.opts.get("state_auto_order", True):
        return draft
    following = FIRST
    high: High = dict(draft.high)
    # Parts are as they run, IDs are not.
    for name in (name for part in draft.parts for name in part.rendered.high if name in high):
        numbered: dict[str, Any] = {}
        for state, run in draft.high[name].items():
            if (
                not state.startswith("_")
                and isinstance(run, list)
                and "order" not in [argument for argument, _ in arguments(run)]
            ):
                run = [*run, {"order": following}]
                following += 1
            numbered[state] = run
        high[name] = numbered
    return replace(draft, high=high)
