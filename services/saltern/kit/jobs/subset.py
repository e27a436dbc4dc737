"""``salt --subset``: a random choice of N minions of a target that answer and have the function."""

from __future__ import annotations

import random
from collections.abc import Mapping

from saltern.kit.jobs.batch import Follow, Publish
from saltern.kit.jobs.watch import JobWatch


class _Capable:
    """Collects in ``minions`` the ids of the minions that have the function ``fun``, for ``salt --subset``."""

    def __init__(self, fun: str) -> None:
        self._fun = fun
        self.minions: list[str] = []

    def add(self, minion: str, load: Mapping[str, object]) -> None:
        listed = load["return"]
        if isinstance(listed, list) and self._fun in listed:
            self.minions.append(minion)

    def add_silent(self, minion: str, jid: str) -> None:
        """Ignore a minion that does not answer."""


def draw(
    tgt: object, tgt_type: str, fun: str, count: int, publish: Publish, watch: JobWatch, follow: Follow
) -> list[str]:
    """Return the sorted ids of at most ``count`` random minions of the target that answer and have the function
    ``fun``.

    It publishes ``sys.list_functions`` by ``publish``, and collects the returns by ``follow`` and ``watch``.
    The list is empty if no minion has the function.
    """
    job = publish(tgt, tgt_type, "sys.list_functions", [fun.partition(".")[0]])
    if not job["jid"]:
        return []
    capable = _Capable(fun)
    follow(job, capable)
    watch.run()
    return sorted(random.sample(capable.minions, min(count, len(capable.minions))))
