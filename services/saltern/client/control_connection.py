"""A client's connection to port 4507 and to the event bus (4513), with the key of the operators' commands."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import zmq

from saltern.client.addresses import Control, Login
from saltern.client.connection import Event, Listener
from saltern.kit.command.command_line import user_name
from saltern.kit.config.master import MasterOptions, key_directory, load_client
from saltern.kit.jobs.job_feed import JobFeed
from saltern.kit.links.control import CONTROL_PATIENCE
from saltern.kit.links.event_bus import unpack
from saltern.kit.links.master_link import TICK, BusReader, MasterLink
from saltern.kit.links.sockets import LinkKeys

#: Seconds to wait until the event bus confirms a subscription; after that the job cache is read instead.
_BUS_PATIENCE = 2.0

#: Prefixes of the tags that waits for jobs and runners need.
_JOBS = ("salt/job/", "salt/run/")

#: Seconds for a sign-in: a directory may take its time.
_SIGN_IN = 60.0


class ControlConnection:
    """Connection to port 4507 and to the event bus. It belongs to the asyncio loop that is running when it is made."""

    def __init__(self, address: Control) -> None:
        """Connect. Raises ConfigError if the configuration cannot be read or keys are missing."""
        self.limits = options = _options(address)
        self._address = address
        keys = LinkKeys.load(key_directory(options, "cli", address.config_dir or None))
        self.feed = JobFeed(whole=True)
        self._listeners: set[Listener] = set()
        self._user = address.user or options.user or user_name(os.environ, os.geteuid())
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        self._link = MasterLink(context, options, keys)
        self._bus = BusReader(context, options, keys, self._receive, ())
        self._hears_jobs: bool | None = None
        self._link.start()
        self._bus.start()
        self._ticking = asyncio.get_running_loop().create_task(self._tick())

    @property
    def where(self) -> str:
        """Address of the master, for messages."""
        return self._link.endpoint

    @property
    def trouble(self) -> str:
        """Why the handshake with the master failed; "" if it did not."""
        return self._link.trouble

    async def call(self, cmd: str, *, timeout: float = CONTROL_PATIENCE, once: bool = False, **fields: object) -> Any:
        """Send a command and return the value of the answer. Raises ControlError, ControlTimeout."""
        # A command that takes longer than usual, such as a sign-in, says so.
        patience = self._address.patience if timeout == CONTROL_PATIENCE else timeout
        return await self._link.call(cmd, timeout=patience, once=once, **fields)

    async def hear_jobs(self, rights: Mapping[str, object]) -> bool:
        """Subscribe to the events of jobs at the first call; return whether the bus confirmed it."""
        if self._hears_jobs is None:
            self._hears_jobs = False
            self._bus.subscribe(*_JOBS)
            self._hears_jobs = await self._bus.ready(_BUS_PATIENCE)
        return self._hears_jobs or self._bus.heard

    async def listen(self, prefix: str, rights: Mapping[str, object]) -> Listener:
        """Return a new listener for events whose tags start with the prefix. The key decides who may listen."""
        listener = Listener(prefix)
        self._listeners.add(listener)
        self._bus.subscribe(prefix)
        await self._bus.ready(_BUS_PATIENCE)
        return listener

    def leave(self, listener: Listener) -> None:
        """Stop to queue events for a listener."""
        if listener in self._listeners:
            self._listeners.discard(listener)
            self._bus.unsubscribe(listener.prefix)

    def rights(self, token: str) -> dict[str, Any]:
        """Return the fields of a command that say for whom it acts."""
        return {"token": token} if token else {"user": self._user}

    async def sign_in(self, login: Login) -> tuple[str, float]:
        """Sign in a user; return (token, Unix time at which it expires)."""
        fields = {"username": login.username, "password": login.password, "eauth": login.eauth}
        answer = await self._link.call("login", timeout=max(_SIGN_IN, self._address.patience), once=True, **fields)
        return str(answer["token"]), float(answer["expire"])

    async def cached_returns(self, jid: str, rights: Mapping[str, object]) -> Mapping[str, Mapping[str, object]]:
        """Return {minion id: return} of a job from the job cache."""
        fields: dict[str, Any] = {"jid": jid, **rights}
        found: Mapping[str, Mapping[str, object]] = await self.call("job_returns", **fields)
        return found

    async def close(self) -> None:
        """Close the connections."""
        self._ticking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._ticking
        self._link.close()
        self._bus.close()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            with contextlib.suppress(zmq.ZMQError):
                self._link.tick()
                self._bus.tick()

    def _receive(self, tag: str, frame: bytes) -> None:
        self.feed.receive(tag, frame)
        wanted = [each for each in self._listeners if tag.startswith(each.prefix)]
        if wanted and (event := unpack(frame)) is not None:
            for listener in wanted:
                listener.put(Event(*event))


def _options(address: Control) -> MasterOptions:
    options = load_client(address.config_dir or None)
    given: dict[str, Any] = {
        "reqserver_host": address.host,
        "eventpublisher_host": address.host,
        "control_port": address.port,
        "key_dir": address.key_dir,
    }
    return dataclasses.replace(options, **{name: value for name, value in given.items() if value})
