"""Orders to a state run in progress: wait before a state, go on, end. They lie in ``<cachedir>/state_pause/<jid>``.

Who gives one (``state.pause`` and its kin) writes the file; the run looks for it before every state.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecore import kept_files
from statecore.errors import CommandError

log = logging.getLogger(__name__)

#: The key of an order that is meant for whichever state is next.
ANY = "__all__"

#: Seconds between looks while a run is paused.
_PATIENCE = 0.25

#: ID of a state, or ANY -> {"kill": True} to end before it, {"duration": seconds} to wait so long, {} to wait for good.
Orders = dict[str, dict[str, Any]]


def directory(cachedir: str | Path) -> Path:
    """Where the orders of all runs lie."""
    return Path(cachedir) / "state_pause"


def orders(place: Path, jid: str) -> Orders:
    """The orders to a run, {} when there are none. Raises CommandError for a damaged file."""
    found = kept_files.load(place / jid)
    return found if isinstance(found, dict) else {}


def give(place: Path, jid: str, given: Orders) -> None:
    """Replaces all orders to a run. Raises CommandError."""
    kept_files.store(place / jid, given)


@dataclass(slots=True)
class Gate:
    """What a run asks before each of its states."""

    file: Path
    wait: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def may_go_on(self, low: Mapping[str, Any]) -> bool:
        """True once the state may begin; False when the run is to end before it. Waits as long as it is told to."""
        started = self.clock()
        told = False
        while (order := self._order(str(low["__id__"]))) is not None:
            if order.get("kill"):
                log.warning("The state run was told to end before %s", low["__id__"])
                return False
            if "duration" in order and self.clock() - started >= float(order["duration"]):
                return True
            if not told:
                log.warning("The state run is paused before %s", low["__id__"])
                told = True
            self.wait(_PATIENCE)
        return True

    def end(self) -> None:
        """The run is over: its orders with it."""
        with contextlib.suppress(OSError):
            self.file.unlink()

    def _order(self, state_id: str) -> dict[str, Any] | None:
        # Asked before each state: a Path that is not there takes several times as long.
        if not os.access(self.file, os.F_OK):
            return None
        try:
            found = orders(self.file.parent, self.file.name)
        except CommandError as error:
            log.error("%s; the state run goes on", error)
            return None
        return found.get(state_id, found.get(ANY))
