"""Passes the events of jobs and runners to the requests that wait for them, on an asyncio loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

#: Receives (tag, data) of the events of one job.
JobEvents: TypeAlias = Callable[[str, Mapping[str, object]], None]


class JobFeed:
    """Passes events of the master's bus to the requests that wait for a job."""

    def __init__(self) -> None:
        self._jobs: dict[str, set[JobEvents]] = {}

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
        return self._jid_of(tag) in self._jobs

    def deliver(self, tag: str, data: Mapping[str, object]) -> None:
        """Pass one event to the requests that wait for its job or runner."""
        for receiver in list(self._jobs.get(self._jid_of(tag), ())):
            receiver(tag, data)

    @staticmethod
    def _jid_of(tag: str) -> str:
        parts = tag.split("/", 3)
        return parts[2] if len(parts) > 2 and parts[0] == "salt" else ""
