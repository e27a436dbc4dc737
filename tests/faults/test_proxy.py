"""Links as the tests of faults need them: a fault that the link does not make would be a test that proves nothing."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.faults.proxy import Link, Network

#: Seconds for what happens on loopback.
SOON = 30.0

#: Seconds in which nothing must happen.
WHILE = 0.2


@pytest.fixture
def network() -> Iterator[Network]:
    with Network() as made:
        yield made


@pytest.fixture
def server() -> Iterator[Callable[[bytes], int]]:
    """Makes a server that says its word and then what it hears; answers its port."""
    with contextlib.ExitStack() as open_ones:

        def make(word: bytes) -> int:
            listener = open_ones.enter_context(socket.create_server(("127.0.0.1", 0)))
            threading.Thread(target=serve, args=(listener, word), daemon=True).start()
            port: int = listener.getsockname()[1]
            return port

        yield make


def serve(listener: socket.socket, word: bytes) -> None:
    while True:
        try:
            one, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=echo, args=(one, word), daemon=True).start()


def echo(one: socket.socket, word: bytes) -> None:
    with one, contextlib.suppress(OSError):
        one.sendall(word)
        while piece := one.recv(65536):
            one.sendall(piece)
        one.sendall(b"bye")


def connected(link: Link, word: bytes = b"a") -> socket.socket:
    one = socket.create_connection(("127.0.0.1", link.port), SOON)
    assert read(one, len(word)) == word
    return one


def read(one: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size and (piece := one.recv(size - len(found))):
        found += piece
    return found


def turned_away(link: Link) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", link.port), SOON) as one:
            one.recv(1)
    except ConnectionResetError:
        return True
    return False


def silent(one: socket.socket) -> bool:
    one.settimeout(WHILE)
    try:
        one.recv(1)
    except TimeoutError:
        return True
    finally:
        one.settimeout(SOON)
    return False


def test_bytes_and_ends_pass_both_ways(network: Network, server: Callable[[bytes], int]) -> None:
    link = network.link(server(b"a"))
    with connected(link) as one:
        large = bytes(range(256)) * 8000
        sender = threading.Thread(target=one.sendall, args=(large,))
        sender.start()
        assert read(one, len(large)) == large
        sender.join()
        one.shutdown(socket.SHUT_WR)
        assert read(one, 10) == b"bye"
    assert link.connections() == 0


def test_a_held_link_is_silent_and_then_loses_nothing(network: Network, server: Callable[[bytes], int]) -> None:
    link = network.link(server(b"a"))
    with connected(link) as one:
        link.hold()
        one.sendall(b"later")
        assert silent(one)
        # The system takes new connections, as a machine does whose packets are dropped on the way back.
        with socket.create_connection(("127.0.0.1", link.port), SOON) as other:
            assert silent(other)
            link.heal()
            assert read(one, 5) == b"later"
            assert read(other, 1) == b"a"


def test_a_held_link_that_is_reset_loses_what_it_held(network: Network, server: Callable[[bytes], int]) -> None:
    link = network.link(server(b"a"))
    with connected(link) as one:
        link.hold()
        one.sendall(b"lost")
        assert silent(one)
        link.heal(reset=True)
        with pytest.raises(ConnectionResetError):
            one.recv(1)
    connected(link).close()


def test_a_cut_link_resets(network: Network, server: Callable[[bytes], int]) -> None:
    link = network.link(server(b"a"))
    with connected(link) as one:
        link.cut()
        with pytest.raises(ConnectionResetError):
            one.recv(1)
        assert turned_away(link)
        link.heal()
        connected(link).close()


def test_a_slow_link_takes_its_time_and_keeps_the_order(network: Network, server: Callable[[bytes], int]) -> None:
    link = network.link(server(b"a"))
    with connected(link) as one:
        link.slow(WHILE)
        started = time.monotonic()
        for piece in (b"1", b"2", b"3"):
            one.sendall(piece)
        assert read(one, 3) == b"123"
        assert time.monotonic() - started >= 2 * WHILE
        link.slow(0)
        one.sendall(b"4")
        assert read(one, 1) == b"4"


def test_connections_go_to_the_next_that_is_there(network: Network, server: Callable[[bytes], int]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        nobody = gone.getsockname()[1]
    link = network.link(server(b"a"), nobody, server(b"b"))
    for word in (b"a", b"b", b"a"):
        connected(link, word).close()
    away = network.link(nobody)
    assert turned_away(away)
