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
    """Reads events from Redis and hands them on."""

    def poll(self) -> bool:
        """Handle the next events; return whether to poll again at once. Raises StoreError."""

    def close(self) -> None:
        """Finish the events in hand and stop reading. Raises StoreError."""


def follow_until(follower: Follower, option: str, ended: threading.Event) -> None:
    """Poll a follower until ``ended`` is set, then close it. Errors of Redis are logged once for each outage.

    ``option``: the option that the follower works for, for the log.
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
