"""Serves ``/healthz``, ``/readyz`` and ``/metrics`` of a role from a thread of its own.

``/healthz`` (liveness) checks only that the role's loop runs. ``/readyz`` runs the role's checks and gives the reasons why the role
is not ready. Minions never use this port.
"""

from __future__ import annotations

import select
import socket
import socketserver
import threading
import time
from collections.abc import Callable

from saltern.kit.process.exposition import CONTENT_TYPE, Registry

#: Returns None if the role is ready, else one sentence with the reason.
Check = Callable[[], str | None]


class Health:
    """The state that a role reports on its health port: whether its loop runs, and which readiness checks fail."""

    def __init__(self, role: str, registry: Registry, *, stall_after: float = 30.0) -> None:
        """Create the state of a role. A loop that has not run for ``stall_after`` seconds makes ``/healthz`` fail."""
        self.role = role
        self.registry = registry
        self._checks: dict[str, Check] = {}
        self._stall_after = stall_after
        self._turned = time.monotonic()
        #: Whether the loop has run at least once.
        self.begun = False

    def check(self, name: str, check: Check) -> None:
        """Add a readiness check: a callable that returns None, or the reason why the role is not ready."""
        self._checks[name] = check

    def record_iteration(self) -> None:
        """Record that the role's loop runs. The loop calls this in each iteration."""
        self.begun = True
        self._turned = time.monotonic()

    def alive(self) -> str | None:
        """Return None if the role's loop runs, else the reason why ``/healthz`` fails."""
        silent = time.monotonic() - self._turned
        if silent > self._stall_after:
            return f"the loop of {self.role} has not turned for {silent:.0f} s"
        return None

    def unready(self) -> list[str]:
        """Return one text ``NAME: REASON`` for each readiness check that fails; an empty list if the role is ready."""
        return [f"{name}: {why}" for name, check in list(self._checks.items()) if (why := _result_of(check))]

    def serve(self, host: str, port: int) -> Callable[[], None]:
        """Start to answer ``/healthz``, ``/readyz`` and ``/metrics`` on ``host:port``; return a function that stops
        it. Port 0: do nothing.
        """
        if not port:
            return _nothing
        return self._serve(_Server((host, port), _handler(self)))

    def serve_on(self, listener: socket.socket) -> Callable[[], None]:
        """Start to answer probes on a listening socket that another process made; return a function that stops it."""
        server = _Server(("", 0), _handler(self), bind_and_activate=False)
        server.socket.close()
        server.socket = listener
        return self._serve(server)

    def _serve(self, server: _Server) -> Callable[[], None]:
        # The object may have been made long before, in the process that forked this one.
        self._turned = time.monotonic()
        ended, end = socket.socketpair()
        thread = threading.Thread(target=_answer_until, args=(server, ended), name="health", daemon=True)
        thread.start()

        def stop() -> None:
            end.close()
            thread.join()
            server.server_close()

        return stop


def _answer_until(server: _Server, ended: socket.socket) -> None:
    """Answer probes until the other end of ``ended`` is closed. ``serve_forever`` would wake up twice a second to see its end."""
    poll = select.poll()
    for one in (server, ended):
        poll.register(one.fileno(), select.POLLIN)
    with ended:
        while ended.fileno() not in dict(poll.poll()):
            server.handle_request()


def _result_of(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - a probe is answered in any case; a check that fails is a reason
        return f"{type(error).__name__}: {error}"


def _nothing() -> None:
    return None


def _answers(health: Health) -> dict[str, Callable[[], tuple[int, str, bytes]]]:
    def healthz() -> tuple[int, str, bytes]:
        why = health.alive()
        return (503 if why else 200), "text/plain; charset=utf-8", ((why or "ok") + "\n").encode()

    def readyz() -> tuple[int, str, bytes]:
        reasons = health.unready()
        return (503 if reasons else 200), "text/plain; charset=utf-8", ("\n".join(reasons or ["ok"]) + "\n").encode()

    def metrics() -> tuple[int, str, bytes]:
        return 200, CONTENT_TYPE, health.registry.text().encode()

    return {"/healthz": healthz, "/livez": healthz, "/readyz": readyz, "/metrics": metrics}


#: Limits of a request: bytes of a line, and number of lines. A probe sends far less.
_MOST = 4096
_MOST_LINES = 64

_REASONS = {200: "OK", 404: "Not Found", 501: "Not Implemented", 503: "Service Unavailable"}


class _Server(socketserver.ThreadingTCPServer):
    """A small HTTP server for probes: it answers one GET request and closes the connection. http.server would take 4 MB."""

    allow_reuse_address = True
    daemon_threads = True
    #: ``handle_request`` does not wait: another process with the same listening socket may have taken the connection.
    timeout = 0

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore an error while a probe is answered: the client has closed the connection."""


def _handler(health: Health) -> type[socketserver.StreamRequestHandler]:
    answers = _answers(health)

    class Handler(socketserver.StreamRequestHandler):
        timeout = 5.0

        def handle(self) -> None:
            verb, path, *_ = [*self.rfile.readline(_MOST).decode("latin-1").split(), "", ""]
            for _ in range(_MOST_LINES):
                if self.rfile.readline(_MOST) in (b"\r\n", b"\n", b""):
                    break
            answer = answers.get(path.partition("?")[0])
            if verb != "GET":
                status, kind, body = 501, "text/plain; charset=utf-8", b"only GET\n"
            else:
                status, kind, body = answer() if answer else (404, "text/plain; charset=utf-8", b"not found\n")
            head = (
                f"HTTP/1.0 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            )
            self.wfile.write(head.encode("ascii") + body)

    return Handler
