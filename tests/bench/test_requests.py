"""Each simulated minion asks one request at a time, and no more than it is told."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest
import zmq

from bench.crowd import Simulated
from bench.requests import KINDS, asked
from saltwire.crypticle import Crypticle
from saltwire.envelope import ClientSession, parse_request
from saltwire.keys import PrivateKey, generate_key_string

#: Seconds that anything here may take.
SOON = 60.0


@pytest.fixture(scope="module")
def key() -> PrivateKey:
    return PrivateKey.generate(2048)


def answered(answers: Callable[[zmq.Socket[bytes]], None], key: PrivateKey, *, seconds: float, most: int | None) -> int:
    """What three minions count that ask a master which answers as told."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    router = context.socket(zmq.ROUTER)
    port = router.bind_to_random_port("tcp://127.0.0.1")
    serving = threading.Thread(target=answers, args=(router,))
    serving.start()
    session = Crypticle(generate_key_string())
    minions = [Simulated(f"m{number}", key, session=ClientSession(f"m{number}", session, key)) for number in range(3)]
    try:
        for one in minions:
            one.requests.connect(port)
            one.requests.await_ready()
        return asked(minions, lambda minion, number: {"cmd": "ping", "id": minion, "n": number}, seconds, most)
    finally:
        for one in minions:
            one.requests.close()
        serving.join(SOON)
        context.destroy(linger=0)


def test_each_minion_asks_so_often(key: PrivateKey) -> None:
    heard: Counter[str] = Counter()

    def answers(router: zmq.Socket[bytes]) -> None:
        for _ in range(3 * 5):
            route, empty, payload = router.recv_multipart()
            heard[parse_request(payload).id] += 1
            router.send_multipart([route, empty, b"answer"])

    assert answered(answers, key, seconds=0.0, most=5) == 15
    assert heard == {"m0": 5, "m1": 5, "m2": 5}


def test_the_last_answers_are_waited_for(key: PrivateKey) -> None:
    def answers(router: zmq.Socket[bytes]) -> None:
        # All three wait when the time is over.
        waiting = [router.recv_multipart() for _ in range(3)]
        time.sleep(0.2)
        for route, empty, _ in waiting:
            router.send_multipart([route, empty, b"answer"])

    assert answered(answers, key, seconds=0.1, most=None) == 3


def test_a_kind_that_ends_by_itself_has_as_many_jobs_as_requests() -> None:
    assert {name for name, kind in KINDS.items() if kind.most} == {"return", "long-return"}
