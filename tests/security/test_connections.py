"""Connections of strangers to 4505 and 4506: none ends a role, whatever it sends and however it breaks.

The attacker needs no key. It speaks ZMTP byte by byte, because libzmq itself does not send most of this.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from saltern.kit.links.sockets import LinkKeys, connect
from saltwire.envelope import clear_request
from tests.roles.lab import PORTS, SOON, Lab, until

pytestmark = pytest.mark.roles

#: Roles that listen on ports, and what they need to be ready.
ROLES = ("eventpublisher", "reqserver", "mworker", "publisher")

_GREETING = b"\xff" + bytes(7) + b"\x01\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)

#: A heartbeat that asks for an answer.
PING = b"\x04\x07\x04PING\0\0"

#: Seconds in which a role that was hit ends. A stock master's heartbeats are due every ten.
_SETTLED = 1.0
_BEAT = 10.5


class Stranger:
    """A connection of an attacker without a key, which has finished the ZMTP handshake."""

    def __init__(self, port: int, *, kind: bytes = b"DEALER", identity: bytes = b"") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ready = b"\x05READY" + _property(b"Socket-Type", kind) + _property(b"Identity", identity)
        self.socket.sendall(_GREETING + bytes([4, len(ready)]) + ready)
        seen = b""
        while len(seen) < len(_GREETING) + 2:
            if not (read := self.socket.recv(1024)):
                raise ConnectionError("the port closed the connection")
            seen += read

    def send(self, data: bytes) -> None:
        """Send bytes; the peer may have closed the connection, or may not read them."""
        with contextlib.suppress(OSError):
            self.socket.settimeout(1)
            self.socket.sendall(data)

    def reset(self) -> None:
        """End the connection by a reset instead of an orderly end."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def _property(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + struct.pack(">I", len(value)) + value


def message(*frames: bytes) -> bytes:
    """Return the ZMTP bytes of one message with these short frames."""
    return b"".join(bytes([n < len(frames) - 1, len(one)]) + one for n, one in enumerate(frames))


REQUEST = message(b"", b"x")


def shared_identity(lab: Lab) -> None:
    """Open two connections with the same identity, send on both, and break them."""
    for _ in range(10):
        first, second = (Stranger(lab.port["ret_port"], identity=b"same") for _ in range(2))
        second.send(REQUEST)
        first.send(REQUEST * 50)
        first.reset()
        second.reset()


def shared_identity_with_heartbeats(lab: Lab) -> None:
    """Open two connections with the same identity, send requests with heartbeats between them, and break them."""
    for _ in range(10):
        first, second = (Stranger(lab.port["ret_port"], identity=b"same") for _ in range(2))
        second.send((PING + REQUEST) * 20)
        first.send((PING + REQUEST) * 200)
        first.reset()
        second.reset()


def full_queue_with_heartbeats(lab: Lab) -> None:
    """Send more requests than a queue of libzmq holds, a heartbeat after each, and reset the connection."""
    for _ in range(10):
        stranger = Stranger(lab.port["ret_port"])
        stranger.send((REQUEST + PING) * 5000)
        stranger.reset()


def subscriptions_with_heartbeats(lab: Lab) -> None:
    """Send more subscriptions than a queue of libzmq holds, a heartbeat after each, and reset the connection."""
    for _ in range(10):
        stranger = Stranger(lab.port["publish_port"], kind=b"SUB")
        stranger.send((message(b"\1topic") + PING) * 5000)
        stranger.reset()


def short_heartbeats(lab: Lab) -> None:
    """Send heartbeats without the fields that they must have."""
    for port, kind in (("ret_port", b"DEALER"), ("publish_port", b"SUB")):
        stranger = Stranger(lab.port[port], kind=kind)
        stranger.send(b"\x04\x05\x04PING" * 100 + b"\x04\x01\x04" + b"\x04\x00")
        stranger.reset()


def endless_frames(lab: Lab) -> None:
    """Send one message of a hundred thousand frames, and break the connection before its end."""
    stranger = Stranger(lab.port["ret_port"])
    stranger.send(b"\x01\x00" * 100_000)
    stranger.reset()


def other_versions(lab: Lab) -> None:
    """Send greetings of other ZMTP versions and mechanisms, and incomplete ones."""
    signature = b"\xff" + bytes(7) + b"\x01\x7f"
    for greeting in (
        b"\x01\x00",
        b"\x05\x00same" + REQUEST,
        signature + b"\x00\x05\x00\x04same" + REQUEST * 20,
        signature + b"\x01\x05\x00\x04same" + REQUEST * 20,
        signature + b"\x03\x00" + b"CURVE".ljust(20, b"\0") + bytes(32),
        signature + b"\x09\x09" + b"NULL".ljust(20, b"\0") + bytes(32),
        signature,
    ):
        for port in ("ret_port", "publish_port"):
            peer = socket.create_connection(("127.0.0.1", lab.port[port]), timeout=5)
            with contextlib.suppress(OSError):
                peer.sendall(greeting)
            peer.close()


ATTACKS: tuple[Callable[[Lab], None], ...] = (
    shared_identity,
    shared_identity_with_heartbeats,
    full_queue_with_heartbeats,
    subscriptions_with_heartbeats,
    short_heartbeats,
    endless_frames,
    other_versions,
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A running lab with all roles and without minions."""
    made = Lab(tmp_path_factory.mktemp("lab"), minions=())
    made.start_all(*ROLES)
    yield made
    made.close()


def all_live(lab: Lab, seconds: float) -> None:
    """Watch the processes of the lab for ``seconds``; fail as soon as one of them ends."""
    deadline = time.monotonic() + seconds
    while True:
        assert lab.dead() == {}, lab.logs()
        if time.monotonic() > deadline:
            return
        time.sleep(0.05)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_no_connection_ends_a_role(lab: Lab, attack: Callable[[Lab], None]) -> None:
    before = {name: one.pid for name, one in lab.processes.items()}
    with contextlib.suppress(ConnectionError):
        attack(lab)
    all_live(lab, _BEAT if attack is shared_identity else _SETTLED)
    assert {name: one.pid for name, one in lab.processes.items()} == before
    lab.await_ready(*ROLES)


@pytest.mark.parametrize("link", ["control", "workers", "event_pull", "event_pub"])
@pytest.mark.ordinary
def test_roles_send_no_heartbeats_to_each_other(lab: Lab, link: str) -> None:
    # A heartbeat of a role that is killed while its peer's queue is full would end the peer.
    with zmq.Context() as context, context.socket(zmq.DEALER) as one:
        one.setsockopt(zmq.LINGER, 0)
        connect(one, link, lab.master_options, LinkKeys.load(lab.etc / "keys" / "mworker"))
        options = [one.getsockopt(name) for name in (zmq.HEARTBEAT_IVL, zmq.TCP_KEEPALIVE, zmq.TCP_MAXRT)]
    assert options == [0, 1, 3000]


@pytest.mark.ordinary
def test_every_listening_port_is_tried_or_needs_a_key() -> None:
    assert set(PORTS) - {"ret_port", "publish_port"} == {
        "control_port",
        "event_pull_port",
        "event_pub_port",
        "workers_port",
    }


def test_shared_identities_leave_no_file_descriptors(lab: Lab) -> None:
    # libzmq kept the descriptor of each connection whose identity was taken, if it had sent one request more.
    directory = Path(f"/proc/{lab.processes['reqserver'].pid}/fd")
    before = len(list(directory.iterdir()))
    shared_identity(lab)
    until(lambda: len(list(directory.iterdir())) <= before, SOON, "the reqserver closed the connections")


def test_half_requests_on_many_connections_are_bounded(lab: Lab) -> None:
    before, options = lab.memory("reqserver"), lab.master_options
    strangers = [Stranger(lab.port["ret_port"]) for _ in range(12)]
    half = b"\x01\x00\x02" + (options.max_request_bytes - 1).to_bytes(8, "big") + bytes(options.max_request_bytes // 2)
    for stranger in strangers:
        stranger.send(half)
    grown = lab.memory("reqserver") - before
    for stranger in strangers:
        stranger.reset()
    assert grown < 1.5 * options.max_waiting_bytes


def test_the_answers_of_another_connection_are_not_given_away(lab: Lab) -> None:
    ping = clear_request({"cmd": "ping", "id": "web1", "pad": "mine"})
    owner = Stranger(lab.port["ret_port"], identity=b"salt-req/minion/web1/1/0")
    owner.send(b"\x01\x00\x00" + bytes([len(ping)]) + ping)
    thief = Stranger(lab.port["ret_port"], identity=b"salt-req/minion/web1/1/0")
    assert b"mine" in owner.socket.recv(4096)
    thief.socket.settimeout(0.5)
    seen = b""
    with contextlib.suppress(TimeoutError):
        while True:
            seen += thief.socket.recv(4096)
    assert b"mine" not in seen
