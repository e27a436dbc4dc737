"""Time and memory limits for rendering one file, the same for all renderers. The option ``jinja_time_limit`` sets the
time.
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.time_limit import ComputedTooLarge, ComputedTooMuch

#: Seconds for one file if the option ``jinja_time_limit`` is not set.
TIME_LIMIT = 20.0


#: Option of a master: seconds of CPU time for what it renders for one request of a minion, or for one event.
MASTER_RENDER_TIME_LIMIT = "master_render_time_limit"


def limit_of_master(opts: Mapping[str, object]) -> float:
    """Return the seconds of CPU time for one rendering on a master, such as a minion's pillar: the option
    ``master_render_time_limit``; 0 without a limit, as on minions, which do not have the option.
    """
    given = opts.get(MASTER_RENDER_TIME_LIMIT) or 0
    return max(0.0, float(given)) if isinstance(given, int | float) else 0.0


def time_limit_of(opts: Mapping[str, object]) -> float:
    """Return the seconds that the rendering of one file may take: the option ``jinja_time_limit``, or 20."""
    given = opts.get("jinja_time_limit") or 0
    return max(0.0, float(given if isinstance(given, int | float) else str(given))) or TIME_LIMIT


def limit_message(error: ComputedTooMuch) -> str:
    """Return the error message for a file whose rendering exceeded its time limit or memory limit."""
    if isinstance(error, ComputedTooLarge):
        return f"rendering takes more than {error.growth >> 20} MiB of memory: a text or a list that grows without end?"
    return f"rendering takes longer than {error.seconds:g} seconds: a loop without end? ({error.option})"
