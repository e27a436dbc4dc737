"""What every connection of a client to a master has in common, and the error of a connection that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from saltern.client.addresses import Login
from saltern.kit.jobs.job_feed import JobFeed
from saltern.kit.jobs.job_runs import JobLimits, RequestLink

#: Most events that wait for a reader; it loses further ones.
QUEUED = 10_000


class Event(NamedTuple):
    """An event of the master's bus: its tag and its data."""

    tag: str
    data: Mapping[str, object]


@dataclass(eq=False)
class Listener:
    """A reader's queue of events whose tags start with ``prefix``. ``lost`` counts events that found the queue full."""

    prefix: str
    queue: asyncio.Queue[Event] = field(default_factory=lambda: asyncio.Queue(QUEUED))
    lost: int = 0

    def put(self, event: Event) -> None:
        """Queue an event if its tag starts with the prefix."""
        if event.tag.startswith(self.prefix):
            try:
                self.queue.put_nowait(event)
            except asyncio.QueueFull:
                self.lost += 1


class Limits(JobLimits, Protocol):
    """The master's options that a client needs."""

    @property
    def timeout(self) -> float:
        """Seconds until silent minions are asked whether they still run a job."""


class Connection(RequestLink, Protocol):
    """A connection to a master, by port 4507 or by the API, which belongs to one asyncio loop."""

    @property
    def where(self) -> str:
        """Address of the master, for messages."""

    @property
    def trouble(self) -> str:
        """Why the master and the client do not accept each other's keys; "" if they do."""

    @property
    def limits(self) -> Limits:
        """Time limits of the master."""

    @property
    def feed(self) -> JobFeed:
        """Passes the events of jobs to those who wait for them."""

    async def hear_jobs(self, rights: Mapping[str, object]) -> bool:
        """Begin to receive the events of jobs; return whether they arrive."""

    async def listen(self, prefix: str, rights: Mapping[str, object]) -> Listener:
        """Return a new listener for events whose tags start with the prefix. Raises ControlError, ControlTimeout."""

    def leave(self, listener: Listener) -> None:
        """Stop to queue events for a listener."""

    def rights(self, token: str) -> dict[str, Any]:
        """Return the fields of a command that say for whom it acts: a user with this token, or "" for the key."""

    async def sign_in(self, login: Login) -> tuple[str, float]:
        """Sign in a user and return (token, Unix time at which it expires). Raises ControlError, ControlTimeout."""

    async def cached_returns(self, jid: str, rights: Mapping[str, object]) -> Mapping[str, Mapping[str, object]]:
        """Return {minion id: return} of a job from the job cache. Raises ControlError, ControlTimeout."""

    async def close(self) -> None:
        """End the connection."""
