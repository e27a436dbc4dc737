"""Messages of several frames on a ZeroMQ socket.

pyzmq's own ``send_multipart`` and ``recv_multipart`` look at each frame's type, combine flags that are enums for each, ask the
socket whether there is more, and end by an exception where nothing has arrived: a good part of what a role does that only moves
frames. The same is done here with numbers, and a frame knows whether it is the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import zmq

_MORE, _AT_ONCE = int(zmq.SNDMORE), int(zmq.NOBLOCK)
_EVENTS, _READABLE = int(zmq.EVENTS), int(zmq.POLLIN)


def send(socket: zmq.Socket[bytes], frames: Sequence[bytes]) -> None:
    """Sends one message; waits where the socket cannot take it. Raises zmq.ZMQError as pyzmq does."""
    last = len(frames) - 1
    for place, frame in enumerate(frames):
        socket.send(frame, _MORE if place < last else 0)


def receive(socket: zmq.Socket[bytes]) -> list[bytes]:
    """The next message; waits for it. Raises zmq.Again where the socket's RCVTIMEO is over."""
    frame = socket.recv(0, copy=False)
    found = [frame.bytes]
    while frame.more:
        frame = socket.recv(0, copy=False)
        found.append(frame.bytes)
    return found


def arrived(socket: zmq.Socket[bytes], most: int) -> Iterator[list[zmq.Frame]]:
    """The messages that have arrived at a socket of which a poller said so, at most so many."""
    for count in range(most):
        # A look costs a third of the exception that says that there is nothing; the first is there.
        if count and not socket.getsockopt(_EVENTS) & _READABLE:  # type: ignore[operator]
            return
        try:
            frames = [socket.recv(_AT_ONCE, copy=False)]
        except zmq.Again:
            return
        while frames[-1].more:
            frames.append(socket.recv(_AT_ONCE, copy=False))
        yield frames
