"""Finding 38.16: strangers at the engine webhook, which asks for no password, fill no memory and hold no thread for long."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ports import free_ports
from tests.roles.lab import until

#: The engine beside a bus that takes every event; seconds of its time limit are the first argument.
ENGINE = """
import sys
from types import SimpleNamespace
from statecore.builtin.engines import webhook
webhook._TIMEOUT = float(sys.argv[2])
webhook._Handler.timeout = webhook._TIMEOUT
events = SimpleNamespace(fire=lambda tag, data: True)
webhook.start(SimpleNamespace(events=events), "127.0.0.1", int(sys.argv[1]))
"""

MIB = 1024 * 1024


@dataclass
class Engine:
    port: int
    process: subprocess.Popen[bytes]

    def connected(self, source: str = "127.0.0.1") -> socket.socket:
        """A connection of the client with this address."""
        made = socket.create_connection(("127.0.0.1", self.port), timeout=20, source_address=(source, 0))
        made.settimeout(20)
        return made

    def posted(self, body: bytes = b"x", source: str = "127.0.0.1") -> int:
        """The status of an ordinary request; 0 if the connection is closed without an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20, source_address=(source, 0))
        try:
            connection.request("POST", "/a", body)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()

    @property
    def resident(self) -> int:
        """Bytes of the process's memory."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    @property
    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))


def _started(seconds: float) -> Iterator[Engine]:
    (port,) = free_ports(1)
    process = subprocess.Popen([sys.executable, "-c", ENGINE, str(port), str(seconds)], stderr=subprocess.DEVNULL)
    engine = Engine(port, process)
    try:
        until(lambda: engine.posted() == 200, 30, "the engine answered")
        yield engine
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.fixture
def engine() -> Iterator[Engine]:
    yield from _started(30)


@pytest.fixture
def quick() -> Iterator[Engine]:
    """The engine with a time limit of two seconds."""
    yield from _started(2)


@contextlib.contextmanager
def strangers(engine: Engine, addresses: int, each: int, text: bytes) -> Iterator[list[socket.socket]]:
    """Connections of so many addresses, each of which has sent a text. What the engine refuses is closed by it."""
    made: list[socket.socket] = []
    try:
        for number in range(addresses * each):
            one = engine.connected(f"127.0.1.{number % addresses + 1}")
            made.append(one)
            with contextlib.suppress(OSError):
                one.sendall(text)
        yield made
    finally:
        for one in made:
            one.close()


HEAD = b"POST /a HTTP/1.1\r\nHost: x\r\n"

#: What a stranger sends and does not end: a body, headers, a line.
UNENDED = {
    "a body": HEAD + b"Content-Length: %d\r\n\r\n" % (10 * MIB) + b"x" * (10 * MIB - 1),
    "many headers": HEAD + b"".join(b"X-%d: " % number + b"y" * 60_000 + b"\r\n" for number in range(90)),
    "one long header": HEAD + b"X: " + b"y" * 10 * MIB,
    "a long first line": b"POST /" + b"y" * 10 * MIB,
}


@pytest.mark.parametrize("what", UNENDED)
@pytest.mark.parametrize(("addresses", "each"), [(60, 1), (3, 20)])
def test_strangers_fill_no_memory(engine: Engine, what: str, addresses: int, each: int) -> None:
    before = engine.resident
    with strangers(engine, addresses, each, UNENDED[what]):
        assert engine.resident - before < 120 * MIB
        # Requests without a large body are served meanwhile.
        assert engine.posted(source="127.0.2.1") == 200 or addresses == 60


@pytest.mark.parametrize("text", [b"", b"POST", HEAD, HEAD + b"Content-Length: 9\r\n\r\nx"], ids=repr)
def test_strangers_start_no_more_threads_than_the_limit(engine: Engine, text: bytes) -> None:
    with strangers(engine, 1, 60, text):
        assert engine.threads <= 20 + 3
        assert engine.posted(source="127.0.2.1") == 200
    with strangers(engine, 100, 3, text):
        assert engine.threads <= 100 + 3


@pytest.mark.parametrize("text", [b"", b"P", HEAD, HEAD + b"Content-Length: 9\r\n\r\n"], ids=repr)
def test_a_request_that_does_not_arrive_ends(quick: Engine, text: bytes) -> None:
    """The client sends a byte now and then, so that it is never silent for long."""
    with strangers(quick, 1, 1, text) as (one,):
        one.settimeout(0.5)

        def ended() -> bool:
            try:
                one.sendall(b"x")
                return not one.recv(1000)
            except TimeoutError:
                return False
            except OSError:
                return True

        until(ended, 15, "the engine ended the connection")


@pytest.mark.parametrize(
    ("more", "status"),
    [
        (b"Content-Length: -1\r\n", 400),
        (b"Content-Length: 1e3\r\n", 400),
        ("Content-Length: \u0661\r\n".encode(), 400),
        (b"Content-Length: " + b"9" * 5000 + b"\r\n", 413),
        (b"Content-Length: 10485761\r\n", 413),
        (b"Transfer-Encoding: chunked\r\n", 400),
        (b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", 400),
    ],
    ids=repr,
)
def test_a_body_of_unknown_length_is_refused(engine: Engine, more: bytes, status: int) -> None:
    with strangers(engine, 1, 1, HEAD + more + b"\r\n") as (one,):
        assert one.recv(1000).split()[1] == str(status).encode()


def test_a_long_path_is_no_tag(engine: Engine) -> None:
    with strangers(engine, 1, 1, b"POST /" + b"y" * 2000 + b" HTTP/1.1\r\nContent-Length: 0\r\n\r\n") as (one,):
        assert b" 414 " in one.recv(1000)


@pytest.mark.ordinary
def test_large_bodies_are_fired_one_after_the_other(engine: Engine) -> None:
    for _ in range(6):
        assert engine.posted(b"x" * 9 * MIB) == 200
