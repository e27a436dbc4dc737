"""Limits on the rate of each sender: requests, events and bytes a second. Pure: the caller passes the current time.

A sender may use what ``burst`` seconds of its rate allow at once, and its rate from then on. A sender is served while it has
not used all of that, so a single large request or event always passes, and the time that it costs is waited for afterwards.
Memory is bounded: only the senders that were heard of last are remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

#: Most senders that a RateLimiter remembers. A forgotten sender gets a new burst.
MOST_SENDERS = 20_000


class Rate(NamedTuple):
    """A limit: units a second (0: no limit), and the seconds of that rate that a sender may use at once."""

    per_second: float
    burst: float


class RateLimiter:
    """Measures how many units (such as requests and bytes) each sender used, against one Rate for each kind of
    unit.
    """

    def __init__(self, *rates: Rate, most_senders: int = MOST_SENDERS) -> None:
        self._rates = tuple(
            (at, 1.0 / rate.per_second, rate.burst) for at, rate in enumerate(rates) if rate.per_second > 0
        )
        self._most_senders = most_senders
        #: Map of sender to the times at which it will have paid for all that it used, one for each limit.
        self._paid: OrderedDict[Hashable, list[float]] = OrderedDict()
        self._limits = len(rates)

    def __len__(self) -> int:
        return len(self._paid)

    def wait(self, sender: Hashable, now: float) -> float:
        """Return the seconds until the sender is within all limits again; 0 if it is within them at ``now``."""
        paid = self._paid.get(sender)
        if paid is None:
            return 0.0
        longest = 0.0
        # A loop takes a third of the time of a generator, and this runs for each request.
        for at, _, burst in self._rates:
            wait = paid[at] - burst - now
            if wait > longest:
                longest = wait
        return longest

    def charge(self, sender: Hashable, now: float, *units: float) -> None:
        """Record at ``now`` that the sender used these ``units``, one number for each limit in the order of the
        limits.
        """
        if not self._rates:
            return
        paid = self._paid.get(sender)
        if paid is None:
            paid = self._paid[sender] = [now] * self._limits
            if len(self._paid) > self._most_senders:
                self._paid.popitem(last=False)
        else:
            self._paid.move_to_end(sender)
        for at, seconds, _ in self._rates:
            since = paid[at]
            paid[at] = (since if since > now else now) + units[at] * seconds

    def admit(self, sender: Hashable, now: float, *units: float) -> bool:
        """Return whether the sender is within all limits at ``now``. If so, record the ``units`` that it uses, one
        number for each limit.
        """
        if self.wait(sender, now) > 0:
            return False
        self.charge(sender, now, *units)
        return True


class RareLog:
    """Decides whether a repeated event is logged again: once for each key in ``seconds``."""

    def __init__(self, seconds: float, most: int = 1000) -> None:
        """Create the log limit without remembered keys. ``seconds``: pause between two log lines for one key.
        ``most``: largest number of remembered keys.

        An event whose key was forgotten is logged again.
        """
        self._seconds, self._most = seconds, most
        self._logged: OrderedDict[Hashable, float] = OrderedDict()

    def due(self, key: Hashable, now: float) -> bool:
        """Return whether to log the event ``key`` at ``now`` (monotonic seconds). After True the result is False for
        this key until the pause of ``seconds`` is over.
        """
        last = self._logged.get(key)
        if last is not None and now - last < self._seconds:
            return False
        self._logged[key] = now
        self._logged.move_to_end(key)
        if len(self._logged) > self._most:
            self._logged.popitem(last=False)
        return True
