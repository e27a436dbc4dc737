"""Minions begin one after the other, spread over ``splaytime`` seconds; each always waits as long as its id says."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import InvocationError

#: Seconds, where neither the job (``executor_opts``) nor the option ``splaytime`` says otherwise.
_SPLAYTIME = 300

#: How many places the ids are spread over.
_PLACES = 8192

_WORD = 0xFFFFFFFF


def execute(
    ctx: Context, data: Mapping[str, Any], func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Waits; the next executor runs the function. Raises InvocationError for a time that is none."""
    asked = data.get("executor_opts")
    seconds = asked.get("splaytime") if isinstance(asked, Mapping) else None
    if seconds is None:
        seconds = ctx.opts.get("splaytime", _SPLAYTIME)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        raise InvocationError(f"splaytime must be a positive number of seconds, not {seconds!r}")
    time.sleep(delay(str(ctx.opts["id"]), seconds))


def delay(minion_id: str, seconds: float) -> int:
    """Whole seconds that this minion waits: the place of its id among all, as Salt computes it (Jenkins one-at-a-time)."""
    digest = 0
    for byte in minion_id.encode():
        digest = (digest + byte) & _WORD
        digest = (digest + (digest << 10)) & _WORD
        digest ^= digest >> 6
    digest = (digest + (digest << 3)) & _WORD
    digest ^= digest >> 11
    digest = (digest + (digest << 15)) & _WORD
    return int(seconds * (digest & (_PLACES - 1)) / _PLACES)
