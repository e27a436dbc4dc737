"""A minion's request socket: ask, wait, ask again. One question at a time; for one thread (protocol section 1.1)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import zmq

from saltwire.zmq.connection import Connection

#: Largest answer that is read: a chunk of a file or a pillar is far smaller.
_MAX_ANSWER = 256 * 1024 * 1024


#: Seconds between two looks whether the answer is still waited for.
_LOOK = 1.0


class NoAnswer(Exception):
    """The master did not answer in time."""


class RequestSocket:
    """A DEALER that speaks REQ's frames, so that a request can be sent again without losing the answer to the first."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], endpoint: str, *, watched: bool = False) -> None:
        """``watched``: ``connected`` will be asked."""
        self.endpoint = endpoint
        self.socket = context.socket(zmq.DEALER)
        for name, value in (
            (zmq.LINGER, 0),
            # An address that swallows every packet is left; the kernel would try it for two minutes.
            (zmq.CONNECT_TIMEOUT, 10_000),
            (zmq.RECONNECT_IVL, 100),
            (zmq.RECONNECT_IVL_MAX, 5000),
            (zmq.MAXMSGSIZE, _MAX_ANSWER),
            (zmq.TCP_KEEPALIVE, 1),
            (zmq.TCP_KEEPALIVE_IDLE, 300),
            (zmq.HEARTBEAT_IVL, 5000),
            (zmq.HEARTBEAT_TIMEOUT, 15000),
        ):
            self.socket.setsockopt(name, value)
        self._connection = Connection(self.socket) if watched else None
        self.socket.connect(endpoint)

    def connected(self) -> bool:
        """Whether there is a connection now; True of one that is not watched."""
        return self._connection is None or self._connection.up()

    def send(self, payload: bytes) -> None:
        """Sends a request; queued while there is no connection."""
        self.socket.send_multipart([b"", payload])

    def receive(self, timeout: float) -> bytes | None:
        """The next answer, None after ``timeout`` seconds without one; 0 takes what is there already."""
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
    ) -> bytes:
        """The first wanted answer; the request is sent again after each of ``waits`` (seconds).

        Raises NoAnswer at their end, or once it is ``given_up``.
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
        raise NoAnswer(f"no answer from the master at {self.endpoint} within {time.monotonic() - started:.0f} s")

    def close(self) -> None:
        """Ends the connection."""
        if self._connection is not None:
            self._connection.close()
        self.socket.close()
