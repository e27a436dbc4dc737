"""When a minion leaves its master: over real sockets on loopback, without a minion."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest
import zmq

from saltern.minion.master.failover import ANSWER_WITHIN, Failback, Failover, MasterLost
from saltwire.zmq import Connection


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


def lost(failover: Failover, now: float | None = None) -> MasterLost | None:
    try:
        failover.check(time.monotonic() if now is None else now)
    except MasterLost as error:
        return error
    return None


def test_a_master_that_is_gone_is_left(context: zmq.Context[Any], eventually: Any) -> None:
    publisher, endpoint = bound(context, zmq.XPUB)
    subscription = context.socket(zmq.SUB)
    subscription.setsockopt(zmq.LINGER, 0)
    subscription.setsockopt(zmq.SUBSCRIBE, b"")
    failover = Failover("m", endpoint, 0.01)
    connection = Connection(subscription)
    failover.begin(context, connection, time.monotonic())
    subscription.connect(endpoint)
    # The subscription has arrived: so there is a connection.
    assert publisher.poll(20_000)
    eventually(lambda: failover._connection is not None and failover._connection.up())
    assert lost(failover) is None
    publisher.close()
    error = eventually(lambda: lost(failover))
    assert (str(error), error.back) == ("the connection to the master m is lost", False)
    failover.close()
    connection.close()
    subscription.close()


@pytest.fixture
def connected(context: zmq.Context[Any], eventually: Any) -> Iterator[tuple[Connection, zmq.Socket[bytes]]]:
    """A subscription that has its publisher, and what answers requests of the same master."""
    publisher, endpoint = bound(context, zmq.XPUB)
    subscription = context.socket(zmq.SUB)
    subscription.setsockopt(zmq.LINGER, 0)
    subscription.setsockopt(zmq.SUBSCRIBE, b"")
    connection = Connection(subscription)
    subscription.connect(endpoint)
    eventually(connection.up)
    requests, _ = bound(context, zmq.ROUTER)
    yield connection, requests
    connection.close()
    for socket in (subscription, publisher, requests):
        socket.close()


def test_a_master_that_owes_an_answer_for_long_is_left(
    context: zmq.Context[Any], connected: tuple[Connection, zmq.Socket[bytes]]
) -> None:
    connection, requests = connected
    failover = Failover("m", requests.last_endpoint.decode(), 1.0)
    failover.begin(context, connection, 0.0)
    # It is asked at the first look, which is after one second.
    looks = itertools.takewhile(lambda now: lost(failover, now) is None, itertools.count(0.0, 0.5))
    assert list(looks)[-1] == ANSWER_WITHIN + 0.5
    error = lost(failover, ANSWER_WITHIN + 2.0)
    assert (str(error), error is not None and error.back) == ("the master m has not answered for 21 s", False)
    # And again and again meanwhile: a master that was restarted would not know of the first question.
    asked = [requests.recv_multipart()[-1] for _ in itertools.takewhile(lambda _: requests.poll(1000), range(4))]
    assert len(asked) == 4
    assert all(b"ping" in payload for payload in asked)
    failover.close()


def test_a_master_that_answers_late_is_kept_and_asked_again(
    context: zmq.Context[Any], connected: tuple[Connection, zmq.Socket[bytes]], eventually: Any
) -> None:
    connection, requests = connected
    failover = Failover("m", requests.last_endpoint.decode(), 1.0)
    failover.begin(context, connection, 0.0)
    for start in (0.0, 100.0):
        for now in range(int(ANSWER_WITHIN)):
            assert lost(failover, start + now) is None
        assert requests.poll(20_000)
        frames = requests.recv_multipart()
        assert failover._own is not None
        requests.send_multipart([*frames[:-1], b"any answer"])
        eventually(lambda now=start + ANSWER_WITHIN - 1: lost(failover, now) is None and failover._own is None)
        while requests.poll(0):
            requests.recv_multipart()
    failover.close()


def test_a_minion_that_stood_still_itself_leaves_nobody_for_it(
    context: zmq.Context[Any], connected: tuple[Connection, zmq.Socket[bytes]]
) -> None:
    connection, requests = connected
    failover = Failover("m", requests.last_endpoint.decode(), 1.0)
    failover.begin(context, connection, 0.0)
    for now in (1.0, 2.0, 3602.0, 7202.0):
        assert lost(failover, now) is None
    failover.close()


def test_the_first_master_is_asked_until_it_answers(context: zmq.Context[Any], eventually: Any) -> None:
    first, endpoint = bound(context, zmq.ROUTER)
    subscription = context.socket(zmq.SUB)
    failover = Failover("m", "tcp://127.0.0.1:1", 0, endpoint, failback_interval=0.01, ping_timeout=0.05)
    connection = Connection(subscription)
    failover.begin(context, connection, time.monotonic())
    # Not at once, and again when no answer comes.
    for _ in range(2):
        frames = eventually(lambda: lost(failover) is None and first.poll(1) and first.recv_multipart())
        assert b"ping" in frames[-1]
    first.send_multipart([*frames[:-1], b"any answer"])
    error = eventually(lambda: lost(failover))
    assert error.back
    failover.close()
    connection.close()
    subscription.close()
    first.close()


def test_a_first_master_that_does_not_last_is_asked_later_and_later() -> None:
    failback = Failback(30.0)
    # It is lost for the first time: the minion had not gone back to it.
    failback.lost(1000.0)
    pauses = [failback.interval]
    for turn in range(7):
        failback.went(2000.0 + 100.0 * turn)
        failback.lost(2050.0 + 100.0 * turn)
        pauses.append(failback.interval)
    assert pauses == [30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 960.0, 960.0]
    # One that was kept for long is asked as soon as before.
    failback.went(10_000.0)
    failback.lost(20_000.0)
    assert failback.interval == 30.0


def test_nothing_is_looked_for_unless_it_is_wanted(context: zmq.Context[Any]) -> None:
    subscription = context.socket(zmq.SUB)
    failover = Failover("m", "tcp://127.0.0.1:1", 0)
    connection = Connection(subscription)
    failover.begin(context, connection, time.monotonic())
    assert lost(failover) is None
    failover.close()
    connection.close()
    subscription.close()
