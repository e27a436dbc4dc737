"""The loop of the reactor's threads that read events from Redis and hand them to returners."""

from __future__ import annotations

import logging
import threading
from typing import Protocol

from masterstore.errors import StoreError

_LOG = logging.getLogger("saltern.reactor")

#: Seconds to wait for an event, and between two attempts while Redis is away.
BLOCK_SECONDS = 0.5


class Follower(Protocol):
    """Interface of an object that reads the master's events from Redis and passes them to a returner."""

    def poll(self) -> bool:
        """Read the next events and pass them to the returner; return whether to call ``poll`` again at once. Raises StoreError."""

    def close(self) -> None:
        """Stop reading events: deliver those that were read, or leave them to other readers. Raises StoreError."""


def follow_until(follower: Follower, option: str, ended: threading.Event) -> None:
    """Poll a Follower until ``ended`` is set, then close it. Errors of Redis are logged once for each outage.

    ``option``: name of the option that configures the returner, for the log.
    """
    away = False
    while not ended.is_set():
        try:
            going = follower.poll()
            away = False
        except StoreError as error:
            if not away:
                _LOG.error("%s: %s; events wait until that is over", option, error)
            away, going = True, False
        if not going:
            ended.wait(BLOCK_SECONDS)
    try:
        follower.close()
    except StoreError as error:
        _LOG.error("%s: %s; events in hand come again", option, error)
