"""Connections to the master on an asyncio loop: requests to port 4507, and events of port 4513.

libzmq makes its file descriptor readable only when its state changes. So all messages that have arrived are read after
each such change and after each send.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import zmq

from saltern.kit.config.master import MasterOptions
from saltern.kit.links.control import (
    CONTROL_PATIENCE,
    RESEND_AFTER,
    ControlTimeout,
    packed_request,
    value_of_answer,
)
from saltern.kit.links.event_bus import PROBE, QUEUED_EVENTS, Replays
from saltern.kit.links.sockets import LinkConnection, LinkKeys

#: Seconds between two looks at the connections: replaced keys, and messages whose signal was missed.
TICK = 0.25

#: Requests that wait for the master at once; further ones are refused.
_MOST_REQUESTS = 5000


def _descriptor(socket: zmq.Socket[bytes]) -> int:
    return int(socket.getsockopt(zmq.FD))


class Busy(Exception):
    """Raised when a request cannot be sent, because too many earlier requests still wait for the master's answer."""


class MasterLink:
    """A client for the master's port 4507 that can have any number of requests in flight. It belongs to one asyncio
    loop.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], options: MasterOptions, keys: LinkKeys) -> None:
        """Connect to the master; ``start`` begins to receive."""
        self._socket = context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.SNDHWM, _MOST_REQUESTS)
        self._connection = LinkConnection(self._socket, "control", options, keys)
        self._ids = itertools.count(1)
        self._waiting: dict[bytes, asyncio.Future[bytes]] = {}
        #: Requests that may be sent again, by their ids.
        self._repeatable: dict[bytes, list[bytes]] = {}

    def start(self) -> None:
        """Begin to receive on the running asyncio loop."""
        asyncio.get_running_loop().add_reader(_descriptor(self._socket), self.receive)

    def close(self) -> None:
        """Close the connection; requests that wait are abandoned."""
        asyncio.get_running_loop().remove_reader(_descriptor(self._socket))
        for future in self._waiting.values():
            future.cancel()
        self._connection.close()

    @property
    def endpoint(self) -> str:
        """Return the address of the reqserver as text, ``tcp://host:port``."""
        return self._connection.endpoint

    @property
    def trouble(self) -> str:
        """Return why the connection has no right handshake: "refused", "wrong server key", or ""."""
        return self._connection.trouble

    def tick(self) -> None:
        """Connect again if a key of the link was replaced or the reqserver is lost, and read the answers that have arrived.
        Call this every TICK seconds.
        """
        if self._connection.is_due() and self._connection.follow():
            for message in list(self._repeatable.values()):
                self._send(message)
        self.receive()

    def receive(self) -> None:
        """Hand each answer that arrived to the request that waits for it."""
        while True:
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            future = self._waiting.get(frames[1]) if len(frames) == 3 else None
            if future is not None and not future.done():
                future.set_result(frames[2])

    async def call(self, cmd: str, *, timeout: float = CONTROL_PATIENCE, once: bool = False, **fields: object) -> Any:
        """Send a command to the master and return the value of the answer.

        ``timeout``: seconds to wait for the answer. ``once``: do not send the request again if no answer comes, for
        commands such as a login that must not be repeated. Raises ControlError, ControlTimeout, and Busy.
        """
        if len(self._waiting) >= _MOST_REQUESTS:
            raise Busy(f"{_MOST_REQUESTS} requests wait for the master")
        request = b"%d-%d" % (os.getpid(), next(self._ids))
        payload = packed_request({"cmd": cmd, **fields})
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[request] = future
        if not once:
            self._repeatable[request] = [b"", request, payload]
        deadline = time.monotonic() + timeout
        try:
            while (left := deadline - time.monotonic()) > 0:
                self._send([b"", request, payload])
                with contextlib.suppress(TimeoutError):
                    patience = left if once else min(left, RESEND_AFTER)
                    return value_of_answer(await asyncio.wait_for(asyncio.shield(future), patience), cmd)
            raise ControlTimeout(self._connection.endpoint, timeout)
        finally:
            del self._waiting[request]
            self._repeatable.pop(request, None)
            future.cancel()

    def _send(self, frames: list[bytes]) -> None:
        try:
            self._socket.send_multipart(frames, zmq.NOBLOCK)
        except zmq.Again:
            # The master refused this key before; it may know it by now.
            self._connection.reconnect()
            with contextlib.suppress(zmq.Again):
                self._socket.send_multipart(frames, zmq.NOBLOCK)
        asyncio.get_running_loop().call_soon(self.receive)


class BusReader:
    """Receives events of the master's bus and passes the tag and the packed bytes of each to a function."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        options: MasterOptions,
        keys: LinkKeys,
        receiver: Callable[[str, bytes], None],
        prefixes: Iterable[str] = ("",),
    ) -> None:
        """Connect to the event publisher. ``receiver`` is called with (tag, packed event) for each event whose tag
        starts with one of ``prefixes``.
        """
        self._socket = context.socket(zmq.SUB)
        self._socket.setsockopt(zmq.RCVHWM, QUEUED_EVENTS)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._connection = LinkConnection(self._socket, "event_pub", options, keys)
        self._receiver = receiver
        self._replays = Replays(self._socket)
        self._probe = b""
        self._confirmed = asyncio.Event()
        self.subscribe(*prefixes)

    @property
    def heard(self) -> bool:
        """Return whether the bus has confirmed the subscriptions."""
        return self._confirmed.is_set()

    def subscribe(self, *prefixes: str) -> None:
        """Subscribe to events whose tags start with one of the prefixes, too; ``ready`` waits for it."""
        for prefix in prefixes:
            self._replays.subscribe(prefix.encode())
        if self._probe:
            self._socket.setsockopt(zmq.UNSUBSCRIBE, self._probe)
        self._probe = PROBE + os.urandom(8).hex().encode()
        self._confirmed.clear()
        self._socket.setsockopt(zmq.SUBSCRIBE, self._probe)

    def unsubscribe(self, prefix: str) -> None:
        """End one subscription to a prefix."""
        self._replays.unsubscribe(prefix.encode())

    async def ready(self, seconds: float) -> bool:
        """Wait until the bus has confirmed the subscriptions, and return True; False after so many seconds."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._confirmed.wait(), seconds)
        return self.heard

    def start(self) -> None:
        """Begin to receive on the running asyncio loop."""
        asyncio.get_running_loop().add_reader(_descriptor(self._socket), self.receive)

    def close(self) -> None:
        """Close the connection to the event publisher."""
        asyncio.get_running_loop().remove_reader(_descriptor(self._socket))
        self._connection.close()

    def tick(self) -> None:
        """Connect again if a key of the link was replaced or the event publisher is lost, and read the events that have
        arrived. Call this every TICK seconds.
        """
        if self._connection.is_due() and self._connection.follow():
            self._replays.ask()
        self._pass_on(self._replays.overdue())
        self.receive()

    def receive(self) -> None:
        """Pass every event that has arrived to the receiver."""
        while True:
            try:
                message = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            if message[0].startswith(PROBE):
                if message[0] == self._probe:
                    self._confirmed.set()
            else:
                self._pass_on(self._replays.take(message))

    def _pass_on(self, events: Sequence[bytes]) -> None:
        for frame in events:
            tag, separator, _ = frame.partition(b"\n\n")
            if separator:
                self._receiver(tag.decode("utf-8", "replace"), frame)
