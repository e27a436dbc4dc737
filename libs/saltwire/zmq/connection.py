"""Whether a socket's peer is connected, by what libzmq tells of it."""

from __future__ import annotations

import struct

import zmq

#: Number of the event, and what belongs to it, in the machine's own order (zmq_socket_monitor(3)). pyzmq's own reader of it
#: would bring asyncio into every minion.
_EVENT = struct.Struct("=hi")


class Connection:
    """Looks after one socket that connects to one peer. To be made before it connects, and closed before the context ends."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._monitor: zmq.Socket[bytes] = socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
        )
        self._socket = socket
        self._up = False
        self._times = 0

    def up(self) -> bool:
        """True while there is a connection."""
        while self._monitor.poll(0):
            event, _ = _EVENT.unpack(self._monitor.recv_multipart()[0])
            self._up = event == zmq.EVENT_HANDSHAKE_SUCCEEDED
            self._times += self._up
        return self._up

    def times(self) -> int:
        """How often there was a new connection until now."""
        self.up()
        return self._times

    def close(self) -> None:
        """Stops looking."""
        self._socket.disable_monitor()
        # Open, it would keep the context from ending.
        self._monitor.close(0)
