"""A web server on loopback: what it serves is a table, what it was asked it remembers."""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Web:
    """The server: ``url``, what it was ``asked``, and ``answers``, path -> (status, headers, body), or a function of it."""

    url: str
    asked: list[Asked] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)


#: What every server has.
SERVED: dict[str, tuple[int, dict[str, str], bytes]] = {
    "/plain": (200, {"Content-Type": "text/plain"}, b"all is well\n"),
    "/latin": (200, {"Content-Type": "text/plain; charset=latin-1"}, "grün".encode("latin-1")),
    "/bytes": (200, {"Content-Type": "application/octet-stream"}, b"\xff\xfe"),
    "/json": (200, {"Content-Type": "application/json"}, b'{"a": [1, null]}'),
    "/yaml": (200, {"Content-Type": "application/yaml"}, b"a: [1, x]\n"),
    "/xml": (200, {"Content-Type": "text/xml"}, b"<r><a>1</a><b><c>2</c><c>3</c><c>4</c></b></r>"),
    "/broken": (200, {"Content-Type": "application/json"}, b"{"),
    "/gzip": (200, {"Content-Type": "text/plain", "Content-Encoding": "gzip"}, gzip.compress(b"packed")),
    "/made": (201, {}, b"made"),
    "/empty": (204, {}, b""),
    "/teapot": (418, {"Content-Type": "text/plain"}, b"short and stout"),
    "/down": (503, {}, b"later"),
    "/moved": (302, {"Location": "/plain"}, b""),
    "/kept": (307, {"Location": "/echo"}, b""),
    "/file": (302, {"Location": "file:///etc/passwd"}, b""),
    "/cookie": (200, {"Set-Cookie": "who=me; Path=/; Max-Age=3600"}, b"set"),
    "/session": (200, {"Set-Cookie": "seat=4; Path=/"}, b"set"),
}


@contextlib.contextmanager
def serve(silent: threading.Event | None = None) -> Iterator[Web]:
    """A server that runs as long as the block; ``/silent`` says nothing until ``silent`` is set."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = Asked(self.command, self.path, dict(self.headers.items()), body)
            web.asked.append(asked)
            path = self.path.partition("?")[0]
            if path == "/silent" and silent is not None:
                silent.wait(30)
                return
            if path == "/echo":
                status, headers, data = 200, {"Content-Type": "text/plain"}, f"{self.command} ".encode() + body
            else:
                answer = web.answers.get(path, SERVED.get(path, (404, {}, b"nothing here")))
                status, headers, data = answer(asked) if isinstance(answer, Callable) else answer  # type: ignore[arg-type]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _answer

        def log_message(self, *args: Any) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        web = Web(f"http://127.0.0.1:{running.server_port}")
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield web
        finally:
            running.shutdown()
            thread.join(10)
