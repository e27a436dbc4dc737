"""A sender's connections to the event publishers: one, or several that each get every event.

Where there are several, events carry an origin (``event_order``). The events of the last seconds are kept: a connection that was
lost may have swallowed some, so they are sent again over the next one, and the event publisher drops those that it had.
"""

from __future__ import annotations

import os
import time
from collections import deque
from dataclasses import dataclass

import zmq

from saltern.kit.config.master import MasterOptions
from saltern.kit.links import frames
from saltern.kit.links.addresses import Addresses, hosts_of
from saltern.kit.links.event_order import NAME_BYTES, origin
from saltern.kit.links.sockets import LinkConnection, LinkKeys

#: Bounds of the events that are kept to be sent again.
KEPT_SECONDS = 10.0
KEPT_EVENTS = 2_000
KEPT_BYTES = 4 * 1024 * 1024

#: Milliseconds for queued events to leave when a sender ends.
_LINGER = 500


class Kept:
    """The events of the last seconds, within bounds: messages of two frames."""

    def __init__(self, seconds: float = KEPT_SECONDS, events: int = KEPT_EVENTS, size: int = KEPT_BYTES) -> None:
        self._seconds, self._events, self._size = seconds, events, size
        self._entries: deque[tuple[float, list[bytes]]] = deque()
        self._bytes = 0

    def add(self, message: list[bytes], now: float) -> None:
        """Keep a message, and drop those that are too old or too many."""
        self._entries.append((now, message))
        self._bytes += len(message[0])
        while (
            len(self._entries) > self._events or self._bytes > self._size or self._entries[0][0] < now - self._seconds
        ):
            self._bytes -= len(self._entries.popleft()[1][0])
            if not self._entries:
                return

    def since(self, now: float) -> list[list[bytes]]:
        """Return the messages that are not too old at ``now``, oldest first."""
        return [message for at, message in self._entries if at >= now - self._seconds]


@dataclass(slots=True, eq=False)
class _Link:
    socket: zmq.Socket[bytes]
    connection: LinkConnection
    #: Number of connections that stood when events were last sent.
    times: int = 0
    #: Whether events are sent at once; False: what is kept is sent when the connection stands again.
    live: bool = True
    opened_at: float = 0.0


class EventLinks:
    """The connections of one sender. Sending never waits."""

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], options: MasterOptions, keys: LinkKeys, queued: int
    ) -> None:
        """Connect to every event publisher. ``queued``: events that wait for each of them at most."""
        self._context, self._options, self._keys, self._queued = context, options, keys, queued
        self._addresses = Addresses(hosts_of(options.eventpublisher_host))
        self._hosts: tuple[str, ...] = ()
        self._links: dict[str, _Link] = {}
        #: Name of this sender; empty while there is one event publisher, and events have no origin.
        self._name = b""
        self._number = 0
        self._kept = Kept()
        self._use_addresses()

    def send(self, frame: bytes) -> bool:
        """Send an event to every event publisher. Return False if none could take it."""
        if self._hosts is not self._addresses.current:
            self._use_addresses()
        if not self._name:
            (link,) = self._links.values()
            link.connection.follow()
            return frames.send_now(link.socket, [frame])
        self.follow()
        self._number += 1
        message = [frame, origin(self._name, self._number)]
        self._kept.add(message, time.monotonic())
        # No `any`: each of them gets the event.
        return bool([link for link in self._links.values() if link.live and frames.send_now(link.socket, message)])

    def follow(self) -> None:
        """Send what a lost connection may have swallowed over the next one. Call it now and then if no event is sent."""
        if not self._name:
            return
        now = time.monotonic()
        for link in self._links.values():
            link.connection.look()
            away = not link.connection.up and (link.times or now - link.opened_at > KEPT_SECONDS)
            if link.live and away:
                # What waits for the old connection would arrive behind what came later, or much too late.
                link.live = False
                link.socket.setsockopt(zmq.LINGER, 0)
                link.connection.reconnect()
                link.socket.setsockopt(zmq.LINGER, _LINGER)
            elif link.connection.follow():
                link.live = False
            if link.connection.up and link.connection.times != link.times:
                if link.times or not link.live:
                    for message in self._kept.since(now):
                        frames.send_now(link.socket, message)
                link.times, link.live = link.connection.times, True

    def close(self) -> None:
        """Close the connections; wait at most half a second until queued events are sent."""
        self._addresses.close()
        for link in self._links.values():
            link.connection.close()

    def _use_addresses(self) -> None:
        """Connect to new event publishers, and leave those whose address is gone."""
        self._hosts = self._addresses.current
        if len(self._hosts) > 1 and not self._name:
            self._name = os.urandom(NAME_BYTES)
        for host in [host for host in self._links if host not in self._hosts]:
            self._links.pop(host).connection.close()
        for host in self._hosts:
            if host not in self._links:
                socket = self._context.socket(zmq.PUSH)
                socket.setsockopt(zmq.SNDHWM, self._queued)
                socket.setsockopt(zmq.LINGER, _LINGER)
                connection = LinkConnection(socket, "event_pull", self._options, self._keys, host)
                self._links[host] = _Link(socket, connection, opened_at=time.monotonic())
                if self._name:
                    for message in self._kept.since(time.monotonic()):
                        frames.send_now(socket, message)
