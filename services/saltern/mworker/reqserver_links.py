"""A worker's connections to the reqservers: one, or several of which one at a time gives it requests (``home``).

With one reqserver the worker waits for that socket alone. What it says more than a worker of the last release does, a reqserver of
that release ignores.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import zmq

from saltern.kit.config.master import MasterOptions
from saltern.kit.links import frames
from saltern.kit.links.addresses import Addresses
from saltern.kit.links.socket_epoll import SocketEpoll
from saltern.kit.links.sockets import FOLLOW_SECONDS, LinkConnection, LinkKeys
from saltern.kit.links.worker_link import (
    AWAY,
    BYE,
    CALL,
    DEFERRED,
    HUNG,
    NOT_READY,
    POOL,
    PULSE,
    WRONG_POOL,
    Work,
    read_work,
    ready_frames,
    ready_seconds,
    reply_frames,
)
from saltern.kit.process.metrics import Metrics
from saltern.kit.process.process import Stop
from saltern.mworker.home import Home

#: Milliseconds for messages to leave when a connection is closed.
_LINGER = 1000

#: Seconds to wait for a request while all connections stand: each request ends the wait, and a lost connection is made anew by
#: libzmq.
_QUIET = 1.0

#: Seconds by which the report that the worker is idle may be early: a wait of a second sometimes ends a little sooner.
_EARLY = 0.05

#: Milliseconds that a hung worker waits for the reqserver's confirmation before it ends.
_HUNG_WAIT = 1_000


@dataclass(slots=True, eq=False)
class _Link:
    host: str
    socket: zmq.Socket[bytes]
    connection: LinkConnection
    #: Number of the socket in the epoll of several reqservers; -1 while there is one.
    number: int = -1
    #: Number of connections that stood when the worker last told this reqserver whether it is idle there.
    told_times: int = 0


@dataclass
class ReqserverLinks:
    """The connections of one worker's main loop to all reqservers."""

    context: zmq.Context[zmq.Socket[bytes]]
    options: MasterOptions
    keys: LinkKeys
    addresses: Addresses
    name: bytes
    #: Pool of this worker; empty: the first reqserver that it meets chooses one.
    pool: bytes
    metrics: Metrics
    #: Whether there are several pools.
    pools_differ: bool = False
    #: Its file descriptor ends the wait for several reqservers.
    stop: Stop = field(default_factory=Stop)
    _links: dict[str, _Link] = field(default_factory=dict)
    _home: Home = field(default_factory=Home)
    #: Number of the time at which this worker is idle at its home; 0 while there is one reqserver.
    _offer: int = 0
    _hosts: tuple[str, ...] = ()
    _next_follow: float = 0.0
    #: When the worker last told all reqservers whether it is idle for them, monotonic seconds. The pulse thread reads it.
    introduced_at: float = 0.0
    #: Whether the worker may be given requests: not before it has begun.
    _begun: bool = False
    #: Waits for the messages of several reqservers, and for what libzmq reports of the connections; None while there is one.
    _epoll: SocketEpoll | None = None
    _by_number: dict[int, _Link] = field(default_factory=dict)
    #: Seconds to wait for a request now, whether the sockets of one reqserver do so, and whether the process was asked to end.
    _patience: float = FOLLOW_SECONDS
    _wait: int = 0
    _hurried: bool = False

    def __post_init__(self) -> None:
        self._use_addresses()

    # -------------------------------------------------------------------------------------------------------------- requests

    def begin(self) -> None:
        """Tell the reqservers that this worker is idle."""
        self._begun = True
        self._introduce_all()

    def receive(self) -> Work | None:
        """Return the next request; None if none arrives within FOLLOW_SECONDS, or within a second where all is well."""
        if self._offer:
            return self._receive_of_several()
        link = self._links[self._home.current]
        try:
            # A receive with a timeout needs half the system calls of a poller.
            message = frames.receive(link.socket)
        except zmq.Again:
            self._idle()
            return None
        return self._work_of(link, message)

    def answer(self, work: Work, payload: bytes, sender: str) -> None:
        """Send the reply to a request. ``sender``: id of the minion that verifiably sent it, where that was asked for."""
        there = self._home.done(time.monotonic()) if self._offer else ""
        minion = sender if work.asks_sender else ""
        self._send(work.host, reply_frames(work, payload, minion, last=bool(there)))
        if there:
            self._go(there)

    def wrong_pool(self, work: Work, pool: str) -> None:
        """Give a request back that belongs to another pool."""
        self._home.done(time.monotonic())
        self._send(work.host, [WRONG_POOL, work.ticket, pool.encode()])

    def defer(self, work: Work) -> None:
        """Tell the reqserver that another process will answer a request."""
        self._home.done(time.monotonic())
        self._send(work.host, [DEFERRED, work.ticket])

    def answer_later(self, work: Work, payload: bytes) -> None:
        """Send the reply to a deferred request, if its reqserver is still there."""
        self._send(work.host, reply_frames(work, payload))

    def not_ready(self, why: str) -> None:
        """Tell the reqservers why this worker is not ready."""
        for host in self._links:
            self._send(host, [NOT_READY, why.encode()])

    def bye(self) -> None:
        """Tell the reqservers that this worker ends."""
        for host in self._links:
            self._send(host, [BYE])

    def close(self) -> None:
        """Close all connections."""
        for link in self._links.values():
            link.connection.close()
        if self._epoll is not None:
            self._epoll.close()

    # ----------------------------------------------------------------------------------------------------------- connections

    def follow(self) -> None:
        """Look after the connections, if that is due: replaced keys, lost ones, other addresses. Call it between two requests."""
        now = time.monotonic()
        if now < self._next_follow:
            return
        self._next_follow = now + (FOLLOW_SECONDS if self._offer else FOLLOW_SECONDS / 2)
        if self.addresses.current != self._hosts:
            self._use_addresses()
        if len(self._links) > len(self._hosts):
            self._leave_gone()
        for link in list(self._links.values()):
            if self._epoll is not None:
                self._epoll.used(link.number)
            # A request that has arrived meanwhile is done first: a new connection would lose it.
            if link.host == self._home.current and link.socket.poll(0):
                continue
            renewed = link.connection.follow()
            self._home.connected(link.host, up=link.connection.up)
            self.metrics.worker_links.labels(link.host).set(link.connection.up)
            # The one reqserver gets what waits for its first connection already.
            if link.connection.times != link.told_times if self._offer else renewed:
                self._introduce(link)

    def trouble(self) -> str | None:
        """Return why no reqserver can give this worker requests, if there are several; else None."""
        if len(self._hosts) > 1 and not self._home.up:
            return f"none of the reqservers is connected ({', '.join(self._hosts)})"
        return None

    @property
    def link_keys(self) -> LinkKeys:
        """The keys with which the connection to the home was made."""
        return self._links[self._home.current].connection.keys

    def _use_addresses(self) -> None:
        """Connect to new addresses, and close the connections to those that are gone."""
        self._hosts = self.addresses.current
        for host in self._hosts:
            if host not in self._links:
                self._links[host] = self._opened(host)
        if len(self._links) > 1 and not self._offer:
            self._offer = 1
        if not self._home.current:
            # All workers ask the same one for their pool, so that each pool gets its share.
            first = min(self._hosts) if self.pools_differ and not self.pool else self._home.choose(self._hosts)
            self._home.arrive(first, time.monotonic())
        if self._offer:
            for link in self._links.values():
                self._listen(link)
        if self._begun:
            self._introduce_all()

    def _leave_gone(self) -> None:
        """Close the connections that are lost and whose address is no longer one of a reqserver."""
        for host in [host for host, link in self._links.items() if host not in self._hosts and not link.connection.up]:
            self._home.connected(host, up=False)
            if host == self._home.current:
                self._go(self._home.next(time.monotonic()) or self._home.choose(self._hosts))
            link = self._links.pop(host)
            if self._epoll is not None:
                self._epoll.remove(link.number)
                del self._by_number[link.number]
            link.connection.close()
            self.metrics.worker_links.forget(host)

    def _opened(self, host: str) -> _Link:
        socket = self.context.socket(zmq.DEALER)
        socket.setsockopt(zmq.ROUTING_ID, self.name)
        socket.setsockopt(zmq.LINGER, _LINGER)
        socket.setsockopt(zmq.RCVTIMEO, int(FOLLOW_SECONDS * 1000))
        return _Link(host, socket, LinkConnection(socket, "workers", self.options, self.keys, host))

    def _introduce_all(self) -> None:
        self.introduced_at = time.monotonic()
        for link in self._links.values():
            self._introduce(link, again=True)

    def _introduce(self, link: _Link, *, again: bool = False) -> None:
        """Tell a reqserver whether this worker is idle there. ``again``: it may know that already."""
        if not self._begun:
            return
        link.told_times = link.connection.times
        if link.host != self._home.current:
            if self.pool or not self.pools_differ:
                self._send(link.host, [AWAY, self.pool, self._count])
            return
        if self._offer and not again:
            # What was sent over the connection before is lost.
            self._offer += 1
        self._send(link.host, ready_frames(self.pool, self._offer, len(self._hosts)))

    @property
    def _count(self) -> bytes:
        return b"%d" % len(self._hosts)

    def hurry(self) -> None:
        """End the wait for a request at once, and each later one. It may be called by a signal handler in this thread."""
        self._hurried = True
        for link in self._links.values():
            link.socket.setsockopt(zmq.RCVTIMEO, 1)

    def _idle(self) -> None:
        self.follow()
        quiet = len(self._hosts) == len(self._links) and all(link.connection.up for link in self._links.values())
        self._patience = _QUIET if quiet else FOLLOW_SECONDS
        wait = 1 if self._hurried else int(self._patience * 1000)
        if wait != self._wait:
            self._wait = wait
            for link in self._links.values():
                link.socket.setsockopt(zmq.RCVTIMEO, wait)
        if time.monotonic() - self.introduced_at >= ready_seconds(self.options.worker_silence) - _EARLY:
            self._introduce_all()

    def _send(self, host: str, message: Sequence[bytes]) -> None:
        link = self._links.get(host)
        if link is not None:
            # Full is only the queue to a reqserver that is away.
            frames.send_now(link.socket, message)
            if self._epoll is not None:
                self._epoll.used(link.number)

    # --------------------------------------------------------------------------------------------------------------- several

    def _listen(self, link: _Link) -> None:
        """From now on wait for a link's messages and for libzmq's reports of its connection, too. A second call does nothing."""
        if self._epoll is None:
            self._epoll = SocketEpoll()
            self._epoll.add_file(self.stop.fileno())
        if link.number < 0:
            link.number = self._epoll.add(link.socket)
            self._by_number[link.number] = link
            link.connection.report_to(self._epoll)

    def _receive_of_several(self) -> Work | None:
        now = time.monotonic()
        deadline = now + self._patience
        while True:
            if there := self._home.next(now):
                self._send(self._home.current, [AWAY, self.pool, self._count])
                self._go(there)
            work: Work | None = None
            for link in self._readable(min(deadline, self._home.look_at(now)) - now):
                work = self._work_of(link, frames.receive(link.socket)) or work
            if work is not None:
                return work
            now = time.monotonic()
            if now >= deadline or self._hurried:
                self._idle()
                return None
            self.follow()

    def _readable(self, seconds: float) -> list[_Link]:
        """Wait at most ``seconds`` for a message of a reqserver. Return the links whose sockets have one; the list may be empty.

        Also note which connections stand, as libzmq reports it.
        """
        assert self._epoll is not None, "there are several"
        found = []
        for number in self._epoll.wait(max(0.0, seconds)):
            if (link := self._by_number.get(number)) is not None:
                found.append(link)
                continue
            if number == self.stop.fileno():
                # Signals that do not end this process (``cpu_limit``) are reported, too.
                self.stop.clear()
            for link in self._links.values():
                if link.connection.reports == number:
                    self._look(link)
        return found

    def _look(self, link: _Link) -> None:
        """Note whether a connection stands, of which libzmq has reported something."""
        link.connection.look()
        self._home.connected(link.host, up=link.connection.up)
        if link.connection.times != link.told_times:
            self._introduce(link)
        self._patience = FOLLOW_SECONDS

    def _work_of(self, link: _Link, message: Sequence[bytes]) -> Work | None:
        """Return the request in a message of a reqserver; None for other messages, and for a request that this worker must not
        take because it is idle elsewhere.
        """
        work = read_work(message, link.host)
        if work is not None:
            if link.host == self._home.current and work.offer == (b"%d" % self._offer if self._offer else b""):
                self._home.begin()
                return work
            return None
        kind, *rest = message
        if kind == CALL and len(rest) == 1:
            self._home.called(link.host, wanted=rest[0] == b"1")
        elif kind == POOL and len(rest) == 1 and not self.pool:
            self.pool = rest[0]
            self._introduce_all()
        return None

    def _go(self, host: str) -> None:
        """Make ``host`` the home. The one before has been told."""
        self._offer += 1
        self._home.arrive(host, time.monotonic())
        self._introduce(self._links[host], again=True)


class Beats:
    """The connections of a worker's pulse thread to all reqservers."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        options: MasterOptions,
        keys: LinkKeys,
        addresses: Addresses,
        name: bytes,
    ) -> None:
        """Connect to each reqserver. Use the object in one thread."""
        self._context, self._options, self._keys, self._name = context, options, keys, name
        self._addresses = addresses
        self._links: dict[str, _Link] = {}
        self.follow()

    def follow(self) -> None:
        """Connect to new addresses, close the connections to those that are gone, and follow replaced keys."""
        hosts = self._addresses.current
        for host in hosts:
            if host not in self._links:
                socket = self._context.socket(zmq.DEALER)
                socket.setsockopt(zmq.LINGER, 0)
                connection = LinkConnection(socket, "workers", self._options, self._keys, host)
                self._links[host] = _Link(host, socket, connection)
        for host in [host for host in self._links if host not in hosts and not self._links[host].connection.up]:
            self._links.pop(host).connection.close()
        for link in self._links.values():
            link.connection.follow()

    def pulse(self) -> None:
        """Tell all reqservers that this worker lives."""
        self._tell(PULSE)

    def hung(self) -> None:
        """Tell all reqservers that this worker ends because it hangs; wait at most a second for a confirmation.

        The confirmation is optional: a reqserver also gives the request to another worker when this one falls silent.
        """
        self._tell(HUNG)
        poller = zmq.Poller()
        for link in self._links.values():
            poller.register(link.socket, zmq.POLLIN)
        poller.poll(_HUNG_WAIT)

    def close(self) -> None:
        """Close all connections."""
        for link in self._links.values():
            link.connection.close()

    def _tell(self, kind: bytes) -> None:
        for link in self._links.values():
            # A reqserver may not be connected; then it does not need the message.
            frames.send_now(link.socket, [kind, self._name])
