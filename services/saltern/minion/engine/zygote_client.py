"""The preloaded process (``zygote``) as the main process has it: started, told, heard, and started again when it died."""

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

#: What ``receive`` says when the process is gone; no message of its own begins so.
GONE = b"gone"


class ZygoteClient:
    """There is one at a time, from ``start`` to ``close``."""

    def __init__(self, fork: Callable[[], tuple[int, FramedSocket]]) -> None:
        """``fork`` starts one: its pid, and our end of the pair."""
        self._fork = fork
        self._socket: FramedSocket | None = None
        #: 0: it ended, and is not started again.
        self._pid = 0

    def start(self) -> None:
        """Forks it; of one that died the end is kept no longer."""
        if self._pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
        if self._socket is not None:
            self._socket.close()
        self._pid, self._socket = self._fork()

    @property
    def started(self) -> bool:
        """Whether it was."""
        return self._socket is not None

    @property
    def pending(self) -> bool:
        """Whether something waits for ``flush``."""
        return self._connected.pending

    def fileno(self) -> int:
        """The number of our end."""
        return self._connected.fileno()

    def send(self, request: ZygoteRequest) -> None:
        """Sends one of its messages. Never waits: it may be waiting for us to read."""
        try:
            self._connected.put(msgpack.packb(request, default=str))
        except OSError as error:
            _LOG.error("the preloaded process does not take a message: %s", error)

    def flush(self) -> None:
        """Sends on what waited."""
        try:
            self._connected.flush()
        except OSError as error:
            _LOG.error("the preloaded process does not take what waited for it: %s", error)

    def receive(self) -> tuple[bytes, bytes] | None:
        """(kind, content) of a message: one of the constants of ``zygote``, SPOOLED or GONE; None when it is not whole."""
        try:
            message = self._connected.receive()
        except OSError:
            message = b""
        if message is None:
            return None
        kind = next((each for each in KINDS if message.startswith(each)), GONE) if message else GONE
        return kind, message[len(kind) :]

    def ended(self) -> bool:
        """Whether it ended just now. Jobbers hold the other end of the pair, too: it does not close while one of them works."""
        if self._pid and os.waitpid(self._pid, os.WNOHANG)[0]:
            self._pid = 0
        return not self._pid

    def close(self) -> None:
        """Ends it, if it was started."""
        if self._socket is not None:
            self._socket.close()
        if self._pid:
            zygote.end_zygote(self._pid)

    @property
    def _connected(self) -> FramedSocket:
        assert self._socket is not None, "it is told something before it was started"
        return self._socket
