"""How long a file may compute while it is rendered: the option ``jinja_time_limit``, for whatever renderer it is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.time_limit import ComputedTooLong

#: Seconds, where the option does not say otherwise.
TIME_LIMIT = 20.0


def seconds_of(opts: Mapping[str, Any]) -> float:
    """What the options allow."""
    return max(0.0, float(opts.get("jinja_time_limit") or 0)) or TIME_LIMIT


def told(error: ComputedTooLong) -> str:
    """What to say of a file that took longer."""
    return f"rendering takes longer than {error.seconds:g} seconds: a loop without end? (jinja_time_limit)"
