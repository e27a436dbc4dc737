"""What a file may take while it is rendered, for whatever renderer it is written: time (``jinja_time_limit``), and memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.model.time_limit import ComputedTooLarge, ComputedTooMuch

#: Seconds, where the option does not say otherwise.
TIME_LIMIT = 20.0


def seconds_of(opts: Mapping[str, Any]) -> float:
    """What the options allow."""
    return max(0.0, float(opts.get("jinja_time_limit") or 0)) or TIME_LIMIT


def told(error: ComputedTooMuch) -> str:
    """What to say of a file that took more."""
    if isinstance(error, ComputedTooLarge):
        return f"rendering takes more than {error.growth >> 20} MiB of memory: a text or a list that grows without end?"
    return f"rendering takes longer than {error.seconds:g} seconds: a loop without end? (jinja_time_limit)"
