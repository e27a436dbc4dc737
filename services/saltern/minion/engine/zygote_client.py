"""The main process's handle of the zygote process: starts it, exchanges messages with it, and starts it again after its death."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable

import msgpack

from saltern.minion.engine import zygote
from saltern.minion.ipc.framed_socket import FramedSocket
from saltern.minion.ipc.messages import KINDS, ZygoteRequest

_LOG = logging.getLogger("saltern.minion")

#: Kind that ``receive`` returns if the zygote is gone. The zygote sends no message of this kind.
GONE = b"gone"


class ZygoteClient:
    """The main process's end of the socket to the zygote. There is one zygote at a time, from ``start`` to ``close``."""

    def __init__(self, fork: Callable[[], tuple[int, FramedSocket]]) -> None:
        """Prepare the handle of a zygote that is not started yet. ``fork``: starts a zygote and returns its process id
        and this process's end of the socket.
        """
        self._fork = fork
        self._socket: FramedSocket | None = None
        #: pid of the zygote; 0 if it has ended and is not started again.
        self._pid = 0

    def start(self) -> None:
        """Fork a new zygote, and close the socket of a dead one."""
        if self._pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
        if self._socket is not None:
            self._socket.close()
        self._pid, self._socket = self._fork()

    @property
    def started(self) -> bool:
        """Return whether a zygote was started."""
        return self._socket is not None

    @property
    def pending(self) -> bool:
        """Return whether messages to the zygote wait for ``flush``."""
        return self._connected.pending

    def fileno(self) -> int:
        """Return the file descriptor of this process's end of the socket to the zygote."""
        return self._connected.fileno()

    def send(self, request: ZygoteRequest) -> None:
        """Send a request to the zygote without waiting: the zygote may itself be waiting for the main process to read."""
        try:
            self._connected.put(msgpack.packb(request, default=str))
        except OSError as error:
            _LOG.error("a message to the zygote cannot be sent: %s", error)

    def flush(self) -> None:
        """Send as much of the waiting messages as the zygote's socket takes."""
        try:
            self._connected.flush()
        except OSError as error:
            _LOG.error("waiting messages to the zygote cannot be sent: %s", error)

    def receive(self) -> tuple[bytes, bytes] | None:
        """Return the (kind, content) of the zygote's next message, or (GONE, b"") if the zygote has ended.

        Return None if only a part of a message has arrived. The kinds are in ipc.messages.
        """
        try:
            message = self._connected.receive()
        except OSError:
            message = b""
        if message is None:
            return None
        kind = next((each for each in KINDS if message.startswith(each)), GONE) if message else GONE
        return kind, message[len(kind) :]

    def ended(self) -> bool:
        """Return whether the zygote process has ended. The end of its socket is no sign, because jobbers hold it open."""
        if self._pid and os.waitpid(self._pid, os.WNOHANG)[0]:
            self._pid = 0
        return not self._pid

    def close(self) -> None:
        """Close the socket to the zygote and end the zygote, if one was started."""
        if self._socket is not None:
            self._socket.close()
        if self._pid:
            zygote.end_zygote(self._pid)

    @property
    def _connected(self) -> FramedSocket:
        assert self._socket is not None, "it is told something before it was started"
        return self._socket
