"""Port 4506 against libzmq's sockets, and against strangers that occupy it."""

from __future__ import annotations

import contextlib
import gc
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from saltern.kit.config.reading import ConfigError
from saltern.reqserver.minion_port import ADDRESS_BURST, Arrived, MinionPort, network_of
from tests.saltwire.test_zmtp import GREETING, frame, ready, request

MOST = 4 * 1024 * 1024


@pytest.fixture
def port() -> Iterator[MinionPort]:
    made = MinionPort("127.0.0.1", 0, max_bytes=MOST, max_held=MOST, most=20)
    yield made
    made.close()


def turns(port: MinionPort, seconds: float = 0.3, *, until: int = 1) -> list[Arrived]:
    """What arrives within some seconds, at most ``until`` requests."""
    found: list[Arrived] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and len(found) < until:
        found += port.arrived(time.monotonic())
        time.sleep(0.001)
    return found


def stranger(port: MinionPort, identity: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port.port), timeout=5)
    made.sendall(GREETING + ready(b"DEALER", identity))
    made.setblocking(False)
    seen, deadline = b"", time.monotonic() + 5
    while len(seen) <= len(GREETING) and time.monotonic() < deadline:
        turns(port, 0.002)
        with contextlib.suppress(BlockingIOError):
            seen += made.recv(1000)
    made.settimeout(5)
    return made


def emptied(port: MinionPort, count: int = 0) -> None:
    """Wait until so many connections are left."""
    deadline = time.monotonic() + 5
    while len(port) > count and time.monotonic() < deadline:
        turns(port, 0.01, until=1_000_000)
    assert len(port) == count


@pytest.mark.parametrize("kind", [zmq.REQ, zmq.DEALER])
@pytest.mark.parametrize("size", [0, 300, 3_000_000])
def test_sockets_of_libzmq_are_served(port: MinionPort, kind: int, size: int) -> None:
    with zmq.Context() as context, context.socket(kind) as minion:
        minion.setsockopt(zmq.LINGER, 0)
        minion.setsockopt(zmq.HEARTBEAT_IVL, 20)
        minion.setsockopt(zmq.HEARTBEAT_TIMEOUT, 2000)
        minion.setsockopt(zmq.ROUTING_ID, b"salt-req/minion/web1/1/0")
        minion.connect(f"tcp://127.0.0.1:{port.port}")
        for number in range(3):
            payload = bytes([number]) * size
            minion.send_multipart([payload] if kind == zmq.REQ else [b"", payload])
            (arrived,) = turns(port, 10)
            assert (arrived.payload, arrived.address) == (payload, "127.0.0.1")
            port.send(arrived.route, payload + b"!")
            while not minion.poll(1):
                turns(port, 0.01)
            assert minion.recv_multipart()[-1] == payload + b"!"
        turns(port, 0.2)
        assert len(port) == 1


def test_an_identity_means_nothing(port: MinionPort) -> None:
    first, second = stranger(port, b"same"), stranger(port, b"same")
    first.sendall(request(b"one"))
    second.sendall(request(b"two"))
    found = {one.payload: one.route for one in turns(port, 5, until=2)}
    port.send(found[b"one"], b"for one")
    assert first.recv(100).endswith(b"for one")
    port.send(found[b"two"], b"for two")
    assert second.recv(100).endswith(b"for two")


def test_broken_connections_leave_no_descriptor(port: MinionPort) -> None:
    # What other tests of this process have left unclosed is closed now, not while this one counts.
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(15):
        one, other = stranger(port, b"same"), stranger(port, b"same")
        one.sendall(request(b"x") * 500)
        turns(port, 0.01)
        one.close()
        other.close()
    emptied(port)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_most_silent_connection_makes_room(port: MinionPort) -> None:
    silent = [stranger(port) for _ in range(19)]
    minion = stranger(port)
    silent[0].sendall(request(b"x"))
    assert turns(port, 5)
    more = [stranger(port) for _ in range(18)]
    minion.sendall(request(b"y"))
    silent[0].sendall(request(b"z"))
    assert {one.payload for one in turns(port, 5, until=2)} == {b"y", b"z"}
    assert len(port) == 20
    for one in (*silent, *more, minion):
        one.close()


def test_incomplete_requests_are_bounded(port: MinionPort) -> None:
    half = frame(b"", more=True) + frame(b"x" * (MOST - 100))[:-1]
    peers = [stranger(port) for _ in range(8)]
    for peer in peers:
        peer.setblocking(False)
        sent, deadline = 0, time.monotonic() + 5
        while sent < len(half) and time.monotonic() < deadline:
            try:
                sent += peer.send(half[sent:])
            except (BlockingIOError, ConnectionError):
                turns(port, 0.005)
    turns(port, 0.1)
    assert port._held <= 2 * MOST
    assert len(port) < 8
    for peer in peers:
        peer.close()


def test_a_peer_that_reads_no_answers_is_not_read(port: MinionPort) -> None:
    peer = stranger(port)
    peer.sendall(request(b"x"))
    (arrived,) = turns(port, 5)
    for _ in range(5):
        port.send(arrived.route, b"y" * MOST)
    peer.sendall(request(b"more"))
    assert turns(port, 0.1) == []
    peer.close()


def test_a_handshake_ends(port: MinionPort) -> None:
    half = socket.create_connection(("127.0.0.1", port.port))
    whole = stranger(port)
    deadline = time.monotonic() + 5
    while len(port) < 2 and time.monotonic() < deadline:
        turns(port, 0.01)
    port.tick(time.monotonic() + 31)
    assert len(port) == 1
    half.close()
    whole.close()


def test_a_port_that_is_taken_is_named(port: MinionPort) -> None:
    with pytest.raises(ConfigError, match=f"ret_port: cannot listen on 127.0.0.1:{port.port}"):
        MinionPort("127.0.0.1", port.port, max_bytes=1, max_held=1)


@pytest.fixture
def limited() -> Iterator[MinionPort]:
    """Two connections and five requests at once of one address."""
    made = MinionPort(
        "127.0.0.1",
        0,
        max_bytes=MOST,
        max_held=MOST,
        connections_per_second=2 / ADDRESS_BURST,
        requests_per_second=5 / ADDRESS_BURST,
    )
    yield made
    made.close()


def test_new_connections_of_one_address_have_a_rate(limited: MinionPort) -> None:
    strangers = [socket.create_connection(("127.0.0.1", limited.port), timeout=5) for _ in range(5)]
    turns(limited, 0.2)
    # A sender is served while it has not used all of its rate: one more than two.
    assert len(limited) == 3
    assert limited.limited == {("connections", "127.0.0.1"): 2}
    for refused in strangers[3:]:
        with pytest.raises(ConnectionResetError):
            refused.recv(100)
    # Time passes, and others may connect.
    other = socket.create_connection(("127.0.0.1", limited.port), timeout=5, source_address=("127.0.0.2", 0))
    again = socket.create_connection(("127.0.0.1", limited.port), timeout=5)
    list(limited.arrived(time.monotonic() + ADDRESS_BURST))
    assert len(limited) == 5
    for one in (*strangers, other, again):
        one.close()


def test_requests_above_the_rate_wait_and_are_not_lost(limited: MinionPort) -> None:
    one, other = stranger(limited), stranger(limited)
    one.sendall(request(b"a") * 4)
    assert len(turns(limited, 0.2, until=100)) == 4
    other.sendall(request(b"b") * 4)
    assert len(turns(limited, 0.2, until=100)) == 4
    # 8 of 5: both wait, as does what they send now.
    one.sendall(request(b"c"))
    other.sendall(request(b"d"))
    assert turns(limited, 0.2) == []
    assert set(limited.limited) == {("requests", "127.0.0.1")}
    now = time.monotonic()
    limited.tick(now)
    assert list(limited.arrived(now)) == []
    later = now + ADDRESS_BURST
    limited.tick(later)
    assert sorted(each.payload or b"" for each in limited.arrived(later)) == [b"c", b"d"]
    for each in (one, other):
        each.close()


def test_a_connection_that_broke_while_it_waited_is_closed(limited: MinionPort) -> None:
    one = stranger(limited)
    one.sendall(request(b"a") * 9)
    turns(limited, 0.2, until=9)
    one.sendall(request(b"b"))
    turns(limited, 0.1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    one.close()
    emptied(limited)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_a_host_is_one_address(address: str, network: str) -> None:
    assert network_of(address) == network


def test_a_minion_has_gone_when_its_last_connection_ended(port: MinionPort, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, job = (stranger(port) for _ in range(3))
    routes: list[bytes] = []
    for one in (first, second, job):
        one.sendall(request(b"x"))
        routes += [arrived.route for arrived in turns(port, 5)]
    now = time.monotonic()
    assert [port.minion_of(route) for route in routes] == ["", "", ""]
    for route in routes[:2]:
        port.bind(route, "web1")
    port.bind(routes[2], "web2")
    # What a connection proved first, it stays.
    port.bind(routes[2], "web1")
    assert (port.minion_of(routes[2]), sorted(port.connected())) == ("web2", ["web1", "web2"])
    monkeypatch.setattr("time.monotonic", lambda: now + 60)
    first.close()
    emptied_at(port, 2)
    assert port.left(now + 120) == {}
    second.close()
    emptied_at(port, 1)
    assert port.connected() == ["web2"]
    assert port.left(now + 60.5) == {}, "it may connect again"
    assert port.left(now + 62) == {"web1": 2.0}
    assert port.left(now + 63) == {}, "told once"


def test_a_connection_of_a_moment_says_nothing_about_its_minion(port: MinionPort) -> None:
    """A job's process has its own connection; so has every request of minions of old releases."""
    with stranger(port) as job:
        job.sendall(request(b"x"))
        (arrived,) = turns(port, 5)
        port.bind(arrived.route, "web1")
    emptied(port)
    assert (port.connected(), port.left(time.monotonic() + 60)) == ([], {})


def emptied_at(port: MinionPort, count: int) -> None:
    """Read until so many connections are left, whatever the clock says."""
    for _ in range(5000):
        list(port.arrived(0.0))
        if len(port) <= count:
            return
    raise AssertionError(f"{len(port)} connections are left")
