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

import logging
import queue
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from statecore.model.context import Context

_LOG = logging.getLogger(__name__)

_PREFIX = "salt/engines/hook/"

#: Bytes of the longest body.
_MOST_BYTES = 10 * 1024 * 1024

#: Seconds that a client may be silent, and that a request waits to be fired.
_TIMEOUT = 30.0

#: Requests that may wait to be fired; further ones are refused.
_MOST_WAITING = 100


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

    server = ThreadingHTTPServer((address or "", int(port)), Handler)
    server.daemon_threads = True
    if ssl_crt and ssl_key:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(ssl_crt, ssl_key)
        # The handshake is done by the thread of the request: a silent client must not keep others waiting.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    _LOG.info("the engine webhook listens on %s:%d", *server.server_address[:2])
    threading.Thread(target=server.serve_forever, name="webhook", daemon=True).start()
    while True:
        # The connection to the master belongs to this thread.
        posted = waiting.get()
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


class _Handler(BaseHTTPRequestHandler):
    posted: queue.Queue[_Posted]
    timeout = _TIMEOUT
    server_version, sys_version = "webhook", ""

    def do_POST(self) -> None:
        """Answer a POST request: 200 after the event was fired, 503 if it could not be, 413 for a body that is too long."""
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal():
            return self.send_error(400)
        if int(length) > _MOST_BYTES:
            return self.send_error(413)
        body = self.rfile.read(int(length))
        one = _Posted(_PREFIX + self.path.lstrip("/"), {"headers": dict(self.headers.items()), "body": body})
        try:
            self.posted.put_nowait(one)
        except queue.Full:
            return self.send_error(503)
        if not one.done.wait(_TIMEOUT) or not one.fired:
            return self.send_error(503)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None

    def log_message(self, format: str, *args: Any) -> None:
        """Write a line about a request to the log at level debug."""
        _LOG.debug(format, *args)
