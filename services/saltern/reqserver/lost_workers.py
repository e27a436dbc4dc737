"""Notices workers whose connection has ended: a killed process, whose sockets its kernel closes at once.

libzmq reports that some connection of a socket ended, but not whose. So each known worker is then sent a message that asks nothing;
libzmq refuses it where no connection of this name is left. A worker whose machine vanished closes nothing: it is noticed by its
silence. Source: docs/requests.md#deadlines
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import zmq

from saltern.kit.links import frames
from saltern.kit.links.sockets import new_monitor
from saltern.kit.links.worker_link import NOTHING

#: Seconds between the end of a connection and the look for its worker: libzmq connects anew after 0.1 s where only the network
#: failed, and an ended connection's route is gone by then.
GRACE = 0.5


class LostWorkers:
    """Finds workers that have no connection to the ROUTER socket any more, after libzmq reported that a connection ended.

    Create the object before the socket is bound. Times are monotonic seconds.
    """

    def __init__(self, workers: zmq.Socket[bytes]) -> None:
        self._workers = workers
        #: Readable when ``notice`` has something to read.
        self.monitor = new_monitor(workers, zmq.EVENT_DISCONNECTED)
        self._look_at = math.inf
        #: Whether another connection ended while a look was awaited.
        self._again = False

    @property
    def awaited(self) -> bool:
        """Whether a connection has ended whose worker has not been looked for."""
        return self._look_at != math.inf

    def notice(self, now: float) -> None:
        """Read the reports of ended connections."""
        ended = False
        while int(self.monitor.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
            self.monitor.recv_multipart(zmq.NOBLOCK)
            ended = True
        if ended and self.awaited:
            self._again = True
        elif ended:
            self._look_at = now + GRACE

    def gone(self, names: Iterable[bytes], now: float) -> list[bytes]:
        """Return which of these workers have no connection any more; [] where no connection has ended, or just now."""
        if now < self._look_at:
            return []
        self._look_at = now + GRACE if self._again else math.inf
        self._again = False
        # Elsewhere a message to a worker that has just ended is dropped without an error.
        self._workers.setsockopt(zmq.ROUTER_MANDATORY, 1)
        try:
            return [name for name in names if not self._is_connected(name)]
        finally:
            self._workers.setsockopt(zmq.ROUTER_MANDATORY, 0)

    def _is_connected(self, name: bytes) -> bool:
        try:
            # A full queue is a connection, too.
            frames.send_now(self._workers, [name, NOTHING])
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise
            return False
        return True

    def close(self) -> None:
        """End the reports; call it before the ROUTER socket is closed."""
        self._workers.disable_monitor()
        self.monitor.close(linger=0)
