"""``/healthz``, ``/readyz`` and ``/metrics`` of a role, on a thread of their own.

``/healthz`` (liveness) asks only whether the role's loop still turns. ``/readyz`` runs the role's checks and says in plain
words why it is not ready. Neither ever speaks to a minion.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

#: None when all is well, else one sentence why not.
Check = Callable[[], str | None]


class Health:
    """What the probes of one role are answered with."""

    def __init__(self, role: str, registry: CollectorRegistry, *, stall_after: float = 30.0) -> None:
        """``stall_after``: seconds without a turn of the loop after which the role counts as dead."""
        self.role = role
        self.registry = registry
        self._checks: dict[str, Check] = {}
        self._stall_after = stall_after
        self._turned = time.monotonic()

    def check(self, name: str, check: Check) -> None:
        """Adds a condition of readiness."""
        self._checks[name] = check

    def turn(self) -> None:
        """Called by the role's loop each time round."""
        self._turned = time.monotonic()

    def alive(self) -> str | None:
        """None while the loop turns, else why not."""
        silent = time.monotonic() - self._turned
        if silent > self._stall_after:
            return f"the loop of {self.role} has not turned for {silent:.0f} s"
        return None

    def unready(self) -> list[str]:
        """One line for each check that fails."""
        return [f"{name}: {why}" for name, check in list(self._checks.items()) if (why := _asked(check))]

    def serve(self, host: str, port: int) -> Callable[[], None]:
        """Starts to answer on ``host:port``; returns what stops it. Port 0 serves nothing."""
        if not port:
            return _nothing
        server = ThreadingHTTPServer((host, port), _handler(self))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, name="health", daemon=True).start()

        def stop() -> None:
            server.shutdown()
            server.server_close()

        return stop


def _asked(check: Check) -> str | None:
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
        return 200, CONTENT_TYPE_LATEST, generate_latest(health.registry)

    return {"/healthz": healthz, "/livez": healthz, "/readyz": readyz, "/metrics": metrics}


def _handler(health: Health) -> type[BaseHTTPRequestHandler]:
    answers = _answers(health)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path.partition("?")[0])
            status, kind, body = answer() if answer else (404, "text/plain; charset=utf-8", b"not found\n")
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Probes are not worth a log line."""

    return Handler
