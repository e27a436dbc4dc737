"""A minion's request socket against a router on loopback: resending, late answers, deadlines."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import zmq

from saltwire.zmq import NoAnswer, RequestSocket

#: No wait of these tests is longer: milliseconds for sockets, seconds for everything else.
DEADLINE_MS, DEADLINE = 20_000, 20.0


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    with zmq.Context() as made:
        yield made
        made.destroy(linger=0)


@pytest.fixture
def router(context: zmq.Context[zmq.Socket[bytes]]) -> Iterator[tuple[zmq.Socket[bytes], str]]:
    made = context.socket(zmq.ROUTER)
    made.setsockopt(zmq.LINGER, 0)
    made.setsockopt(zmq.RCVTIMEO, DEADLINE_MS)
    port = made.bind_to_random_port("tcp://127.0.0.1")
    yield made, f"tcp://127.0.0.1:{port}"
    made.close()


@pytest.fixture
def asking(context: zmq.Context[zmq.Socket[bytes]], router: tuple[zmq.Socket[bytes], str]) -> Iterator[RequestSocket]:
    made = RequestSocket(context, router[1])
    yield made
    made.close()


def served(router: zmq.Socket[bytes], turns: list[Callable[[list[bytes]], list[list[bytes]]]]) -> threading.Thread:
    """A thread that answers each request by the next of ``turns``: frames in, messages out."""

    def serve() -> None:
        for turn in turns:
            for message in turn(router.recv_multipart()):
                router.send_multipart(message)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def answer(*payloads: bytes) -> Callable[[list[bytes]], list[list[bytes]]]:
    return lambda frames: [[*frames[:2], payload] for payload in payloads]


def ended(thread: threading.Thread) -> None:
    thread.join(DEADLINE)
    assert not thread.is_alive(), "the router waits for a request that did not come"


def test_the_frames_are_reqs(router: tuple[zmq.Socket[bytes], str], asking: RequestSocket) -> None:
    asking.send(b"question")
    identity, delimiter, payload = router[0].recv_multipart()
    assert (delimiter, payload) == (b"", b"question")
    router[0].send_multipart([identity, b"", b"answer"])
    assert asking.receive(DEADLINE) == b"answer"


def test_ask(router: tuple[zmq.Socket[bytes], str], asking: RequestSocket) -> None:
    thread = served(router[0], [answer(b"one"), answer(b"two")])
    assert asking.ask(b"q1", iter([DEADLINE])) == b"one"
    assert asking.ask(b"q2", iter([DEADLINE])) == b"two"
    ended(thread)


def test_the_request_is_sent_again_and_the_same(router: tuple[zmq.Socket[bytes], str], asking: RequestSocket) -> None:
    seen: list[bytes] = []

    def silent(frames: list[bytes]) -> list[list[bytes]]:
        seen.append(frames[2])
        return []

    thread = served(router[0], [silent, silent, answer(b"at last")])
    assert asking.ask(b"question", iter([0.05, 0.05, DEADLINE])) == b"at last"
    ended(thread)
    assert seen == [b"question", b"question"]


def test_a_late_answer_to_the_first_request_is_still_heard(
    router: tuple[zmq.Socket[bytes], str], asking: RequestSocket
) -> None:
    first: list[list[bytes]] = []

    def keep(frames: list[bytes]) -> list[list[bytes]]:
        first.append(frames)
        return []

    # The second request comes: only now the first one is answered.
    thread = served(router[0], [keep, lambda frames: [[*first[0][:2], b"late"]]])
    assert asking.ask(b"question", iter([0.05, DEADLINE])) == b"late"
    ended(thread)


def test_unwanted_answers_are_passed_over(router: tuple[zmq.Socket[bytes], str], asking: RequestSocket) -> None:
    thread = served(router[0], [answer(b"old", b"older", b"wanted")])
    assert asking.ask(b"question", iter([DEADLINE]), wanted=lambda reply: reply == b"wanted") == b"wanted"
    ended(thread)


def test_unwanted_answers_do_not_stretch_the_deadline(
    router: tuple[zmq.Socket[bytes], str], asking: RequestSocket
) -> None:
    thread = served(router[0], [answer(*[b"old"] * 50)])
    started = time.monotonic()
    with pytest.raises(NoAnswer, match=r"no answer from the master at tcp://127\.0\.0\.1:\d+ within \d+ s"):
        asking.ask(b"question", iter([0.2]), wanted=lambda reply: False)
    assert 0.2 <= time.monotonic() - started < DEADLINE
    ended(thread)


@pytest.mark.parametrize("frames", [[b"x", b"y"], [b""], [b"", b"a", b"b"], [b"alone"]], ids=str)
def test_other_frames_are_passed_over(
    router: tuple[zmq.Socket[bytes], str], asking: RequestSocket, frames: list[bytes]
) -> None:
    thread = served(router[0], [lambda request: [[request[0], *frames], [request[0], b"", b"good"]]])
    assert asking.ask(b"question", iter([DEADLINE])) == b"good"
    ended(thread)


def test_nobody_there(context: zmq.Context[zmq.Socket[bytes]], router: tuple[zmq.Socket[bytes], str]) -> None:
    router[0].close()
    lonely = RequestSocket(context, router[1])
    started = time.monotonic()
    with pytest.raises(NoAnswer):
        lonely.ask(b"question", itertools.repeat(0.05, 3))
    assert 0.15 <= time.monotonic() - started < DEADLINE
    lonely.close()


def test_a_request_waits_for_a_master_that_starts_later(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    with socket.socket() as reserved:
        # Bound but not listening: whoever connects is turned away, and nobody else gets the port.
        reserved.bind(("127.0.0.1", 0))
        endpoint = f"tcp://127.0.0.1:{reserved.getsockname()[1]}"
        asking = RequestSocket(context, endpoint)
        asking.send(b"early")
        assert asking.receive(0.02) is None
    late = context.socket(zmq.ROUTER)
    late.setsockopt(zmq.RCVTIMEO, DEADLINE_MS)
    late.bind(endpoint)
    assert late.recv_multipart()[1:] == [b"", b"early"]
    asking.close()
    late.close(linger=0)


def test_receive_without_an_answer_ends_in_time(asking: RequestSocket) -> None:
    started = time.monotonic()
    assert asking.receive(0.05) is None
    assert 0.05 <= time.monotonic() - started < DEADLINE


@pytest.mark.parametrize("timeout", [0, -1.0])
def test_receive_looks_once_when_it_may_not_wait(
    router: tuple[zmq.Socket[bytes], str], asking: RequestSocket, timeout: float
) -> None:
    assert asking.receive(timeout) is None
    thread = served(router[0], [answer(b"there")])
    asking.send(b"question")
    ended(thread)
    assert asking.socket.poll(DEADLINE_MS)
    assert asking.receive(timeout) == b"there"


def test_a_closed_socket_lets_the_context_end(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    asking = RequestSocket(context, "tcp://127.0.0.1:1")
    asking.send(b"never sent")
    asking.close()
    thread = threading.Thread(target=context.term, daemon=True)
    thread.start()
    thread.join(DEADLINE)
    assert not thread.is_alive(), "the unsent request holds the context"


def test_one_that_is_watched_tells_whether_there_is_a_connection(
    context: zmq.Context[zmq.Socket[bytes]], router: tuple[zmq.Socket[bytes], str], eventually: Callable[..., object]
) -> None:
    watched, unwatched = (RequestSocket(context, router[1], watched=each) for each in (True, False))
    assert unwatched.connected()
    eventually(watched.connected)
    router[0].close()
    eventually(lambda: not watched.connected())
    assert unwatched.connected()
    watched.close()
    unwatched.close()


@pytest.mark.parametrize(("again", "heard"), [(True, 2), (False, 1)])
def test_a_request_whose_connection_was_lost_is_sent_again(
    context: zmq.Context[zmq.Socket[bytes]], again: bool, heard: int
) -> None:
    """A reqserver that is killed answers nothing, and the next one has not heard the request."""
    first = context.socket(zmq.ROUTER)
    port = first.bind_to_random_port("tcp://127.0.0.1")
    asking = RequestSocket(context, f"tcp://127.0.0.1:{port}")
    requests: list[bytes] = []

    def serve() -> None:
        requests.append(first.recv_multipart()[2])
        first.close(linger=0)
        second = context.socket(zmq.ROUTER)
        while second.get(zmq.LAST_ENDPOINT) == b"":
            with contextlib.suppress(zmq.ZMQError):
                second.bind(f"tcp://127.0.0.1:{port}")
        if second.poll(DEADLINE_MS if again else 2000):
            frames = second.recv_multipart()
            requests.append(frames[2])
            second.send_multipart([*frames[:2], b"done"])
        second.close(linger=1000)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        began = time.monotonic()
        if again:
            assert asking.ask(b"request", iter([DEADLINE])) == b"done"
            assert time.monotonic() - began < DEADLINE / 2
        else:
            with pytest.raises(NoAnswer):
                asking.ask(b"request", iter([1.5]), again=False)
    finally:
        thread.join(DEADLINE)
        asking.close()
    assert requests == [b"request"] * heard
