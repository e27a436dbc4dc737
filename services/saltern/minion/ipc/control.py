"""The control socket in ``cachedir``: jobs and salt-call use it to change the schedule and the beacons of the running minion.

A request is one msgpack map ``{"area": "schedule", ...}``, and the answer is another map; ``{"error": text}`` refuses the
request. Any process that may open the socket (mode 0600) may send requests. The socket is not reachable over the network.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgpack
import zmq

from saltern.minion.ipc.framed_socket import FramedSocket
from statecore.host.content import private_files

_LOG = logging.getLogger("saltern.minion")

_NAME = "minion.sock"

#: Connections at a time. A client that connects and sends nothing uses one.
_BACKLOG = 32

#: Seconds to wait for the running minion, which may be signing in.
_PATIENCE = 30.0

Handler = Callable[[Mapping[str, object]], Mapping[str, object]]


class MinionNotRunning(Exception):
    """Raised when no minion answers on the control socket. The message names the cache directory and the cause."""


class ControlSocket:
    """The minion's end of the control socket. It never waits for a client."""

    def __init__(self, directory: Path) -> None:
        """Create the control socket in ``directory``. Raise OSError if that fails."""
        private_files.directory(directory)
        self._path = directory / _NAME
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.setblocking(False)
        self._open: dict[int, FramedSocket] = {}
        self._path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            with _address(directory) as address:
                self._listener.bind(address)
        finally:
            os.umask(before)
        self._listener.listen(_BACKLOG)
        self._inode = _inode(self._path)

    def register(self, poller: zmq.Poller) -> None:
        """Register the control socket's file descriptors in the poller; ``serve`` reads them."""
        poller.register(self._listener.fileno(), zmq.POLLIN)
        for number, client in self._open.items():
            poller.register(number, zmq.POLLIN | (zmq.POLLOUT if client.pending else 0))

    def serve(self, ready: Mapping[object, int], handler: Handler) -> None:
        """Accept a client of the control socket and answer complete requests. ``ready``: the poller's result."""
        for number, client in list(self._open.items()):
            if number in ready and not self._serve_client(client, ready[number], handler):
                del self._open[number]
                client.close()
        if self._listener.fileno() in ready:
            with contextlib.suppress(BlockingIOError):
                connection, _ = self._listener.accept()
                if len(self._open) >= _BACKLOG:
                    connection.close()
                else:
                    self._open[connection.fileno()] = FramedSocket(connection)

    def _serve_client(self, client: FramedSocket, happened: int, handler: Handler) -> bool:
        """Read from and write to one client of the control socket. Return False when the connection has ended."""
        try:
            if happened & zmq.POLLOUT:
                client.flush()
            if not happened & ~zmq.POLLOUT:
                return True
            message = client.receive()
            if message == b"":
                return False
            if message is not None:
                client.put(msgpack.packb(_reply_to(message, handler), default=str))
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close the control socket and remove its file."""
        for client in self._open.values():
            client.close()
        # While this minion waits for its last jobs, its successor may have created a new socket with the same name. The
        # inode
        # number of an open socket is not reused, so it tells whose socket it is.
        if _inode(self._path) == self._inode:
            self._path.unlink(missing_ok=True)
        self._listener.close()


def ask(directory: Path, request: Mapping[str, object], patience: float = _PATIENCE) -> dict[str, object]:
    """Send a control request to the running minion with this cache directory and return the map that it answers.

    ``patience``: seconds to wait. Raise MinionNotRunning if no minion answers.
    """
    end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    end.settimeout(patience)
    client = FramedSocket(end)
    deadline = time.monotonic() + patience
    try:
        with _address(directory) as address:
            end.connect(address)
        client.send(msgpack.packb(dict(request), default=str))
        while (message := client.receive()) is None:
            if time.monotonic() > deadline:
                raise TimeoutError
        if not message:
            raise MinionNotRunning(f"the minion of {directory} ended before it answered")
    except TimeoutError as error:
        raise MinionNotRunning(f"the minion of {directory} does not answer within {patience:g} seconds") from error
    except OSError as error:
        raise MinionNotRunning(
            f"no minion runs with the cache directory {directory}: {error.strerror or error}"
        ) from error
    finally:
        client.close()
    handler = msgpack.unpackb(message, strict_map_key=False)
    return dict(handler)


def _reply_to(message: bytes, handler: Handler) -> Mapping[str, object]:
    try:
        request = msgpack.unpackb(message, strict_map_key=False)
    except (ValueError, msgpack.UnpackException) as error:
        return {"error": f"the request is not msgpack: {error}"}
    if not isinstance(request, dict):
        return {"error": "the request is not a map"}
    try:
        return handler(request)
    except ValueError as error:
        return {"error": str(error)}


def _inode(path: Path) -> tuple[int, int] | None:
    """Return the (device, inode) of a file, which identify it; None if the file does not exist."""
    with contextlib.suppress(OSError):
        status = path.lstat()
        return status.st_dev, status.st_ino
    return None


@contextlib.contextmanager
def _address(directory: Path) -> Iterator[str]:
    """Yield a path of the control socket below /proc, which is short enough for any directory (the limit is 107 bytes)."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{handle}/{_NAME}"
    finally:
        os.close(handle)
