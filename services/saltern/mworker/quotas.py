"""Limits on what one minion may store at the master and send to its event bus, in one worker.

A minion that keeps to the protocol does not meet them. A refusal is counted (salt_quota_refusals) and logged once for each
minion and limit in LOG_SECONDS, however often it happens. Requests a second are limited by the reqserver.

Source: docs/security.md#quotas
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from enum import Enum

from saltern.kit.config.master import MasterOptions
from saltern.kit.process.exposition import Counter
from saltern.kit.process.rate_limit import RareLog, Rate, RateLimiter

#: Seconds of its rate of events that a minion may use at once: a highstate of 5,000 states fires one for each state.
EVENT_BURST = 60.0

#: Seconds between two log lines about the same minion and limit.
LOG_SECONDS = 600.0


class Quota(Enum):
    """Kind of a minion's limit: events, grains, mine, files or returns. The value is the label of the metric of refusals."""

    EVENTS = "events"
    GRAINS = "grains"
    MINE = "mine"
    FILES = "files"
    RETURNS = "returns"


#: Options that an operator raises if an honest minion meets a limit.
QUOTA_OPTIONS = {
    Quota.EVENTS: "minion_events_per_second, minion_event_bytes_per_second",
    Quota.GRAINS: "grains_max_bytes",
    Quota.MINE: "mine_max_bytes",
    Quota.FILES: "file_recv_max_total",
    Quota.RETURNS: "unasked_returns_per_hour, unasked_return_bytes_per_hour",
}


class Quotas:
    """The limits of minions in one worker: measures the events that each minion fires, and counts and logs refusals."""

    def __init__(
        self,
        options: MasterOptions,
        refusals: Counter,
        log: logging.Logger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the limits from the options. ``refusals``: counter of refusals with the label ``quota``. ``clock``:
        returns monotonic seconds.
        """
        self._refusals, self._log, self._clock = refusals, log, clock
        self._events = RateLimiter(
            Rate(options.minion_events_per_second, EVENT_BURST),
            Rate(options.minion_event_bytes_per_second, EVENT_BURST),
        )
        self._logged = RareLog(LOG_SECONDS)

    def may_fire(self, minion: str, size: float = 0.0) -> bool:
        """Return whether a minion may fire one more event, and count the event if so. ``size``: the event's share of
        the request's bytes.
        """
        if self._events.admit(minion, self._clock(), 1.0, size):
            return True
        self.refused(Quota.EVENTS, minion, "an event was dropped: the minion causes too many events, or too large ones")
        return False

    def refused(self, quota: Quota, minion: str, why: str) -> None:
        """Count a refusal, and log ``why`` unless a refusal of this minion by this limit was logged lately."""
        self._refusals.labels(quota.value).inc()
        if self._logged.due((minion, quota), self._clock()):
            self._log.warning("%s (limit: %s of the master)", why, QUOTA_OPTIONS[quota], extra={"minion": minion})
