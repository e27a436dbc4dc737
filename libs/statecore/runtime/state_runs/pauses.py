"""Orders to a state run in progress: wait before a state, go on, end.

Who gives one (``state.pause`` and its kin) writes it down; the run looks before every state. A minion's orders lie in
``<cachedir>/state_pause/<jid>``; those of an orchestration the master keeps.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from statecore.host.content import kept_files
from statecore.model.errors import CommandError
from statecore.model.ports import Master

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


class OrderBook(Protocol):
    """Where the orders to one run are written."""

    def read(self) -> Orders:
        """What the run is told now. Raises CommandError where that cannot be read."""
        ...

    def close(self) -> None:
        """The run is over: its orders with it."""
        ...


@dataclass(frozen=True, slots=True)
class FileOrders:
    """Orders in a file."""

    file: Path

    def read(self) -> Orders:
        """{} where there is no file."""
        # Asked before each state: a Path that is not there takes several times as long.
        return orders(self.file.parent, self.file.name) if os.access(self.file, os.F_OK) else {}

    def close(self) -> None:
        """Removes it."""
        with contextlib.suppress(OSError):
            self.file.unlink()


@dataclass(frozen=True, slots=True)
class MasterOrders:
    """Orders to an orchestration."""

    master: Master

    def read(self) -> Orders:
        """Asks the master."""
        return self.master.orders()

    def close(self) -> None:
        """The master forgets them."""
        self.master.end_orders()


@dataclass(slots=True)
class Gate:
    """What a run asks before each of its states."""

    book: OrderBook
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
        self.book.close()

    def _order(self, state_id: str) -> dict[str, Any] | None:
        try:
            found = self.book.read()
        except CommandError as error:
            log.error("%s; the state run goes on", error)
            return None
        return found.get(state_id, found.get(ANY))
