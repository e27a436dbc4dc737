"""Engine ``webhook``: a web server whose POST requests become events.

```yaml
engines:
  - webhook:
      port: 8000
      address: 10.128.1.145
      ssl_crt: /etc/pki/tls/certs/localhost.crt
      ssl_key: /etc/pki/tls/certs/localhost.key
```

Everyone who can reach the port can fire events ``salt/engines/hook/...``: there are no passwords. Reactions to these events
must not trust their data.
"""

from __future__ import annotations

import contextlib
import io
import logging
import queue
import socket
import ssl
import sys
import threading
import time
from collections import Counter
from http.client import LineTooLong
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from statecore.model.context import Context

_LOG = logging.getLogger(__name__)

_PREFIX = "salt/engines/hook/"

#: Bytes of the longest body.
_MOST_BYTES = 10 * 1024 * 1024

#: Bytes of all bodies in memory together, and of those of one address.
_MOST_BYTES_OF_ALL, _MOST_BYTES_OF_ADDRESS = 4 * _MOST_BYTES, _MOST_BYTES

#: Open connections, in all and of one address; further ones are closed at once. Each has a thread.
_MOST_CONNECTIONS, _MOST_CONNECTIONS_OF_ADDRESS = 100, 20

#: Seconds that a client may be silent, that a request may take to arrive, and that it waits to be fired.
_TIMEOUT = 30.0

#: Requests that may wait to be fired; further ones are refused.
_MOST_WAITING = 100

#: Characters of the longest path, which becomes the event's tag.
_LONGEST_PATH = 1024

#: Bytes of a request's first line and headers together.
_MOST_HEADER_BYTES = 65536

#: Bytes of a body that are read at once.
_PART = 65536


def start(
    ctx: Context,
    address: str | None = None,
    port: int = 5000,
    ssl_crt: str | None = None,
    ssl_key: str | None = None,
) -> None:
    """Serve POST requests: ``/some/tag`` fires ``salt/engines/hook/some/tag`` with ``headers`` and ``body``. Never return.

    address
        the address to listen on; None: all addresses of the host
    port
        the port to listen on
    ssl_crt, ssl_key
        files of a certificate and its key: serve HTTPS

    Raises OSError if the port is taken or a file cannot be read.
    """
    waiting: queue.Queue[_Posted] = queue.Queue(_MOST_WAITING)

    class Handler(_Handler):
        posted = waiting

    server = _Server((address or "", int(port)), Handler)
    if ssl_crt and ssl_key:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(ssl_crt, ssl_key)
        # The handshake is done by the thread of the request: a silent client must not keep others waiting.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    _LOG.info("the engine webhook listens on %s:%d", *server.server_address[:2])
    threading.Thread(target=server.serve_forever, name="webhook", daemon=True).start()
    while True:
        server.end_late()
        # The connection to the master belongs to this thread.
        try:
            posted = waiting.get(timeout=1)
        except queue.Empty:
            continue
        try:
            posted.fired = ctx.events.fire(posted.tag, posted.payload)
        except Exception as error:  # noqa: BLE001 - the master may be away; the client is told, and the engine goes on
            _LOG.error("the event %s is not fired: %s", posted.tag, error)
        posted.done.set()


class _Posted:
    """The tag and data of the event for one POST request, and whether the event was fired."""

    def __init__(self, tag: str, payload: dict[str, object]) -> None:
        self.tag = tag
        self.payload = payload
        self.fired = False
        self.done = threading.Event()


class _Quota:
    """Counts what clients hold of one thing, in all and for each address, and refuses what is above the limits."""

    def __init__(self, most: int, most_of_address: int) -> None:
        self._most = most
        self._most_of_address = most_of_address
        self._held: Counter[str] = Counter()
        self._lock = threading.Lock()

    def take(self, address: str, amount: int) -> bool:
        """Count ``amount`` for an address and return True; return False if that were too much."""
        with self._lock:
            if self._held.total() + amount > self._most or self._held[address] + amount > self._most_of_address:
                return False
            self._held[address] += amount
            return True

    def give_back(self, address: str, amount: int) -> None:
        """Count ``amount`` of an address as free again."""
        with self._lock:
            self._held[address] -= amount
            if self._held[address] <= 0:
                del self._held[address]


class _Server(ThreadingHTTPServer):
    """A web server with a thread for each connection, and limits of what strangers take of it."""

    daemon_threads = True
    #: Connections that the kernel keeps until they are accepted: more than strangers may hold open.
    request_queue_size = 2 * _MOST_CONNECTIONS

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self.connections = _Quota(_MOST_CONNECTIONS, _MOST_CONNECTIONS_OF_ADDRESS)
        self.bodies = _Quota(_MOST_BYTES_OF_ALL, _MOST_BYTES_OF_ADDRESS)
        #: Connections whose request has not arrived as a whole -> time of the monotonic clock until which it must.
        self._arriving: dict[socket.socket, float] = {}

    def arrived(self, request: socket.socket) -> None:
        """Stop the wait for the request of a connection."""
        self._arriving.pop(request, None)

    def end_late(self) -> None:
        """End the connections whose request did not arrive in time, however slowly their clients send."""
        now = time.monotonic()
        for request, until in tuple(self._arriving.items()):
            if until < now:
                self.arrived(request)
                # The client may have left meanwhile.
                with contextlib.suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start the thread of a connection; close the connection if there are too many."""
        if not self.connections.take(client_address[0], 1):
            self.shutdown_request(request)
            return
        self._arriving[request] = time.monotonic() + _TIMEOUT
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection in its thread, and give its place back at the end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.arrived(request)
            self.connections.give_back(client_address[0], 1)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a connection that broke as one line: a stranger can break as many as it likes."""
        _LOG.info("a connection of %s broke: %r", client_address[0], sys.exception())


class _Handler(BaseHTTPRequestHandler):
    posted: queue.Queue[_Posted]
    timeout = _TIMEOUT
    server: _Server
    server_version, sys_version = "webhook", ""

    def setup(self) -> None:
        """Prepare the reader of the connection."""
        super().setup()
        self.rfile = _BoundedLines(self.connection.makefile("rb", buffering=0))

    def do_POST(self) -> None:
        """Answer a POST request: 200 after the event was fired, 503 if it could not be or too much waits, 413 for a body
        and 414 for a path that is too long.
        """
        length = self.headers.get("Content-Length", "0")
        # A body without a length in its headers would not be counted before it is read.
        if not (length.isascii() and length.isdecimal()) or "Transfer-Encoding" in self.headers:
            return self.send_error(400)
        if len(length) > len(str(_MOST_BYTES)) or int(length) > _MOST_BYTES:
            return self.send_error(413)
        if len(self.path) > _LONGEST_PATH:
            return self.send_error(414)
        address, wanted, body = self.client_address[0], int(length), bytearray()
        try:
            while len(body) < wanted:
                part = self.rfile.read(min(_PART, wanted - len(body)))
                if not part:
                    return self.send_error(400)
                if not self.server.bodies.take(address, len(part)):
                    return self.send_error(503)
                body += part
            self.server.arrived(self.connection)
            fired = self._fired(bytes(body))
        finally:
            # Before the answer, after which the client may send the next body.
            self.server.bodies.give_back(address, len(body))
        if not fired:
            return self.send_error(503)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None

    def _fired(self, body: bytes) -> bool:
        """Return whether the event of this request was fired, in time."""
        one = _Posted(_PREFIX + self.path.lstrip("/"), {"headers": dict(self.headers.items()), "body": body})
        try:
            self.posted.put_nowait(one)
        except queue.Full:
            return False
        return one.done.wait(_TIMEOUT) and one.fired

    def log_message(self, format: str, *args: Any) -> None:
        """Write a line about a request to the log at level debug."""
        _LOG.debug(format, *args)


class _BoundedLines(io.BufferedReader):
    """The reader of a connection, whose lines together have at most _MOST_HEADER_BYTES."""

    _left = _MOST_HEADER_BYTES

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return the next line. Raises LineTooLong, which ``http.server`` answers with 431, above the limit of all lines."""
        line = super().readline(self._left + 1 if size is None or size < 0 else min(size, self._left + 1))
        self._left -= len(line)
        if self._left < 0:
            raise LineTooLong("headers")
        return line
