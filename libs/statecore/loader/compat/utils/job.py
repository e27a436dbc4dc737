"""``salt.utils.job`` for users' modules: options of the job cache."""

from __future__ import annotations

from collections.abc import Mapping

_HOUR = 3600


def get_keep_jobs_seconds(opts: Mapping[str, object]) -> int:
    """Return for how many seconds jobs are kept: the option ``keep_jobs_seconds``, by default a day.

    Of the old option ``keep_jobs`` (hours) and this one, the larger counts.
    """
    hours = int(str(opts.get("keep_jobs") or 24))
    return max(int(str(opts.get("keep_jobs_seconds") or 0)), 0) or hours * _HOUR
