"""Sends and receives messages of several frames on a ZeroMQ socket, with less work for each message than pyzmq.

pyzmq's ``send_multipart`` and ``recv_multipart`` check the type of each frame, combine enum flags, ask the socket for each next
frame, and raise an exception when nothing has arrived. That is much of the CPU time of a role that only moves frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import zmq

_MORE, _AT_ONCE = int(zmq.SNDMORE), int(zmq.NOBLOCK)
_EVENTS, _READABLE = int(zmq.EVENTS), int(zmq.POLLIN)

#: Without pyzmq's layer in Python, which sets the options of a frame that none of ours has: half the time for each frame.
_send = zmq.backend.Socket.send


def send(socket: zmq.Socket[bytes], frames: Sequence[bytes]) -> None:
    """Send one message of several frames on a ZeroMQ socket; wait while its queue is full. Raises zmq.ZMQError as pyzmq does."""
    last = len(frames) - 1
    for index, frame in enumerate(frames):
        _send(socket, frame, _MORE if index < last else 0)


def send_now(socket: zmq.Socket[bytes], frames: Sequence[bytes]) -> bool:
    """The same without waiting. Return False if the socket's queue is full; nothing was sent then."""
    last = len(frames) - 1
    try:
        for index, frame in enumerate(frames):
            _send(socket, frame, _AT_ONCE | (_MORE if index < last else 0))
    except zmq.Again:
        return False
    return True


def receive(socket: zmq.Socket[bytes]) -> list[bytes]:
    """Return the frames of the next message of a ZeroMQ socket; wait for it. Raises zmq.Again after the socket's RCVTIMEO."""
    frame = socket.recv(0, copy=False)
    found = [frame.bytes]
    while frame.more:
        frame = socket.recv(0, copy=False)
        found.append(frame.bytes)
    return found


def arrived(socket: zmq.Socket[bytes], most: int) -> Iterator[list[zmq.Frame]]:
    """Yield the frames of each message that has arrived at a socket, at most ``most`` messages.

    Call only for a socket that a poller reported as readable.
    """
    for count in range(most):
        # Asking for pending events costs a third of the exception for an empty socket. The first message has arrived.
        if count and not socket.getsockopt(_EVENTS) & _READABLE:  # type: ignore[operator]
            return
        try:
            frames = [socket.recv(_AT_ONCE, copy=False)]
        except zmq.Again:
            return
        while frames[-1].more:
            frames.append(socket.recv(_AT_ONCE, copy=False))
        yield frames
