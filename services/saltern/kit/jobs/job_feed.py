"""Passes the events of jobs and runners to the requests that wait for them, on an asyncio loop.

A return may come before the answer to the publication, from which its request learns the JID. So while publications are on their
way, events of jobs for which nobody waits are kept for a moment: no request has to read the job cache for them.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from saltern.kit.links.event_bus import unpack

#: Receives (tag, data) of the events of one job.
JobEvents: TypeAlias = Callable[[str, Mapping[str, object]], None]

#: Most early events that are kept, most bytes of them, and for how many seconds.
_MOST, _MOST_BYTES, _SECONDS = 5000, 8 * 1024 * 1024, 10.0


class _Early(NamedTuple):
    """An event of a job for which nobody waits yet, packed or not, with its place in the order in which events came."""

    number: int
    at: float
    jid: str
    tag: str
    content: bytes | Mapping[str, object]
    size: int


class JobFeed:
    """Passes events of the master's bus to the requests that wait for a job."""

    def __init__(self, *, whole: bool = False) -> None:
        """Create a feed. ``whole``: ``receive`` gets every event of jobs and runners, so that early ones can be kept."""
        self._jobs: dict[str, set[JobEvents]] = {}
        self._whole = whole
        #: Publications and starts of runners that are on their way.
        self._expected = 0
        self._numbers = itertools.count(1)
        #: Events by the order in which they came, and by JID.
        self._order: deque[_Early] = deque()
        self._early: dict[str, list[_Early]] = {}
        self._bytes = 0
        #: Number of the newest early event that was dropped.
        self._dropped = 0

    def wait_for(self, jid: str, receiver: JobEvents) -> None:
        """Call ``receiver`` for each event of the job or runner ``jid``, until ``forget`` is called for them."""
        self._jobs.setdefault(jid, set()).add(receiver)

    def forget(self, jid: str, receiver: JobEvents) -> None:
        """Stop calling ``receiver`` for the events of the job or runner ``jid``."""
        receivers = self._jobs.get(jid, set())
        receivers.discard(receiver)
        if not receivers:
            self._jobs.pop(jid, None)

    def is_awaited(self, tag: str) -> bool:
        """Return whether a request waits for the job or runner in the tag ``salt/job/<jid>/...`` or
        ``salt/run/<jid>/...``.
        """
        return _jid_of(tag) in self._jobs

    def deliver(self, tag: str, data: Mapping[str, object], size: int = 0) -> None:
        """Call the receivers that wait for the event's job or runner with its ``tag`` and ``data``. If nobody waits, keep
        the event for ``early`` while a publication is on its way.

        ``size``: approximate size of the event in bytes, which counts towards the limit of kept events.
        """
        jid = _jid_of(tag)
        for receiver in list(self._jobs.get(jid, ())):
            receiver(tag, data)
        self._keep_early(jid, tag, data, size)

    def receive(self, tag: str, frame: bytes) -> None:
        """Pass one packed event to the requests that wait for its job or runner. It is unpacked only if there is one."""
        jid = _jid_of(tag)
        if jid not in self._jobs:
            self._keep_early(jid, tag, frame, len(frame))
        elif (event := unpack(frame)) is not None:
            self.deliver(*event)

    @contextlib.contextmanager
    def expecting(self) -> Iterator[int]:
        """Keep the events of jobs for which nobody waits during the ``with`` block, which publishes a job. It gets the number from
        which on events are kept, for ``early``.
        """
        self._expected += 1
        try:
            yield next(self._numbers)
        finally:
            self._expected -= 1
            if not self._expected:
                self._order.clear()
                self._early.clear()
                self._bytes = 0

    def early(self, jid: str, since: int) -> list[tuple[str, Mapping[str, object]]] | None:
        """Return the events (tag, data) of a job that came since the number that ``expecting`` gave; None if some may be
        missing.
        """
        if not self._whole or since <= self._dropped:
            return None
        found: list[tuple[str, Mapping[str, object]]] = []
        for each in self._early.get(jid, ()):
            event = unpack(each.content) if isinstance(each.content, bytes) else (each.tag, each.content)
            if event is not None:
                found.append(event)
        return found

    def _keep_early(self, jid: str, tag: str, content: bytes | Mapping[str, object], size: int) -> None:
        if not (jid and self._expected and self._whole) or jid in self._jobs:
            return
        event = _Early(next(self._numbers), time.monotonic(), jid, tag, content, size)
        self._order.append(event)
        self._early.setdefault(jid, []).append(event)
        self._bytes += size
        while self._order and (
            len(self._order) > _MOST or self._bytes > _MOST_BYTES or self._order[0].at < event.at - _SECONDS
        ):
            old = self._order.popleft()
            self._dropped = old.number
            self._bytes -= old.size
            of_job = self._early[old.jid]
            del of_job[0]
            if not of_job:
                del self._early[old.jid]


def _jid_of(tag: str) -> str:
    parts = tag.split("/", 3)
    return parts[2] if len(parts) > 2 and parts[0] == "salt" and parts[1] in ("job", "run") else ""
