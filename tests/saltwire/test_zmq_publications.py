"""A minion's subscription against a publisher on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import zmq

from saltwire.zmq import subscribe

DEADLINE_MS = 5000


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    with zmq.Context() as made:
        yield made
        made.destroy(linger=0)


@pytest.fixture
def publisher(context: zmq.Context[zmq.Socket[bytes]]) -> tuple[zmq.Socket[bytes], str]:
    socket = context.socket(zmq.XPUB)
    socket.setsockopt(zmq.RCVTIMEO, DEADLINE_MS)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    return socket, f"tcp://127.0.0.1:{port}"


def test_everything_is_heard(context: zmq.Context[zmq.Socket[bytes]], publisher: tuple[zmq.Socket[bytes], str]) -> None:
    sub = subscribe(context, publisher[1], "a", recon_default=10, recon_max=20)
    sub.setsockopt(zmq.RCVTIMEO, DEADLINE_MS)
    # The subscription itself tells when the publisher knows of it (docs/protocol.md#publish-framing).
    assert publisher[0].recv() == b"\x01"
    publisher[0].send(b"one frame")
    publisher[0].send_multipart([b"topic", b"two frames"])
    assert sub.recv_multipart() == [b"one frame"]
    assert sub.recv_multipart() == [b"topic", b"two frames"]


def test_the_options_of_the_socket(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    sub = subscribe(context, "tcp://127.0.0.1:1", "minion-ä", recon_default=1000, recon_max=10000)
    assert sub.getsockopt(zmq.IDENTITY) == "minion-ä".encode()
    assert sub.getsockopt(zmq.LINGER) == 1
    assert sub.getsockopt(zmq.MAXMSGSIZE) == 64 * 1024 * 1024


@pytest.mark.parametrize(("default", "spread"), [(1000, 10000), (100, 0), (0, 0), (5000, 100)])
def test_pauses_are_spread_over_the_range(context: zmq.Context[zmq.Socket[bytes]], default: int, spread: int) -> None:
    pauses: set[int] = set()
    most: set[int] = set()
    for _ in range(20):
        sub = subscribe(context, "tcp://127.0.0.1:1", "a", recon_default=default, recon_max=spread)
        pauses.add(int(sub.getsockopt(zmq.RECONNECT_IVL)))
        most.add(int(sub.getsockopt(zmq.RECONNECT_IVL_MAX)))
        sub.close()
    assert all(default <= pause <= default + spread for pause in pauses)
    assert len(pauses) > 1 or not spread
    # libzmq ignores a largest pause that is smaller than the first.
    assert min(most) >= max(spread, min(pauses))
