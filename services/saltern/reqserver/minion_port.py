"""Port 4506: connections of minions, on plain sockets. One thread and no queue: a request is passed on as soon as it
is complete.

The resources that strangers can occupy are bounded. If there are too many connections, the one that was silent longest
is closed. If incomplete requests have too many bytes, the connection with the oldest one is closed. A connection whose
answers are not read is not read either. For one address, new connections above a rate are closed at once. Above a rate
of requests, the address's connections are not read until it is within the rate again, so its requests wait in its own
machine.

Source: docs/protocol.md#request-framing
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import resource
import select
import socket
import struct
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from saltern.kit.config.reading import ConfigError, PortTaken
from saltern.kit.links.peer_network import network_of
from saltern.kit.process.rate_limit import Rate, RateLimiter
from saltwire.zmtp import RequestConnection, ZmtpFault, reply_header

#: Bytes that are read at once from one connection.
_READ = 256 * 1024

#: Connections whose data is read in one round.
_ROUND = 100

#: Connections that are accepted in one round.
_ACCEPTED = 100

#: Seconds for the handshake.
_HANDSHAKE = 30.0

#: Bytes of answers that wait above which a connection is not read.
_UNREAD = 1024 * 1024

#: File descriptors that are left for other purposes than connections.
_SPARE = 64

#: Connections that the kernel keeps until they are accepted. Source: docs/protocol.md#request-framing
_BACKLOG = 1000

#: Seconds of its rates that an address may use at once: a fleet behind one address may connect anew.
ADDRESS_BURST = 30.0

#: Seconds after which a connection that is not read is looked at again.
_PAUSE = 1.0

#: Addresses over a rate that are remembered until they are reported.
_MOST_LIMITED = 100

#: Seconds that a minion's connection must have lasted so that its end means that the minion has gone: a process of one job may
#: have a connection of its own, and minions of old releases have no other.
_LASTING = 10.0

#: Seconds in which a minion may connect again before its end is reported.
_GRACE = 1.0

#: A connection is closed by a reset: nothing of it stays in this machine.
_RESET = struct.pack("ii", 1, 0)

#: TCP keepalive: a machine that vanished is noticed after about two minutes.
_KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)


@dataclass(slots=True, eq=False)
class _Peer:
    socket: socket.socket
    address: str
    route: bytes
    protocol: RequestConnection
    #: Until when the handshake must be complete.
    deadline: float
    #: What the poller reports.
    events: int = select.EPOLLIN
    #: Bytes of an incomplete request as of the last read.
    held: int = 0
    #: What the rates count it by.
    network: str = ""
    #: Whether it is not read because its address is over its rate.
    paused: bool = False
    #: When the connection was accepted.
    since: float = 0.0
    #: The minion whose proved request came over this connection; empty if none did yet.
    minion: str = ""


class Arrived(NamedTuple):
    """A message that arrived on port 4506: its connection, its sender's address, and the request's bytes (``payload``).

    ``payload`` is None for a message that is no request.
    """

    route: bytes
    payload: bytes | None
    address: str


class MinionPort:
    """The listening socket of port 4506 and all connections of minions."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        max_bytes: int,
        max_held: int,
        most: int = 0,
        connections_per_second: float = 0,
        requests_per_second: float = 0,
        shared: bool = False,
    ) -> None:
        """Listen on port 4506. ``max_bytes``: largest request; ``max_held``: bytes of all incomplete requests; ``most``: number of
        connections, 0 for as many as the process may have; ``connections_per_second`` and ``requests_per_second``: rates of one
        address over more than ADDRESS_BURST seconds, 0: unlimited; ``shared``: other processes of the same user may listen on the
        port, too, and the kernel gives each new connection to one of them. Raises ConfigError.
        """
        self._connections = RateLimiter(Rate(connections_per_second, ADDRESS_BURST))
        self._requests = RateLimiter(Rate(requests_per_second, ADDRESS_BURST))
        #: Connections that are not read, and when they are again; the time rises.
        self._paused: OrderedDict[_Peer, float] = OrderedDict()
        #: Map of (limit, address) to the number of connections that were refused or not read since this was emptied.
        self.limited: Counter[tuple[str, str]] = Counter()
        self._max_bytes, self._max_held = max_bytes, max(max_held, 2 * max_bytes)
        self._most = most or max(16, _descriptors() - _SPARE)
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._listener = socket.create_server((host, port), family=family, backlog=_BACKLOG, reuse_port=shared)
        except (OSError, OverflowError) as error:
            kind = PortTaken if getattr(error, "errno", None) == errno.EADDRINUSE else ConfigError
            raise kind(f"ret_port: cannot listen on {host}:{port}: {error}") from error
        self._listener.setblocking(False)
        self._epoll = select.epoll()
        self._epoll.register(self._listener, select.EPOLLIN)
        #: By file descriptor; the one that was silent longest comes first.
        self._peers: OrderedDict[int, _Peer] = OrderedDict()
        self._by_route: dict[bytes, _Peer] = {}
        #: Connections without a complete handshake, and with an incomplete request, oldest first.
        self._shaking: OrderedDict[_Peer, None] = OrderedDict()
        self._holding: OrderedDict[_Peer, None] = OrderedDict()
        self._held = 0
        self._routes = itertools.count(1)
        #: Minion -> number of its open connections.
        self._open: Counter[str] = Counter()
        #: Minion without an open connection -> when its last one ended.
        self._ended: dict[str, float] = {}
        #: Number of connections that were closed because the peer broke the protocol or a bound.
        self.closed = 0

    @property
    def port(self) -> int:
        """The number of the port on which minions connect."""
        number: int = self._listener.getsockname()[1]
        return number

    def __len__(self) -> int:
        return len(self._peers)

    def fileno(self) -> int:
        """Return the file descriptor that is readable when ``arrived`` has something to do."""
        return self._epoll.fileno()

    @property
    def waits(self) -> bool:
        """Whether ``tick`` is due soon: a handshake is under way, or a connection is paused."""
        return bool(self._shaking or self._paused)

    def arrived(self, now: float) -> Iterator[Arrived]:
        """Read the received bytes once from each of some connections, and yield each complete request as Arrived."""
        for number, events in self._epoll.poll(0, _ROUND):
            if number == self._listener.fileno():
                self._accept(now)
                continue
            peer = self._peers.get(number)
            if peer is None:
                continue
            if events & select.EPOLLOUT:
                self._flush(peer)
            if events & ~select.EPOLLOUT and peer.route in self._by_route:
                if self._requests.wait(peer.network, now) > 0:
                    self._pause(peer, events, now)
                    continue
                yield from self._read(peer, now)

    def minion_of(self, route: bytes) -> str:
        """Return the id of the minion that verifiably sent a request over the connection with this route; empty text
        if that is not known of any minion.
        """
        peer = self._by_route.get(route)
        return peer.minion if peer is not None else ""

    def bind(self, route: bytes, minion: str) -> None:
        """Record that a worker has verified that this minion sent a request over the connection with this route."""
        peer = self._by_route.get(route)
        if peer is not None and not peer.minion:
            peer.minion = minion
            self._open[minion] += 1
            self._ended.pop(minion, None)

    def connected(self) -> list[str]:
        """Return the ids of all minions with an open connection."""
        return list(self._open)

    def left(self, now: float) -> dict[str, float]:
        """Return {minion id: seconds since its last connection ended} for minions without an open connection. The end
        of a connection is reported once, a moment after it.
        """
        gone = {minion: now - ended for minion, ended in self._ended.items() if now - ended >= _GRACE}
        for minion in gone:
            del self._ended[minion]
        return gone

    def send(self, route: bytes, payload: bytes) -> None:
        """Send a reply to the connection with this route. If the connection is gone, the reply is dropped."""
        peer = self._by_route.get(route)
        if peer is None:
            return
        outgoing = peer.protocol.outgoing
        if outgoing:
            outgoing += reply_header(len(payload))
            outgoing += payload
            self._flush(peer)
            return
        whole = reply_header(len(payload)) + payload
        try:
            sent = peer.socket.send(whole)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self._close(peer)
            return
        if sent < len(whole):
            outgoing += memoryview(whole)[sent:]
            self._flush(peer)

    def tick(self, now: float) -> None:
        """Close connections whose handshake takes too long, and read those again whose address is within its rate."""
        while self._shaking and (peer := next(iter(self._shaking))).deadline < now:
            self._close(peer)
        while self._paused and next(iter(self._paused.values())) <= now:
            peer, _ = self._paused.popitem(last=False)
            peer.paused = False
            self._watch(peer)

    def close(self, linger: float = 0.0) -> None:
        """Close all connections; replies get ``linger`` seconds to leave."""
        self._listener.close()
        deadline = time.monotonic() + linger
        for peer in list(self._peers.values()):
            if peer.protocol.outgoing and (left := deadline - time.monotonic()) > 0:
                with contextlib.suppress(OSError):
                    peer.socket.settimeout(left)
                    peer.socket.sendall(peer.protocol.outgoing)
            self._close(peer)
        self._epoll.close()

    def _accept(self, now: float) -> None:
        for _ in range(_ACCEPTED):
            try:
                accepted, address = self._listener.accept()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM) and self._peers:
                    self._evict()
                    continue
                return
            network = network_of(address[0])
            if not self._connections.admit(network, now, 1.0):
                self._limit("connections", network)
                with contextlib.suppress(OSError):
                    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                accepted.close()
                continue
            if len(self._peers) >= self._most:
                self._evict()
            accepted.setblocking(False)
            with contextlib.suppress(OSError):
                for level, name, value in _KEEPALIVE:
                    accepted.setsockopt(level, name, value)
            route = b"%d" % next(self._routes)
            protocol = RequestConnection(self._max_bytes)
            peer = _Peer(accepted, address[0], route, protocol, now + _HANDSHAKE, network=network, since=now)
            self._peers[accepted.fileno()] = self._by_route[route] = peer
            self._shaking[peer] = None
            self._epoll.register(accepted, select.EPOLLIN)
            self._flush(peer)

    def _evict(self) -> None:
        self.closed += 1
        self._close(next(iter(self._peers.values())))

    def _read(self, peer: _Peer, now: float) -> Iterator[Arrived]:
        try:
            data = peer.socket.recv(_READ)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._close(peer)
            return
        self._peers.move_to_end(peer.socket.fileno())
        count = 0
        try:
            for payload in peer.protocol.feed(data):
                count += 1
                yield Arrived(peer.route, payload, peer.address)
        except ZmtpFault:
            self._requests.charge(peer.network, now, count + 1.0)
            self.closed += 1
            self._close(peer)
            return
        if count:
            self._requests.charge(peer.network, now, count)
        if peer.route not in self._by_route:
            # The caller's reply found the connection broken.
            return
        if peer in self._shaking and peer.protocol.ready:
            del self._shaking[peer]
        if (held := peer.protocol.held) != peer.held:
            self._hold(peer, held)
        if peer.protocol.outgoing:
            self._flush(peer)

    def _hold(self, peer: _Peer, held: int) -> None:
        self._held += held - peer.held
        peer.held = held
        if held:
            self._holding.setdefault(peer)
        else:
            self._holding.pop(peer, None)
        while self._held > self._max_held and len(self._holding) > 1:
            self.closed += 1
            self._close(next(iter(self._holding)))

    def _flush(self, peer: _Peer) -> None:
        outgoing = peer.protocol.outgoing
        try:
            while outgoing:
                del outgoing[: peer.socket.send(outgoing)]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._close(peer)
            return
        self._watch(peer)

    def _watch(self, peer: _Peer) -> None:
        """Set the events that the poller reports for a connection: readable unless it is paused, writable if a reply waits."""
        outgoing = peer.protocol.outgoing
        reading = 0 if peer.paused or len(outgoing) > _UNREAD else select.EPOLLIN
        events = reading | (select.EPOLLOUT if outgoing else 0)
        if events != peer.events:
            peer.events = events
            self._epoll.modify(peer.socket, events)

    def _pause(self, peer: _Peer, events: int, now: float) -> None:
        """Do not read a connection for _PAUSE seconds, because its address is over its rate of requests."""
        if events & (select.EPOLLHUP | select.EPOLLERR):
            # The poller would report a broken connection for ever.
            self._close(peer)
            return
        self._limit("requests", peer.network)
        self._paused[peer] = now + _PAUSE
        peer.paused = True
        self._watch(peer)

    def _limit(self, limit: str, network: str) -> None:
        key = (limit, network)
        self.limited[
            key if key in self.limited or len(self.limited) < _MOST_LIMITED else (limit, "further addresses")
        ] += 1

    def _close(self, peer: _Peer) -> None:
        if self._by_route.pop(peer.route, None) is None:
            return
        self._peers.pop(peer.socket.fileno(), None)
        if peer.minion:
            self._end(peer)
        self._shaking.pop(peer, None)
        self._holding.pop(peer, None)
        self._paused.pop(peer, None)
        self._held -= peer.held
        peer.held = 0
        with contextlib.suppress(OSError):
            self._epoll.unregister(peer.socket)
        peer.socket.close()

    def _end(self, peer: _Peer) -> None:
        """Record that a connection of a minion has ended."""
        self._open[peer.minion] -= 1
        if self._open[peer.minion] <= 0:
            del self._open[peer.minion]
            now = time.monotonic()
            if now - peer.since >= _LASTING:
                self._ended[peer.minion] = now


def _descriptors() -> int:
    """Raise this process's limit of open file descriptors as far as the system permits, and return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
