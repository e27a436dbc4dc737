"""When a minion leaves its master: over real sockets on loopback, without a minion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import zmq

from saltwire.zmq.connection import Connection
from services.minion.lookout import Lookout, MasterLost


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    made: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield made
    made.destroy(linger=0)


def bound(context: zmq.Context[Any], kind: int) -> tuple[zmq.Socket[bytes], str]:
    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, 0)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    return socket, f"tcp://127.0.0.1:{port}"


def lost(lookout: Lookout) -> MasterLost | None:
    try:
        lookout.look()
    except MasterLost as error:
        return error
    return None


def test_a_master_that_is_gone_is_left(context: zmq.Context[Any], eventually: Any) -> None:
    publisher, endpoint = bound(context, zmq.XPUB)
    subscription = context.socket(zmq.SUB)
    subscription.setsockopt(zmq.LINGER, 0)
    subscription.setsockopt(zmq.SUBSCRIBE, b"")
    lookout = Lookout("m", 0.01)
    connection = Connection(subscription)
    lookout.begin(context, connection)
    subscription.connect(endpoint)
    # The subscription has arrived: so there is a connection.
    assert publisher.poll(20_000)
    eventually(lambda: lookout._connection is not None and lookout._connection.up())
    assert lost(lookout) is None
    publisher.close()
    error = eventually(lambda: lost(lookout))
    assert (str(error), error.back) == ("the connection to the master m is lost", False)
    lookout.close()
    connection.close()
    subscription.close()


def test_the_first_master_is_asked_until_it_answers(context: zmq.Context[Any], eventually: Any) -> None:
    first, endpoint = bound(context, zmq.ROUTER)
    subscription = context.socket(zmq.SUB)
    lookout = Lookout("m", 0, endpoint, failback_interval=0.01, ping_timeout=0.05)
    connection = Connection(subscription)
    lookout.begin(context, connection)
    # Not at once, and again when no answer comes.
    for _ in range(2):
        frames = eventually(lambda: lost(lookout) is None and first.poll(1) and first.recv_multipart())
        assert b"ping" in frames[-1]
    first.send_multipart([*frames[:-1], b"any answer"])
    error = eventually(lambda: lost(lookout))
    assert error.back
    lookout.close()
    connection.close()
    subscription.close()
    first.close()


def test_nothing_is_looked_for_unless_it_is_wanted(context: zmq.Context[Any]) -> None:
    subscription = context.socket(zmq.SUB)
    lookout = Lookout("m", 0)
    connection = Connection(subscription)
    lookout.begin(context, connection)
    assert lost(lookout) is None
    lookout.close()
    connection.close()
    subscription.close()
