"""Floods of one address on port 4506: they cost a bounded part of the reqserver, and other addresses are served."""

from __future__ import annotations

import contextlib
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from saltern.kit.config.master import MasterOptions
from saltern.reqserver.minion_port import ADDRESS_BURST, MinionPort
from tests.saltwire.test_zmtp import GREETING, frame, ready, request

#: What one address may do at once here: 30 connections and 60 requests, and one and two a second from then on.
CONNECTIONS, REQUESTS = 30, 60
HELLO = GREETING + ready(b"DEALER", b"")
#: Address of the attacker; the honest minion has 127.0.0.1.
ATTACKER = "127.0.0.2"


@pytest.fixture
def port() -> Iterator[MinionPort]:
    made = MinionPort(
        "127.0.0.1",
        0,
        max_bytes=1 << 20,
        max_held=1 << 22,
        connections_per_second=CONNECTIONS / ADDRESS_BURST,
        requests_per_second=REQUESTS / ADDRESS_BURST,
    )
    yield made
    made.close()


def connect(port: int, address: str = ATTACKER) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=5, source_address=(address, 0))


def again_and_again(port: int) -> None:
    for _ in range(300):
        with contextlib.suppress(OSError), connect(port) as one:
            one.sendall(HELLO + request(b"x"))


def many_at_once(port: int) -> None:
    held = []
    for _ in range(300):
        with contextlib.suppress(OSError):
            held.append(connect(port))
            held[-1].sendall(HELLO + request(b"x") * 3)
    for one in held:
        one.close()


def requests(port: int) -> None:
    with contextlib.suppress(OSError), connect(port) as one:
        one.settimeout(1)
        one.sendall(HELLO)
        for _ in range(500):
            one.sendall(request(b"x") * 2000)


def requests_on_many_connections(port: int) -> None:
    held = [connect(port) for _ in range(CONNECTIONS)]
    for _ in range(50):
        for one in held:
            with contextlib.suppress(OSError):
                one.settimeout(0.01)
                one.sendall(HELLO + request(b"x") * 4)
    for one in held:
        one.close()


def broken_frames(port: int) -> None:
    for _ in range(300):
        with contextlib.suppress(OSError), connect(port) as one:
            one.sendall(HELLO + b"\xff" * 100)


def half_handshakes(port: int) -> None:
    for _ in range(300):
        with contextlib.suppress(OSError), connect(port) as one:
            one.sendall(GREETING[:20])


def empty_frames(port: int) -> None:
    with contextlib.suppress(OSError), connect(port) as one:
        one.settimeout(1)
        one.sendall(HELLO)
        for _ in range(500):
            one.sendall((frame(b"", more=True) + frame(b"")) * 2000)


FLOODS: tuple[Callable[[int], None], ...] = (
    again_and_again,
    many_at_once,
    requests,
    requests_on_many_connections,
    broken_frames,
    half_handshakes,
    empty_frames,
)


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.__name__)
def test_a_flood_of_one_address_is_bounded(port: MinionPort, flood: Callable[[int], None]) -> None:
    attacker = threading.Thread(target=flood, args=(port.port,), daemon=True)
    attacker.start()
    arrived, answered, deadline = 0, 0, time.monotonic() + 4
    with connect(port.port, "127.0.0.1") as minion:
        minion.sendall(HELLO + request(b"honest"))
        while time.monotonic() < deadline and (attacker.is_alive() or not answered):
            for each in port.arrived(time.monotonic()):
                arrived += each.address == ATTACKER
                answered += each.payload == b"honest"
            port.tick(time.monotonic())
            assert len(port) - 1 <= CONNECTIONS + 10
    assert answered == 1
    # What one read of each connection brings may come on top: the rate is measured afterwards.
    one_read = 256 * 1024 // len(request(b"x"))
    assert arrived <= REQUESTS + 10 + one_read
    assert {address for _, address in port.limited} <= {ATTACKER}
    assert port.limited, "the flood met no limit"


def test_a_thousand_minions_behind_one_address_reconnect_at_once() -> None:
    """The defaults do not touch a fleet behind NAT whose master was away."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(1000, (hard - 200) // 2)
    options = MasterOptions()
    port = MinionPort(
        "127.0.0.1",
        0,
        max_bytes=1 << 20,
        max_held=1 << 26,
        connections_per_second=options.address_connections_per_second,
        requests_per_second=options.address_requests_per_second,
    )
    arrived, minions = 0, []
    try:
        for _ in range(3):
            for _ in range(count):
                minions.append(connect(port.port, "127.0.0.1"))
                minions[-1].sendall(HELLO + request(b"x") * 5)
                arrived += len(list(port.arrived(time.monotonic())))
            deadline = time.monotonic() + 20
            while arrived < len(minions) * 5 and time.monotonic() < deadline:
                arrived += len(list(port.arrived(time.monotonic())))
            assert arrived % (count * 5) == 0
            for minion in minions[-count:]:
                minion.close()
        assert arrived == 3 * count * 5
        assert not port.limited
    finally:
        for minion in minions:
            minion.close()
        port.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
