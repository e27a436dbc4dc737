"""A minion's two ZeroMQ sockets: requests to port 4506 (``RequestSocket``), and publications from port 4505
(``subscribe``). ``Connection`` monitors whether a socket is connected.

Source: docs/protocol.md#request-framing, docs/protocol.md#publish-framing
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable, Iterator

import zmq

#: Event number and its value in native byte order, see zmq_socket_monitor(3). pyzmq's own parser would import asyncio into
#: every minion.
_EVENT = struct.Struct("=hi")


class Connection:
    """Monitors whether a ZeroMQ socket is connected to its one address.

    Create it before the socket's ``connect``; close it before the ZeroMQ context ends.
    """

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._monitor: zmq.Socket[bytes] = socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
        )
        self._socket = socket
        self._up = False
        self._times = 0

    def up(self) -> bool:
        """Return True if the ZeroMQ socket is connected now."""
        while self._monitor.poll(0):
            event, _ = _EVENT.unpack(self._monitor.recv_multipart()[0])
            self._up = event == zmq.EVENT_HANDSHAKE_SUCCEEDED
            self._times += self._up
        return self._up

    def times(self) -> int:
        """Return how many times the ZeroMQ socket has connected so far."""
        self.up()
        return self._times

    def close(self) -> None:
        """Stop monitoring the ZeroMQ socket."""
        self._socket.disable_monitor()
        # An open monitor socket would block the end of the ZeroMQ context.
        self._monitor.close(0)


#: Largest reply that is read, bytes. Chunks of files and pillars are far smaller.
_MAX_ANSWER = 256 * 1024 * 1024


#: Seconds between two calls of ``given_up``, and between two looks whether the connection was lost.
_LOOK = 0.25


class NoAnswer(Exception):
    """Raised when the master did not answer a request in time."""


def shown_endpoint(endpoint: str) -> str:
    """Return a ZeroMQ endpoint without the address that the socket connects from: "tcp://a:0;b:1" is "tcp://b:1"."""
    source, separator, target = endpoint.partition(";")
    return f"tcp://{target}" if separator else source


class RequestSocket:
    """A minion's ZeroMQ socket for requests to the master. It can repeat a request and still accept the first reply."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], endpoint: str, *, watched: bool = False) -> None:
        """Connect to ``endpoint``. ``watched``: ``connected`` tells the state of the connection."""
        #: The master's address, for messages; without the part that names where this socket connects from.
        self.endpoint = shown_endpoint(endpoint)
        self.socket = context.socket(zmq.DEALER)
        for name, value in (
            (zmq.LINGER, 0),
            # Milliseconds. Without this limit the kernel tries an unreachable address for two minutes.
            (zmq.CONNECT_TIMEOUT, 10_000),
            (zmq.RECONNECT_IVL, 100),
            (zmq.RECONNECT_IVL_MAX, 5000),
            (zmq.MAXMSGSIZE, _MAX_ANSWER),
            (zmq.TCP_KEEPALIVE, 1),
            (zmq.TCP_KEEPALIVE_IDLE, 300),
            # No limit: libzmq ends the process where a heartbeat is due on a broken connection whose queue is full.
            (zmq.RCVHWM, 0),
            (zmq.HEARTBEAT_IVL, 5000),
            (zmq.HEARTBEAT_TIMEOUT, 15000),
        ):
            self.socket.setsockopt(name, value)
        self._connection = Connection(self.socket)
        self._watched = watched
        #: Number of the connection over which the last request was, or will be, sent.
        self._sent_over = 1
        self.socket.connect(endpoint)

    def connected(self) -> bool:
        """Return True if the socket is connected to the master now; always True if it is not ``watched``."""
        return not self._watched or self._connection.up()

    def send(self, payload: bytes) -> None:
        """Send a request to the master. ZeroMQ queues it while there is no connection."""
        up = self._connection.up()
        self._sent_over = self._connection.times() + (not up)
        self.socket.send_multipart([b"", payload])

    def lost(self) -> bool:
        """Return whether there is a new connection since the last request was sent. Its answer will not come: the front, or the
        reqserver, that had it is gone. Send the same bytes again, so that the master recognises the request.
        """
        return self._connection.times() > self._sent_over

    def receive(self, timeout: float) -> bytes | None:
        """Return the master's next reply; None if none arrives within ``timeout`` seconds.

        Timeout 0 returns a reply that has arrived already.
        """
        deadline = time.monotonic() + timeout
        left = timeout
        while self.socket.poll(int(left * 1000) + 1 if left > 0 else 0):
            frames = self.socket.recv_multipart()
            if len(frames) == 2 and not frames[0]:
                return frames[1]
            left = deadline - time.monotonic()
        return None

    def ask(
        self,
        payload: bytes,
        waits: Iterator[float],
        wanted: Callable[[bytes], bool] = lambda answer: True,
        given_up: Callable[[], bool] = lambda: False,
        *,
        again: bool = True,
    ) -> bytes:
        """Send a request and return the first reply for which ``wanted`` is true; repeat the request after each pause
        of ``waits`` (seconds).

        ``again``: a request whose connection was lost is sent again as soon as there is a new one. Raises NoAnswer after the
        last pause, or as soon as ``given_up`` returns True.
        """
        started = time.monotonic()
        for wait in waits:
            self.send(payload)
            deadline = time.monotonic() + wait
            while (left := deadline - time.monotonic()) > 0:
                answer = self.receive(min(left, _LOOK))
                if answer is not None and wanted(answer):
                    return answer
                if answer is None and given_up():
                    raise NoAnswer(f"the master at {self.endpoint} is away")
                if again and answer is None and self.lost():
                    self.send(payload)
        raise NoAnswer(f"no answer from the master at {self.endpoint} within {time.monotonic() - started:.0f} s")

    def close(self) -> None:
        """Close the connection to the master."""
        self._connection.close()
        self.socket.close()


#: Largest publication that is read, bytes.
_MAX_PUBLICATION = 64 * 1024 * 1024


def subscribe(
    context: zmq.Context[zmq.Socket[bytes]],
    endpoint: str,
    minion_id: str,
    *,
    recon_default: int,
    recon_max: int,
    randomize: bool = True,
    before: Callable[[zmq.Socket[bytes]], None] | None = None,
) -> zmq.Socket[bytes]:
    """Return a minion's connected ZeroMQ socket that receives every publication of the master.

    ``recon_default`` and ``recon_max`` are milliseconds, as in Salt's options. ``randomize`` spreads the pauses before
    reconnects, so that a fleet does not reconnect all at once; without it the pause is ``recon_default``. ``before`` is
    called with the socket before it connects, for monitors that must see the first connection.
    """
    sub = context.socket(zmq.SUB)
    pause = random.randint(recon_default, recon_default + recon_max) if randomize else recon_default
    for name, value in (
        (zmq.LINGER, 1),
        # Milliseconds. Without this limit the kernel tries an unreachable address for two minutes.
        (zmq.CONNECT_TIMEOUT, 10_000),
        (zmq.RECONNECT_IVL, pause),
        (zmq.RECONNECT_IVL_MAX, max(recon_max, pause)),
        (zmq.MAXMSGSIZE, _MAX_PUBLICATION),
        (zmq.TCP_KEEPALIVE, 1),
        (zmq.TCP_KEEPALIVE_IDLE, 300),
        # No limit: libzmq ends the process where a heartbeat is due on a broken connection whose queue is full.
        (zmq.RCVHWM, 0),
        (zmq.HEARTBEAT_IVL, 10000),
        (zmq.HEARTBEAT_TIMEOUT, 30000),
    ):
        sub.setsockopt(name, value)
    sub.setsockopt(zmq.IDENTITY, minion_id.encode())
    sub.setsockopt(zmq.SUBSCRIBE, b"")
    if before is not None:
        before(sub)
    sub.connect(endpoint)
    return sub
