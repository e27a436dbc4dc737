"""Orders to a state run in progress: wait before a state, continue, or end.

``state.pause``, ``state.resume`` and ``state.soft_kill`` write orders; the run reads them before each state. A minion
keeps the orders in ``<cachedir>/state_pause/<jid>``. The master keeps those of an orchestration.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from statecore.host.content import data_files
from statecore.model import redaction
from statecore.model.errors import CommandError
from statecore.model.ports import Master
from statecore.model.values import to_float

log = logging.getLogger(__name__)

#: Key of an order for the next state, whichever it is.
ANY = "__all__"

#: Seconds between two reads of the orders while a run is paused.
_PATIENCE = 0.25

#: ID of a state, or ANY -> {"kill": True} ends the run, {"duration": seconds} pauses it so long, {} pauses until resumed.
Orders = dict[str, dict[str, object]]


def directory(cachedir: str | Path) -> Path:
    """Return the directory with the files of orders (pause, resume, kill) to state runs."""
    return Path(cachedir) / "state_pause"


def orders(folder: Path, jid: str) -> Orders:
    """Map of state ID to its order in the state run ``jid``: ``{"kill": True}``, or a pause (``{}`` or ``{"duration":
    seconds}``). {} without orders.

    Raises CommandError for a damaged file.
    """
    found = data_files.load(folder / jid)
    return found if isinstance(found, dict) else {}


def give(folder: Path, jid: str, given: Orders) -> None:
    """Store the orders (pause, kill) to the state run ``jid`` in place of earlier ones.

    Raises CommandError if the file cannot be written.
    """
    data_files.store(folder / jid, given)


class OrderBook(Protocol):
    """Storage of the orders (pause, kill) to one state run."""

    def read(self) -> Orders:
        """Return the map of state ID to its current order (pause or kill). Raises CommandError if the orders cannot be read."""
        ...

    def close(self) -> None:
        """Delete the orders to the state run, which has ended."""
        ...


@dataclass(frozen=True, slots=True)
class FileOrders:
    """Orders (pause, kill) to a state run of this minion, stored in a file."""

    file: Path

    def read(self) -> Orders:
        """Return the map of state ID to its current order (pause or kill); {} without a file. Raises CommandError for a damaged
        file.
        """
        # Called before each state: os.access is several times quicker than Path for a missing file.
        return orders(self.file.parent, self.file.name) if os.access(self.file, os.F_OK) else {}

    def close(self) -> None:
        """Delete the file with the orders when the state run has ended. Errors are ignored."""
        with contextlib.suppress(OSError):
            self.file.unlink()


@dataclass(frozen=True, slots=True)
class MasterOrders:
    """Orders (pause, kill) to an orchestration, stored by the master."""

    master: Master

    def read(self) -> Orders:
        """Return the map of state ID to the current order (pause or kill), which the master stores for the orchestration.

        Raises CommandError if the master does not answer.
        """
        return self.master.orders()

    def close(self) -> None:
        """Make the master delete the orders to this orchestration. Call it when the orchestration has ended."""
        self.master.end_orders()


@dataclass(slots=True)
class Gate:
    """Pauses or ends a state run before a state, as ``state.pause`` and ``state.soft_kill`` order.

    ``wait`` is a function that sleeps for a number of seconds. ``clock`` returns the current time in seconds.
    """

    book: OrderBook
    wait: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def may_go_on(self, low: Mapping[str, object]) -> bool:
        """Block while an order pauses the state run before this state. Return False if an order ends the run here, else
        True.
        """
        started = self.clock()
        logged = False
        while (order := self._order(str(low["__id__"]))) is not None:
            if order.get("kill"):
                log.warning("The state run ends before %s, as ordered by state.soft_kill", redaction.shown_id(low))
                return False
            if "duration" in order and self.clock() - started >= to_float(order["duration"]):
                return True
            if not logged:
                log.warning("The state run is paused before %s", redaction.shown_id(low))
                logged = True
            self.wait(_PATIENCE)
        return True

    def end(self) -> None:
        """Delete the orders to the state run, which has ended."""
        self.book.close()

    def _order(self, state_id: str) -> dict[str, object] | None:
        try:
            found = self.book.read()
        except CommandError as error:
            log.error("%s; the state run goes on", error)
            return None
        return found.get(state_id, found.get(ANY))
