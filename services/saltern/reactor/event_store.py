"""The reactor's connections to Redis: they check the authentication codes of events, count refused events, and log
each reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from masterstore import keys
from masterstore.event_codes import MEANING, EventCodes, Fault
from masterstore.store import Store
from saltern.kit.keys.events_key import load_event_macs
from saltern.kit.process.service import Role

#: Seconds between two log lines for the same reason; the metric counts every event.
_LOG_EVERY = 600.0


class RefusedEvents:
    """Counts the events that are refused in the metric ``salt_events_refused``, and logs each reason once in ten minutes."""

    def __init__(self, role: Role, clock: Callable[[], float] = time.monotonic) -> None:
        self._role = role
        self._clock = clock
        self._logged: dict[Fault, float] = {}

    def __call__(self, key: str, fault: Fault) -> None:
        """Count and log that an event, or the table of reactions that the reactors share, was refused; it is in the
        Redis key ``key``.
        """
        self._role.metrics.events_refused.labels(str(fault)).inc()
        now = self._clock()
        if now - self._logged.get(fault, -_LOG_EVERY) >= _LOG_EVERY:
            self._logged[fault] = now
            what = "an event" if key == keys.EVENTS else "the state of the reactors"
            text = "%s in %s is not obeyed (%s): %s. Further ones are counted in salt_events_refused_total"
            self._role.log.error(text, what, key, fault, MEANING[fault])


def event_stores(role: Role) -> Callable[[str], Store]:
    """Return a function that opens a Store which checks the authentication codes of events. The function's argument is
    the name that Redis shows for the connection.

    Raises ConfigError for a malformed key of events; the function raises StoreError for a malformed ``redis_url``.
    """
    options = role.options
    macs, unsigned = load_event_macs(role.keys, role.log), options.accept_unsigned_records
    codes = EventCodes(macs, accept_unsigned=unsigned, refused=RefusedEvents(role))
    return lambda client_name: Store.open(options.redis_url, client_name=client_name, event_codes=codes)
