"""Whether the remote end of a ZeroMQ socket is connected, according to the socket's monitor events."""

from __future__ import annotations

import struct

import zmq

#: Event number and its value in native byte order, see zmq_socket_monitor(3). pyzmq's own parser would import asyncio into
#: every minion.
_EVENT = struct.Struct("=hi")


class Connection:
    """Monitors one socket that connects to one address. Create it before ``connect``; close it before the ZeroMQ
    context ends.
    """

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._monitor: zmq.Socket[bytes] = socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
        )
        self._socket = socket
        self._up = False
        self._times = 0

    def up(self) -> bool:
        """Return whether the socket is connected now."""
        while self._monitor.poll(0):
            event, _ = _EVENT.unpack(self._monitor.recv_multipart()[0])
            self._up = event == zmq.EVENT_HANDSHAKE_SUCCEEDED
            self._times += self._up
        return self._up

    def times(self) -> int:
        """Return how many times the socket has connected so far."""
        self.up()
        return self._times

    def close(self) -> None:
        """Stop monitoring."""
        self._socket.disable_monitor()
        # An open monitor socket would block the end of the ZeroMQ context.
        self._monitor.close(0)
