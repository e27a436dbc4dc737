"""A worker whose connection has ended is noticed; one that connects anew, or does nothing, is not."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import zmq

from saltern.kit.links import frames
from saltern.kit.links.worker_link import NOTHING
from saltern.reqserver.lost_workers import GRACE, LostWorkers

#: Seconds that anything here may take.
SOON = 60.0


class Reqserver:
    """A ROUTER socket with its LostWorkers, and workers that are connected to it."""

    def __init__(self) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.router = self.context.socket(zmq.ROUTER)
        self.router.setsockopt(zmq.ROUTER_HANDOVER, 1)
        self.lost = LostWorkers(self.router)
        self.port = self.router.bind_to_random_port("tcp://127.0.0.1")

    def worker(self, name: bytes) -> zmq.Socket[bytes]:
        one = self.context.socket(zmq.DEALER)
        one.setsockopt(zmq.ROUTING_ID, name)
        one.setsockopt(zmq.LINGER, 0)
        one.setsockopt(zmq.RCVTIMEO, int(SOON * 1000))
        one.connect(f"tcp://127.0.0.1:{self.port}")
        one.send(b"hello")
        assert self.router.poll(int(SOON * 1000))
        assert frames.receive(self.router) == [name, b"hello"]
        return one

    def hear(self, now: float) -> None:
        """Wait for a report of an ended connection, and notice it at the time ``now``."""
        assert self.lost.monitor.poll(int(SOON * 1000))
        self.lost.notice(now)

    def await_no_route(self, name: bytes) -> None:
        """Wait until libzmq has removed the route to an ended worker, which a thread of its own does within milliseconds."""
        deadline = time.monotonic() + SOON
        self.router.setsockopt(zmq.ROUTER_MANDATORY, 1)

        def keep_sending() -> None:
            while time.monotonic() < deadline:
                # Never blocking: a message to the full queue of a route that is about to go would wait for ever.
                frames.send_now(self.router, [name, b""])
                self.router.poll(1)

        with pytest.raises(zmq.ZMQError) as raised:
            keep_sending()
        self.router.setsockopt(zmq.ROUTER_MANDATORY, 0)
        assert raised.value.errno == zmq.EHOSTUNREACH


@pytest.fixture
def reqserver() -> Iterator[Reqserver]:
    made = Reqserver()
    yield made
    made.lost.close()
    made.context.destroy(linger=0)


def test_an_ended_worker_is_gone_after_the_grace(reqserver: Reqserver) -> None:
    stays, ends = reqserver.worker(b"stays"), reqserver.worker(b"ends")
    names = [b"stays", b"ends"]
    assert not reqserver.lost.awaited
    assert reqserver.lost.gone(names, 1000.0) == []
    ends.close()
    reqserver.hear(1000.0)
    reqserver.await_no_route(b"ends")
    assert reqserver.lost.awaited
    assert reqserver.lost.gone(names, 1000.0 + GRACE / 2) == []
    assert reqserver.lost.gone(names, 1000.0 + GRACE) == [b"ends"]
    assert not reqserver.lost.awaited
    assert stays.recv_multipart() == [NOTHING]


def test_a_worker_that_connects_anew_is_not_gone(reqserver: Reqserver) -> None:
    first = reqserver.worker(b"one")
    first.close()
    reqserver.hear(1000.0)
    reqserver.await_no_route(b"one")
    again = reqserver.worker(b"one")
    assert reqserver.lost.gone([b"one"], 1000.0 + GRACE) == []
    assert again.recv_multipart() == [NOTHING]


def test_another_end_before_the_look_is_looked_for_after_its_own_grace(reqserver: Reqserver) -> None:
    first, second = reqserver.worker(b"one"), reqserver.worker(b"two")
    first.close()
    reqserver.hear(1000.0)
    second.close()
    reqserver.hear(1000.0 + GRACE / 2)
    for name in (b"one", b"two"):
        reqserver.await_no_route(name)
    assert reqserver.lost.gone([b"one"], 1000.0 + GRACE) == [b"one"]
    assert reqserver.lost.awaited
    assert reqserver.lost.gone([b"one", b"two"], 1000.0 + 2 * GRACE) == [b"one", b"two"]


def test_messages_to_ended_workers_are_dropped_as_before(reqserver: Reqserver) -> None:
    ends = reqserver.worker(b"ends")
    ends.close()
    reqserver.hear(1000.0)
    reqserver.await_no_route(b"ends")
    assert reqserver.lost.gone([b"ends"], 1000.0 + GRACE) == [b"ends"]
    assert frames.send_now(reqserver.router, [b"ends", b"work"])
