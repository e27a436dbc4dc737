"""``salt.utils.job`` for users' modules: options of the job cache."""

from __future__ import annotations

from collections.abc import Mapping

_HOUR = 3600


def get_keep_jobs_seconds(opts: Mapping[str, object]) -> int:
    """Return for how many seconds jobs are kept: the option ``keep_jobs_seconds``, else the old option ``keep_jobs``
    (hours), else a day.
    """
    hours = int(str(opts.get("keep_jobs") or 24))
    return max(int(str(opts.get("keep_jobs_seconds") or 0)), 0) or hours * _HOUR
