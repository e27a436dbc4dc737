"""Measures what the libraries below need for a minion's request, without a line of Python between them: the floor of its CPU time.

python -m bench.floors [--seconds 1]

A request crosses 4506 (ZeroMQ without encryption), goes to a worker and back (CurveZMQ), is decrypted there, its reply is encrypted
(AES-192-CBC and HMAC-SHA256 of OpenSSL), a return or event is one command of Redis, and its event goes to the event publisher
(CurveZMQ). Each part is measured alone, with messages of the same sizes: bare loops that receive and send, a hundred messages in
flight, Redis with a pipeline of a hundred commands. CPU time is that of all processes of the part.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe

import zmq
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from bench.fleet import cpu
from bench.systems import free_ports
from masterstore import redis_parts as redis
from tests.conftest import await_port, redis_program

#: Messages of a part that are in flight at the same time.
_IN_FLIGHT = 100

#: Milliseconds that any message may take.
_PATIENCE = 60_000

_MIB = 1 << 20


@dataclass(frozen=True)
class Request:
    """A kind of request: bytes that come and go, bytes that Redis stores, bytes of its event, and how many make one unit."""

    title: str
    asked: int
    answered: int
    stored: int = 0
    event: int = 0
    requests: int = 1


#: Sizes as bench.requests sends them, with their envelopes.
REQUESTS = {
    "return": Request("return of a published job", 650, 150, stored=900, event=250),
    "long-return": Request("return of 20 kB", 17_000, 150, stored=40_000, event=17_000),
    "event": Request("event of a minion", 650, 150, stored=100, event=300),
    "small-file": Request("file of 4 KiB: hash and two pieces", 600, 1700, requests=3),
    "large-file": Request("MiB of a 64 MiB file", 600, _MIB),
}


def encryption(size: int, seconds: float) -> float:
    """Return the CPU seconds that OpenSSL needs to encrypt ``size`` bytes and to authenticate them (to decrypt takes no longer)."""
    plain = os.urandom(size + -size % 16)
    room = bytearray(len(plain) + 16)
    encryptor = Cipher(algorithms.AES(os.urandom(24)), modes.CBC(os.urandom(16))).encryptor()
    code = HMAC(os.urandom(32), SHA256())

    def once() -> None:
        encryptor.update_into(plain, room)
        mac = code.copy()
        mac.update(plain)
        mac.finalize()

    return _repeated(once, seconds)


def _repeated(once: Callable[[], object], seconds: float) -> float:
    count, began, worked = 0, time.monotonic(), time.process_time()
    while time.monotonic() - began < seconds:
        for _ in range(20):
            once()
        count += 20
    return (time.process_time() - worked) / count


def hop(asked: int, answered: int, seconds: float, *, curve: bool) -> float:
    """Return the CPU seconds of both ends for a message over ZeroMQ and its answer. ``answered`` 0: there is none."""
    (port,) = free_ports(1)
    public, secret = zmq.curve_keypair() if curve else (b"", b"")
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    peer = context.Process(target=_answering, args=(there, port, public, secret, answered))
    peer.start()
    try:
        here.recv()
        count, spent = _asking(port, public, asked, seconds, answers=bool(answered))
        here.send(None)
        return (spent + float(here.recv())) / count
    finally:
        peer.join(60)


def _answering(pipe: Pipe, port: int, public: bytes, secret: bytes, answered: int) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    socket.setsockopt(zmq.LINGER, 0)
    if secret:
        socket.curve_publickey, socket.curve_secretkey, socket.curve_server = public, secret, True
    socket.bind(f"tcp://127.0.0.1:{port}")
    pipe.send(None)
    payload = os.urandom(answered)
    worked = time.process_time()
    while not pipe.poll(0):
        while socket.poll(10):
            route, *_ = socket.recv_multipart()
            if answered:
                socket.send_multipart([route, b"", payload])
    pipe.send(time.process_time() - worked)
    socket.close()
    context.term()


def _asking(port: int, public: bytes, asked: int, seconds: float, *, answers: bool) -> tuple[int, float]:
    """Send messages for so many seconds. Return (their number, CPU seconds of this process)."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.LINGER, _PATIENCE)
    socket.setsockopt(zmq.RCVTIMEO, _PATIENCE)
    socket.setsockopt(zmq.SNDTIMEO, _PATIENCE)
    if public:
        own_public, own_secret = zmq.curve_keypair()
        socket.curve_serverkey, socket.curve_publickey, socket.curve_secretkey = public, own_public, own_secret
    socket.connect(f"tcp://127.0.0.1:{port}")
    payload, count = os.urandom(asked), 0
    in_flight = _IN_FLIGHT if asked < _MIB else 4
    worked, began = time.process_time(), time.monotonic()
    waiting = 0
    while (now := time.monotonic() - began) < seconds or waiting:
        while now < seconds and waiting < in_flight:
            socket.send_multipart([b"", payload])
            waiting += answers
            count += 1
            if not answers:
                break
        if answers:
            socket.recv_multipart()
            waiting -= 1
    spent = time.process_time() - worked
    socket.close()
    context.term()
    return count, spent


@contextmanager
def _redis_server() -> Iterator[tuple[int, redis.Redis]]:
    """Run a Redis with an append-only file; yield its process id and a client."""
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        words = [redis_program(), "--port", str(port), "--bind", "127.0.0.1", "--dir", directory, "--appendonly", "yes"]
        server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        try:
            await_port(port, server)
            yield server.pid, redis.Redis(port=port)
        finally:
            server.terminate()
            server.wait(60)


def store(size: int, seconds: float) -> float:
    """Return the CPU seconds that Redis needs to store ``size`` bytes in a hash, sent in pipelines."""
    value = os.urandom(size)
    with _redis_server() as (pid, client):
        count, before, began = 0, cpu([pid]), time.monotonic()
        while time.monotonic() - began < seconds:
            pipe = client.pipeline(transaction=False)
            for number in range(_IN_FLIGHT):
                pipe.hset("bench", str(number), value)
            pipe.execute()
            count += _IN_FLIGHT
        return (cpu([pid]) - before) / count


def floor(request: Request, seconds: float) -> dict[str, float]:
    """Return {part: CPU milliseconds} for one unit of a request."""
    parts = {
        "4506": hop(request.asked, request.answered, seconds, curve=False),
        "worker": hop(request.asked, request.answered, seconds, curve=True),
        "AES": encryption(request.asked, seconds) + encryption(request.answered, seconds),
    }
    if request.stored:
        parts["Redis"] = store(request.stored, seconds)
    if request.event:
        parts["event"] = hop(request.event, 0, seconds, curve=True)
    return {name: 1000 * value * request.requests for name, value in parts.items()}


def main() -> int:
    """Print the table; return 0."""
    parser = argparse.ArgumentParser(
        prog="bench.floors", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="for each part")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; CPU ms for each, medians of {arguments.rounds}")
    for request in REQUESTS.values():
        taken = [floor(request, arguments.seconds) for _ in range(arguments.rounds)]
        parts = {name: statistics.median(one[name] for one in taken) for name in taken[0]}
        told = ", ".join(f"{name} {value:.3f}" for name, value in parts.items())
        print(f"{request.title:36} {sum(parts.values()):7.3f}   ({told})", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
