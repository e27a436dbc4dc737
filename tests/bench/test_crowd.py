"""Simulated minions speak as libzmq does, and count as signed in only where a real minion would be."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest
import zmq

from bench.crowd import Crowd, Listening, Simulated
from bench.zmtp import SUBSCRIBE_ALL, Connection
from saltwire.busy import busy_answer
from saltwire.crypticle import Crypticle
from saltwire.envelope import parse_request
from saltwire.handshake import SignInRequest, parse_sign_in, refusal_reply, success_reply
from saltwire.keys import PrivateKey, PublicKey, generate_key_string
from saltwire.pack import packb
from saltwire.publication import seal_job

#: Milliseconds that anything here may take.
DEADLINE = 60_000


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    made: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield made
    made.destroy(linger=0)


def bound(context: zmq.Context[zmq.Socket[bytes]], kind: int, **options: int) -> tuple[zmq.Socket[bytes], int]:
    one = context.socket(kind)
    one.setsockopt(zmq.RCVTIMEO, DEADLINE)
    for name, value in options.items():
        one.setsockopt(getattr(zmq, name), value)
    return one, one.bind_to_random_port("tcp://127.0.0.1")


def next_message(connection: Connection) -> list[bytes]:
    while not (found := connection.receive()):
        pass
    return found[0]


@pytest.mark.parametrize("size", [0, 1, 255, 256, 300_000])
def test_a_message_goes_there_and_back(context: zmq.Context[zmq.Socket[bytes]], size: int) -> None:
    router, port = bound(context, zmq.ROUTER)
    connection = Connection(b"DEALER")
    connection.connect(port)
    connection.await_ready()
    connection.send(b"", b"x" * size)
    route, *frames = router.recv_multipart()
    assert frames == [b"", b"x" * size]
    router.send_multipart([route, b"", b"y" * size])
    assert next_message(connection) == [b"", b"y" * size]
    connection.close()


def test_messages_that_arrive_together_are_told_apart(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    router, port = bound(context, zmq.ROUTER)
    connection = Connection(b"DEALER")
    connection.connect(port)
    connection.await_ready()
    connection.send(b"")
    route, _ = router.recv_multipart()
    for number in range(100):
        router.send_multipart([route, b"", b"%d" % number])
    found: list[list[bytes]] = []
    while len(found) < 100:
        found += connection.receive()
    assert found == [[b"", b"%d" % number] for number in range(100)]
    connection.close()


def test_a_subscriber_gets_every_topic(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    publisher, port = bound(context, zmq.XPUB)
    connection = Connection(b"SUB")
    connection.connect(port)
    connection.await_ready()
    connection.send(SUBSCRIBE_ALL)
    assert publisher.recv() == SUBSCRIBE_ALL
    publisher.send_multipart([b"topic", b"job"])
    assert next_message(connection) == [b"topic", b"job"]
    connection.close()


def test_a_heartbeat_is_answered(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    # Who does not answer loses the connection after HEARTBEAT_TIMEOUT; each of its beats wakes the reader.
    router, port = bound(context, zmq.ROUTER, HEARTBEAT_IVL=50, HEARTBEAT_TIMEOUT=20_000)
    monitor = router.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    connection = Connection(b"DEALER")
    connection.connect(port)
    connection.await_ready()
    for _ in range(3):
        assert connection.receive() == []
    connection.send(b"", b"still here")
    assert router.recv_multipart()[1:] == [b"", b"still here"]
    assert not monitor.poll(0)
    connection.close()


def test_a_connection_that_ends_is_an_error(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    router, port = bound(context, zmq.ROUTER)
    connection = Connection(b"DEALER")
    connection.connect(port)
    connection.await_ready()
    router.close(linger=0)
    with pytest.raises(ConnectionError, match="ended"):
        connection.receive()


class Master(threading.Thread):
    """Answers so many sign-ins, each as ``answer`` says."""

    def __init__(self, router: zmq.Socket[bytes], count: int, answer: Callable[[bytes], bytes]) -> None:
        super().__init__(daemon=True)
        self._router, self._count, self._answer = router, count, answer

    def run(self) -> None:
        for _ in range(self._count):
            route, empty, payload = self._router.recv_multipart()
            self._router.send_multipart([route, empty, self._answer(payload)])


@pytest.fixture(scope="module")
def master_keys() -> tuple[PrivateKey, PrivateKey]:
    return PrivateKey.generate(2048), PrivateKey.generate(2048)


def read(payload: bytes) -> SignInRequest:
    envelope = parse_request(payload)
    return parse_sign_in(envelope.load, version=envelope.version)


def welcome(request: SignInRequest, key: PrivateKey, aes: str = "", session: str = "") -> bytes:
    return success_reply(
        request,
        PublicKey.from_pem(request.pub),
        master_key=key,
        aes_key_string=aes or generate_key_string(),
        session_key_string=session or generate_key_string(),
        publish_port=4505,
    )


WRONG: Mapping[str, Callable[[SignInRequest, tuple[PrivateKey, PrivateKey]], bytes]] = {
    "a refusal": lambda request, keys: refusal_reply(request, False, master_key=keys[0]),
    "another master's": lambda request, keys: welcome(request, keys[1]),
    "without its token": lambda request, keys: welcome(replace(request, token=None), keys[0]),
    "to another request": lambda request, keys: welcome(replace(request, nonce="0" * 32), keys[0]),
    "an error": lambda request, keys: packb("bad load"),
    "nothing": lambda request, keys: b"",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_only_answers_that_a_minion_believes_count(
    context: zmq.Context[zmq.Socket[bytes]], master_keys: tuple[PrivateKey, PrivateKey], wrong: str
) -> None:
    router, port = bound(context, zmq.ROUTER)
    crowd = Crowd("crowd", 2, port, port, tokens=True)

    def answer(payload: bytes) -> bytes:
        request = read(payload)
        bad = request.id == "crowd00001" and request.token is not None
        return WRONG[wrong](request, master_keys) if bad else welcome(request, master_keys[0])

    for expected in (2, 1):
        master = Master(router, 2, answer)
        master.start()
        sign_ins = crowd.sign_ins()
        told = crowd.storm(sign_ins)
        master.join(DEADLINE / 1000)
        assert told["seconds"] > 0
        assert crowd.looked_at(sign_ins) == expected


def test_a_job_is_answered_by_each(
    context: zmq.Context[zmq.Socket[bytes]],
    master_keys: tuple[PrivateKey, PrivateKey],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    router, port = bound(context, zmq.ROUTER)
    publisher, publish_port = bound(context, zmq.XPUB, XPUB_VERBOSE=1)
    aes, session = generate_key_string(), generate_key_string()
    crowd = Crowd("crowd", 2, port, publish_port, tokens=False)
    master = Master(router, 2, lambda payload: welcome(read(payload), master_keys[0], aes, session))
    master.start()
    sign_ins = crowd.sign_ins()
    crowd.storm(sign_ins)
    master.join(DEADLINE / 1000)
    assert crowd.looked_at(sign_ins) == 2
    typed, typing = os.pipe()
    monkeypatch.setattr("sys.stdin", os.fdopen(typed))
    listening = threading.Thread(target=crowd.listen, daemon=True)
    listening.start()
    assert {publisher.recv(), publisher.recv()} == {SUBSCRIBE_ALL}
    job = {"jid": "20260101000000000000", "fun": "test.ping", "arg": [], "tgt": "*", "tgt_type": "glob", "ret": ""}
    publisher.send(seal_job(job, Crypticle(aes), master_keys[0], "PKCS1v15-SHA1", 1))
    returns = {}
    for _ in range(2):
        _, _, payload = router.recv_multipart()
        envelope = parse_request(payload)
        load = Crypticle(session).loads(envelope.load)
        returns[load["id"]] = load["return"]
    assert returns == {"crowd00000": True, "crowd00001": True}
    os.close(typing)
    listening.join(DEADLINE / 1000)
    assert not listening.is_alive()


def test_minions_that_listen_connect_again_and_keep_answering(
    context: zmq.Context[zmq.Socket[bytes]], master_keys: tuple[PrivateKey, PrivateKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.crowd._RECON_DEFAULT", 0.01)
    monkeypatch.setattr("bench.crowd._RECON_MAX", 0.02)
    minions = [Simulated(f"m{number}", master_keys[0]) for number in range(3)]
    killed: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    # A socket without a name would be closed at once.
    (first_router, ret_port), (first_publisher, publish_port) = bound(killed, zmq.ROUTER), bound(killed, zmq.XPUB)
    # An answer larger than what a socket takes at once.
    listening = Listening(
        minions, ret_port, publish_port, lambda minion, job: lambda: job + minion.id.encode() * 1_000_000
    )
    (typed, lines), (told, printed) = os.pipe(), os.pipe()
    with open(typed) as source, open(lines, "w") as to, open(told) as found, open(printed, "w") as out:
        thread = threading.Thread(target=listening.run, args=(source, out))
        thread.start()
        try:
            assert json.loads(found.readline())["listening"] == 3
            to.write("go\n")
            to.flush()
            # Returns when the ports are free.
            killed.destroy(linger=0)
            assert first_router.closed
            assert first_publisher.closed
            router, publisher = context.socket(zmq.ROUTER), context.socket(zmq.XPUB)
            publisher.setsockopt(zmq.XPUB_VERBOSE, 1)
            for one, port in ((router, ret_port), (publisher, publish_port)):
                one.setsockopt(zmq.RCVTIMEO, DEADLINE)
                one.bind(f"tcp://127.0.0.1:{port}")
            numbers = json.loads(found.readline())
            assert numbers["late"] == 0
            assert 0 < numbers["slowest"] < 5
            for _ in minions:
                assert publisher.recv() == b"\x01"
            publisher.send(b"job ")
            answers = {router.recv_multipart()[-1] for _ in minions}
            assert answers == {b"job " + minion.id.encode() * 1_000_000 for minion in minions}
        finally:
            to.close()
            thread.join(DEADLINE / 1000)


def test_a_return_is_sent_again_until_it_is_acknowledged(
    context: zmq.Context[zmq.Socket[bytes]], master_keys: tuple[PrivateKey, PrivateKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.crowd._RECON_DEFAULT", 0.01)
    monkeypatch.setattr("bench.crowd._RECON_MAX", 0.02)
    monkeypatch.setattr("bench.crowd._AGAIN", 0.2)
    (router, ret_port), (publisher, publish_port) = bound(context, zmq.ROUTER), bound(context, zmq.XPUB)
    listening = Listening([Simulated("m", master_keys[0])], ret_port, publish_port, lambda _, job: lambda: job)
    (typed, lines), (told, printed) = os.pipe(), os.pipe()
    with open(typed) as source, open(lines, "w") as to, open(told) as found, open(printed, "w") as out:
        thread = threading.Thread(target=listening.run, args=(source, out))
        thread.start()
        try:
            assert json.loads(found.readline())["listening"] == 1
            assert publisher.recv() == b"\x01"
            publisher.send(b"first")
            publisher.send(b"second")
            first, _, body = router.recv_multipart()
            again, _, repeated = router.recv_multipart()
            assert (body, repeated) == (b"first", b"first")
            assert again != first, "the late answer of the first connection could come for another return"
            router.send_multipart([again, b"", busy_answer(0.05)])
            refused, _, repeated = router.recv_multipart()
            assert repeated == b"first", "a refused return counts as one that was acknowledged"
            assert refused == again, "the master named a shorter time than that of a return without an answer"
            router.send_multipart([refused, b"", b"acknowledged"])
            assert router.recv_multipart()[-1] == b"second"
        finally:
            to.close()
            thread.join(DEADLINE / 1000)
