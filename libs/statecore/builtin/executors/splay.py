"""Executor splay: delay the job, so that minions start spread over ``splaytime`` seconds. A minion always has the
same delay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from statecore.model.context import Context
from statecore.model.errors import InvocationError

#: Seconds, if neither the job's ``executor_opts`` nor the option ``splaytime`` is set.
_SPLAYTIME = 300

#: Number of slots that the minion ids are hashed to.
_SLOTS = 8192

_WORD = 0xFFFFFFFF


def execute(
    ctx: Context,
    data: Mapping[str, object],
    func: Callable[..., object],
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> None:
    """Sleep for this minion's share of ``splaytime`` seconds and return None, so that the next executor runs the
    function. Raises InvocationError for an invalid ``splaytime``.
    """
    asked = data.get("executor_opts")
    seconds = asked.get("splaytime") if isinstance(asked, Mapping) else None
    if seconds is None:
        seconds = ctx.opts.get("splaytime", _SPLAYTIME)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        raise InvocationError(f"splaytime must be a positive number of seconds, not {seconds!r}")
    time.sleep(delay(str(ctx.opts["id"]), seconds))


def delay(minion_id: str, seconds: float) -> int:
    """Return the whole seconds that the executor ``splay`` waits on this minion, smaller than ``seconds``. It is
    computed from the minion id as in Salt (Jenkins one-at-a-time hash).
    """
    digest = 0
    for byte in minion_id.encode():
        digest = (digest + byte) & _WORD
        digest = (digest + (digest << 10)) & _WORD
        digest ^= digest >> 6
    digest = (digest + (digest << 3)) & _WORD
    digest ^= digest >> 11
    digest = (digest + (digest << 15)) & _WORD
    return int(seconds * (digest & (_SLOTS - 1)) / _SLOTS)
