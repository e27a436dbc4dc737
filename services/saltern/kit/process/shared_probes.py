"""Probes and metrics of a parent and its children on one health port.

Each child answers probes on a Unix socket; the parent asks all of them and joins the answers. ``/metrics`` has each child's
rows with the label ``process``, the child's name. ``/readyz`` and ``/healthz`` have the reasons of all children, each after
its child's name. A child that does not run, or does not answer within two seconds, is not ready.
"""

from __future__ import annotations

import contextlib
import errno
import math
import selectors
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from saltern.kit.config.reading import ConfigError, PortTaken
from saltern.kit.process.exposition import CONTENT_TYPE, Registry
from saltern.kit.process.supervision import Watched
from statecore.model.text_lines import lines_of

#: Seconds for all children together to answer.
_PATIENCE = 2.0

#: Seconds that a client may take for its request, bytes of a request, and most clients at one time.
_CLIENT_SECONDS = 5.0
_CLIENT_BYTES = 4096
_CLIENTS = 32

_PIECE = 65536

_LIVENESS = frozenset({"/healthz", "/livez"})

_REASONS = {200: "OK", 404: "Not Found", 501: "Not Implemented", 503: "Service Unavailable"}


def new_listener() -> socket.socket:
    """Return a listening Unix socket on which a child process answers probes. Its address is an abstract one: there is
    no file, and only processes of this network namespace can connect.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Linux chooses a free name.
    listener.bind("")
    listener.listen(16)
    return listener


def open_port(host: str, port: int) -> socket.socket | None:
    """Return a socket that listens on the health port; None for port 0. Raises ConfigError if the port is taken."""
    if not port:
        return None
    try:
        return socket.create_server((host, port), backlog=_CLIENTS)
    except (OSError, OverflowError) as error:
        # OverflowError: the port number is invalid.
        why = getattr(error, "strerror", None) or error
        kind = PortTaken if getattr(error, "errno", None) == errno.EADDRINUSE else ConfigError
        raise kind(f"health_port {host}:{port}: {why}") from error


def ask(listeners: Mapping[str, socket.socket], path: str) -> dict[str, tuple[int, str]]:
    """Return the map of child to its (status, text) for a probe; a child without a complete answer is left out."""
    deadline = time.monotonic() + _PATIENCE
    answers: dict[str, bytes] = {}
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
        for name, listener in listeners.items():
            connection = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            connection.setblocking(False)
            with contextlib.suppress(OSError):
                connection.connect(listener.getsockname())
                connection.send(f"GET {path} HTTP/1.0\r\n\r\n".encode())
                selector.register(connection, selectors.EVENT_READ, name)
                answers[name] = b""
        finished = set()
        while selector.get_map() and (left := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                piece = _read(key.fileobj)  # type: ignore[arg-type]
                answers[key.data] += piece
                if not piece:
                    selector.unregister(key.fileobj)
                    finished.add(key.data)
    return {name: found for name in finished if (found := _parsed(answers[name])) is not None}


def _read(connection: socket.socket) -> bytes:
    with contextlib.suppress(OSError):
        return connection.recv(_PIECE)
    return b""


def _parsed(answer: bytes) -> tuple[int, str] | None:
    head, found, body = answer.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if not found or len(words) < 2 or not words[1].isdigit():
        return None
    return int(words[1]), body.decode("utf-8", "replace")


def joined_metrics(parts: Mapping[str, str]) -> str:
    """Return one text of ``/metrics`` from those of several processes: each metric once, its rows with the label ``process``."""
    rows: dict[str, list[str]] = {}
    heads: dict[str, list[str]] = {}
    for process, text in parts.items():
        metric = ""
        for line in lines_of(text):
            if line.startswith("# HELP "):
                metric = line.split(" ", 3)[2]
                heads.setdefault(metric, [])
            if line.startswith("# "):
                if len(heads[metric]) < 2 and line not in heads[metric]:
                    heads[metric].append(line)
            elif line:
                rows.setdefault(metric, []).append(_labelled(line, process))
    return "".join(f"{line}\n" for metric, head in heads.items() for line in (*head, *rows.get(metric, ())))


def _labelled(line: str, process: str) -> str:
    name, _, value = line.rpartition(" ")
    if 'process="' in name:
        # The child is itself a parent.
        return line
    if name.endswith("}"):
        return f'{name[:-1]},process="{process}"}} {value}'
    return f'{name}{{process="{process}"}} {value}'


@dataclass
class _Client:
    """A connection to the health port whose HTTP request has not arrived completely yet."""

    connection: socket.socket
    deadline: float
    received: bytes = b""


@dataclass
class SharedProbes:
    """Answers HTTP probes on the health port of a parent process; its loop serves this object (``prefork.Attached``)."""

    server: socket.socket
    listeners: Mapping[str, socket.socket]
    watched: Mapping[str, Watched]
    #: The parent's own metrics.
    registry: Registry
    #: Label of the parent's own rows.
    name: str
    _clients: dict[int, _Client] = field(default_factory=dict)
    _selector: selectors.BaseSelector | None = None

    def attach(self, selector: selectors.BaseSelector) -> None:
        """Register the health port with the parent's loop."""
        self._selector = selector
        self.server.setblocking(False)
        selector.register(self.server, selectors.EVENT_READ, self._accept)

    def next_time(self) -> float:
        """Return the monotonic time at which the first slow client's connection must be closed; infinity without clients."""
        return min((client.deadline for client in self._clients.values()), default=math.inf)

    def tick(self, now: float) -> None:
        """Close the connections of clients that did not send their request in time."""
        for client in list(self._clients.values()):
            if client.deadline <= now:
                self._close(client)

    def files(self) -> Iterable[socket.socket]:
        """Yield the sockets of the health port, of the children's probes, and of connected clients."""
        yield self.server
        yield from self.listeners.values()
        for client in self._clients.values():
            yield client.connection

    def _accept(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection, _ = server.accept()
            if len(self._clients) >= _CLIENTS:
                connection.close()
                return
            connection.setblocking(False)
            client = _Client(connection, time.monotonic() + _CLIENT_SECONDS)
            self._clients[connection.fileno()] = client
            assert self._selector is not None, "attach comes first"
            self._selector.register(connection, selectors.EVENT_READ, lambda _: self._receive(client))

    def _receive(self, client: _Client) -> None:
        try:
            piece = client.connection.recv(_CLIENT_BYTES)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        client.received += piece
        whole = b"\r\n\r\n" in client.received or b"\n\n" in client.received
        if whole or not piece or len(client.received) >= _CLIENT_BYTES:
            with contextlib.suppress(OSError):
                client.connection.settimeout(_PATIENCE)
                client.connection.sendall(self._answer(client.received))
            self._close(client)

    def _close(self, client: _Client) -> None:
        assert self._selector is not None, "attach comes first"
        del self._clients[client.connection.fileno()]
        self._selector.unregister(client.connection)
        client.connection.close()

    def _answer(self, request: bytes) -> bytes:
        verb, path, *_ = [*request.partition(b"\n")[0].decode("latin-1").split(), "", ""]
        kind = "text/plain; charset=utf-8"
        answers: Mapping[str, Callable[[str], tuple[int, str]]] = {
            "/metrics": self._metrics,
            "/readyz": self._reasons,
            **dict.fromkeys(_LIVENESS, self._reasons),
        }
        plain = path.partition("?")[0]
        if verb != "GET":
            status, body = 501, "only GET\n"
        elif plain not in answers:
            status, body = 404, "not found\n"
        else:
            status, body = answers[plain](plain)
            kind = CONTENT_TYPE if plain == "/metrics" else kind
        content = body.encode()
        head = f"HTTP/1.0 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
        return f"{head}Connection: close\r\n\r\n".encode("ascii") + content

    def _metrics(self, path: str) -> tuple[int, str]:
        parts = {name: text for name, (_, text) in sorted(ask(self._running(), path).items())}
        return 200, joined_metrics({self.name: self.registry.text()} | parts)

    def _reasons(self, path: str) -> tuple[int, str]:
        reasons = list(self._faults(path))
        return (503 if reasons else 200), "\n".join(reasons or ["ok"]) + "\n"

    def _faults(self, path: str) -> Iterator[str]:
        """Yield one reason as text for each child that is not ready (``/readyz``) or not alive (``/healthz``).

        A child that waits for its next start is not ready, but alive.
        """
        answers = ask(self._running(), path)
        for name, child in self.watched.items():
            status, text = answers.get(name, (0, ""))
            if status:
                yield from (f"{name}: {line}" for line in lines_of(text) if status != 200)
            elif child.pid:
                yield f"{name}: no answer within {_PATIENCE:g} s"
            elif path not in _LIVENESS or child.state == "failed":
                yield f"{name}: does not run; its last process ended by {child.last_end or 'nothing yet'}"

    def _running(self) -> dict[str, socket.socket]:
        return {name: one for name, one in self.listeners.items() if self.watched[name].pid}
