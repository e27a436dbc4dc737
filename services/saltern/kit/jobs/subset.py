"""``salt --subset``: so many minions of a target, drawn among those that answer and have the function."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from saltern.kit.jobs.batch import Follow, Publish
from saltern.kit.jobs.watch import JobWatch


class _Capable:
    """Minions that have the function."""

    def __init__(self, fun: str) -> None:
        self._fun = fun
        self.minions: list[str] = []

    def add(self, minion: str, load: Mapping[str, Any]) -> None:
        listed = load["return"]
        if isinstance(listed, list) and self._fun in listed:
            self.minions.append(minion)

    def add_silent(self, minion: str, jid: str) -> None:
        """Nothing can be asked of it."""


def draw(tgt: Any, tgt_type: str, fun: str, count: int, publish: Publish, watch: JobWatch, follow: Follow) -> list[str]:
    """At most ``count`` of the minions that have the function, in order of their names; [] where none has it."""
    asked = publish(tgt, tgt_type, "sys.list_functions", [fun.partition(".")[0]])
    if not asked["jid"]:
        return []
    capable = _Capable(fun)
    follow(asked, capable)
    watch.run()
    return sorted(random.sample(capable.minions, min(count, len(capable.minions))))
