"""Garbage, oversized and truncated messages on every port, with and without keys: dropped or answered, and nobody is harmed."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgpack
import pytest
import zmq
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from saltern.kit.links.sockets import LINKS, LinkKeys
from saltern.kit.links.worker_link import HUNG
from tests.roles.conftest import NewLab
from tests.roles.lab import PORTS, SOON, Lab, until

pytestmark = pytest.mark.roles

Context = zmq.Context[zmq.Socket[bytes]]

#: Largest message of the lab's 4506, in bytes.
LARGEST = 1024 * 1024

#: Bytes that a role may have grown after everything below.
GROWTH = 64 * 1024 * 1024

EXAMPLES = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def target(module_labs: NewLab) -> Iterator[Lab]:
    """A lab that logs everything. At the end its processes are the same ones, and small; they said nothing twice."""
    lab = module_labs(options={"max_request_bytes": LARGEST, "log_level": "debug", "auto_accept": False})
    lab.start_all(*lab.roles)
    for minion in lab.minions:
        lab.start(minion)
    until(lambda: lab.keys()["minions_pre"] == list(lab.minions), SOON, "the minions' keys")
    lab.ok("salt-key", "-y", "-A")
    lab.await_ready(*lab.minions)
    lab.pings()
    before = {role: lab.memory(role) for role in lab.roles}
    yield lab
    lab.pings()
    grown = {role: lab.memory(role) - before[role] for role in lab.roles}
    assert max(grown.values()) < GROWTH, grown
    assert lab.keys()["minions"] == list(lab.minions)


@pytest.fixture(autouse=True)
def unharmed(target: Lab) -> Iterator[None]:
    """After each test: everybody lives, answers, has no traceback, and said nothing loud more than once."""
    yield
    target.pings()
    assert target.tracebacks() == []
    said = {role: Counter(loud(target.log(role))) for role in target.roles}
    assert {role: lines for role, lines in said.items() if any(count > 1 for count in lines.values())} == {}


def loud(log: str) -> list[str]:
    """What was said above info, without times and numbers."""
    lines = re.findall(r"^\S+ \S+ \S+ \[(?:WARNING|ERROR|CRITICAL) *\] (.*)$", log, re.MULTILINE)
    return [re.sub(r"\d+", "N", line) for line in lines]


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    made: Context = zmq.Context()
    yield made
    made.destroy(linger=0)


@contextlib.contextmanager
def joined(
    context: Context, lab: Lab, kind: int, port: str, keys: Mapping[int, bytes] | None = None, *, watch: int = 0
) -> Iterator[zmq.Socket[bytes]]:
    """A socket to a port of the lab; ``keys`` are options of CurveZMQ, ``watch`` the events that ``events`` tells."""
    with context.socket(kind) as one:
        one.setsockopt(zmq.LINGER, 0)
        # Who is watched tries once: events that nobody reads fill the monitor, and libzmq waits for ever when it is ended.
        one.setsockopt(zmq.RECONNECT_IVL, -1 if watch else 20)
        for name, value in (keys or {}).items():
            one.setsockopt(name, value)
        if watch:
            # Before the connection is made: what happens first is what counts.
            one.get_monitor_socket(watch)
        one.connect(f"tcp://127.0.0.1:{lab.port[port]}")
        try:
            yield one
        finally:
            if watch:
                one.disable_monitor()


def curve_of(lab: Lab, name: str, link: str) -> dict[int, bytes]:
    """The keys that ``name`` uses on a link."""
    keys = LinkKeys.load(lab.etc / "keys" / name)
    return {
        zmq.CURVE_SECRETKEY: keys.secret,
        zmq.CURVE_PUBLICKEY: keys.public,
        zmq.CURVE_SERVERKEY: keys.server_keys(LINKS[link].server)[0],
    }


def let_in(one: zmq.Socket[bytes]) -> None:
    """Waits for the handshake; what is sent then leaves even if the socket is closed at once."""
    (happened,) = events(one, 1)
    assert happened == zmq.EVENT_HANDSHAKE_SUCCEEDED
    one.setsockopt(zmq.LINGER, int(SOON * 1000))


def events(one: zmq.Socket[bytes], count: int) -> list[int]:
    """What happened to the connection of a watched socket."""
    monitor = one.get_monitor_socket()
    seen: list[int] = []
    while len(seen) < count:
        assert monitor.poll(int(SOON * 1000)), f"nothing happens after {seen}"
        seen.append(struct.unpack("=H", monitor.recv_multipart()[0][:2])[0])
    return seen


#: The ways in which a handshake ends.
HANDSHAKE = (
    zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_DISCONNECTED
)


PING = msgpack.packb({"enc": "clear", "load": {"cmd": "ping"}, "version": 3})


def minion_ping(one: zmq.Socket[bytes]) -> None:
    """4506 answers on this very connection: everything sent on it before has been looked at."""
    one.send_multipart([b"", PING])
    while one.poll(int(SOON * 1000)):
        frames = one.recv_multipart()
        if frames == [b"", msgpack.packb({"cmd": "ping"})]:
            return
    pytest.fail("no answer on 4506")


def control_ping(one: zmq.Socket[bytes]) -> None:
    """The same on 4507."""
    one.send_multipart([b"", b"the last", msgpack.packb({"cmd": "ping"})])
    while one.poll(int(SOON * 1000)):
        frames = one.recv_multipart()
        if frames == [b"", b"the last", msgpack.packb({"ok": {"id": "master_master"}})]:
            return
    pytest.fail("no answer on 4507")


# ------------------------------------------------------------------------------------------------------------- what is sent

frames = st.lists(st.binary(max_size=200), min_size=1, max_size=6)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=40),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | st.integers(0, 9), inner, max_size=4)
    ),
    max_leaves=8,
)
#: Names that envelopes and loads have, with values that they have not.
names = st.sampled_from(
    ["enc", "load", "version", "id", "nonce", "cmd", "sig", "sig_algo", "enc_algo", "tok", "ts", "pub", "token", "jid"]
)
words = st.sampled_from(
    ["clear", "aes", "pub", "_auth", "ping", "_pillar", "_return", "web1", "OAEP-SHA1", "PKCS1v15-SHA1"]
)
loads = st.dictionaries(names, values | words, max_size=8)
envelopes = st.fixed_dictionaries(
    {"enc": st.sampled_from(["clear", "aes", "pub"]) | values, "load": loads | values},
    optional={"version": st.integers(-1, 9) | values, "id": words | values, "sig": values, "enc_algo": words | values},
)
sign_ins = st.fixed_dictionaries(
    {
        "enc": st.just("clear"),
        "version": st.sampled_from([2, 3]),
        "load": st.fixed_dictionaries(
            {"cmd": st.just("_auth"), "id": st.sampled_from(["web1", "web3", "../x", "", "a" * 300]) | values},
            optional={
                "pub": st.just("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----") | values,
                "token": values,
                "nonce": values,
                "enc_algo": words | values,
                "sig_algo": words | values,
                "sig": values,
            },
        ),
    }
)
controls = st.dictionaries(
    st.sampled_from(["cmd", "fun", "tgt", "tgt_type", "arg", "kwarg", "kwargs", "jid", "request_id", "user", "match"]),
    values
    | st.sampled_from(["publish", "runner", "wheel", "job_returns", "nobody", "list", "compound", "key.list_all"]),
    max_size=8,
)

#: A ZMTP 3.0 greeting of the NULL mechanism, and a READY command.
GREETING = b"\xff" + b"\0" * 8 + b"\x7f\x03\0NULL" + b"\0" * 16 + b"\0" + b"\0" * 31
READY = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03REQ"

#: Bytes that end too early, promise too much, or are of another protocol.
STREAMS: Sequence[bytes] = (
    b"",
    b"\0",
    b"GET / HTTP/1.1\r\nHost: salt\r\n\r\n",
    b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + b"\x11" * 64,
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"\xff" * 4096,
    GREETING[:10],
    GREETING[:-1],
    GREETING,
    GREETING.replace(b"NULL", b"PLAI"),
    GREETING + READY,
    GREETING + READY[:7],
    # A frame that announces 2**63 - 1 bytes, one that announces some gigabytes, and one that ends in the middle.
    GREETING + READY + b"\x02" + struct.pack(">Q", 2**63 - 1),
    GREETING + READY + b"\x02" + struct.pack(">Q", 2**33) + b"x" * 1000,
    GREETING + READY + b"\x01\x00\x00\xff" + b"half",
    GREETING + READY + b"\x04\xff" + b"\0" * 20,
    # Frames that have more to come, for ever.
    GREETING + READY + b"\x01\x01x" * 500,
)


def pour(lab: Lab, port: str, stream: bytes) -> None:
    """Writes bytes onto a port, and hangs up."""
    address = ("127.0.0.1", lab.port[port])
    # Who is cut off before it has said all cannot hang up any more.
    with contextlib.suppress(OSError), socket.create_connection(address, 5) as one:
        one.sendall(stream)
        one.shutdown(socket.SHUT_WR)
        one.settimeout(0.05)
        while one.recv(4096):
            pass


# --------------------------------------------------------------------------------------------------------------------- tests


@pytest.mark.parametrize("port", PORTS)
def test_streams_that_are_no_zmtp(target: Lab, port: str) -> None:
    for stream in STREAMS:
        pour(target, port, stream)


@EXAMPLES
@given(sent=frames)
def test_frames_on_4506(target: Lab, context: Context, sent: list[bytes]) -> None:
    with joined(context, target, zmq.DEALER, "ret_port") as one:
        one.send_multipart(sent)
        minion_ping(one)


@EXAMPLES
@given(message=envelopes | sign_ins | values)
def test_messages_on_4506(target: Lab, context: Context, message: Any) -> None:
    """What looks like a request gets exactly one answer."""
    with joined(context, target, zmq.DEALER, "ret_port") as one:
        one.send_multipart([b"", msgpack.packb(message)])
        assert one.poll(int(SOON * 1000)), message
        empty, answer = one.recv_multipart()
        assert empty == b""
        msgpack.unpackb(answer, strict_map_key=False, raw=True)
        minion_ping(one)


@EXAMPLES
@given(cut=st.integers(0, len(PING)), noise=st.binary(max_size=30))
def test_cut_and_spoiled_messages_on_4506(target: Lab, context: Context, cut: int, noise: bytes) -> None:
    with joined(context, target, zmq.DEALER, "ret_port") as one:
        one.send_multipart([b"", PING[:cut] + noise])
        assert one.poll(int(SOON * 1000))
        msgpack.unpackb(one.recv_multipart()[1], strict_map_key=False, raw=True)
        minion_ping(one)


def test_messages_that_nest_or_announce_too_much_on_4506(target: Lab, context: Context) -> None:
    payloads = [
        b"\x91" * 50_000 + b"\xc0",
        b"\x81\xa1a" * 50_000 + b"\xc0",
        # A list, a map, a text of four thousand million, and nothing behind it.
        *(head + b"\xff\xff\xff\xff" for head in (b"\xdd", b"\xdf", b"\xdb", b"\xc6")),
        msgpack.packb({"enc": "clear", "load": {"cmd": "_auth", "id": "x" * 900_000}, "version": 3}),
        msgpack.packb(msgpack.Timestamp(2**33, 5)),
        msgpack.packb(msgpack.ExtType(78, b"20261121000000000000")),
    ]
    with joined(context, target, zmq.DEALER, "ret_port") as one:
        for payload in payloads:
            one.send_multipart([b"", payload])
            assert one.poll(int(SOON * 1000)), payload[:20]
            one.recv_multipart()
        minion_ping(one)


def test_oversized_messages_on_4506(target: Lab, context: Context) -> None:
    """The connection is cut; nothing of it is kept, and the next one is served."""
    large = b"x" * (2 * LARGEST)
    for _ in range(30):
        with joined(context, target, zmq.DEALER, "ret_port", watch=zmq.EVENT_DISCONNECTED) as one:
            one.send_multipart([b"", large])
            assert events(one, 1) == [zmq.EVENT_DISCONNECTED]
    with joined(context, target, zmq.DEALER, "ret_port") as one:
        minion_ping(one)


@EXAMPLES
@given(topic=st.binary(max_size=100), sent=frames)
def test_subscribers_that_talk_on_4505(target: Lab, context: Context, topic: bytes, sent: list[bytes]) -> None:
    with joined(context, target, zmq.XSUB, "publish_port", watch=zmq.EVENT_HANDSHAKE_SUCCEEDED) as one:
        let_in(one)
        one.send(b"\x01" + topic)
        one.send_multipart(sent)
        one.send(b"\x00" + topic)
        one.send(b"\x00never subscribed")


def test_oversized_messages_on_4505(target: Lab, context: Context) -> None:
    for _ in range(10):
        with joined(context, target, zmq.XSUB, "publish_port", watch=zmq.EVENT_DISCONNECTED) as one:
            one.send(b"\x01" + b"t" * 100_000)
            assert events(one, 1) == [zmq.EVENT_DISCONNECTED]


@pytest.mark.parametrize(
    ("port", "link", "kind"),
    [
        ("control_port", "control", zmq.DEALER),
        ("workers_port", "workers", zmq.DEALER),
        ("event_pull_port", "event_pull", zmq.PUSH),
        ("event_pub_port", "event_pub", zmq.SUB),
    ],
)
@pytest.mark.parametrize("whose", ["nobody's", "a stranger's", "another role's"])
def test_internal_ports_without_the_right_key(
    target: Lab, context: Context, port: str, link: str, kind: int, whose: str
) -> None:
    """No handshake is completed, so no message ever gets in."""
    keys: dict[int, bytes] = {}
    if whose == "a stranger's":
        public, secret = zmq.curve_keypair()
        keys = curve_of(target, "cli", link) | {zmq.CURVE_SECRETKEY: secret, zmq.CURVE_PUBLICKEY: public}
    elif whose == "another role's":
        keys = curve_of(target, "publisher" if link != "event_pull" else "cli", link)
    with joined(context, target, kind, port, keys, watch=HANDSHAKE) as one:
        if kind == zmq.SUB:
            one.setsockopt(zmq.SUBSCRIBE, b"")
        else:
            with contextlib.suppress(zmq.Again):
                one.send_multipart([b"", b"1", msgpack.packb({"cmd": "ping"})], zmq.NOBLOCK)
        assert events(one, 1) != [zmq.EVENT_HANDSHAKE_SUCCEEDED]
        assert not one.poll(0)


@EXAMPLES
@given(sent=frames, fields=controls | values)
def test_garbage_with_an_operators_key_on_4507(target: Lab, context: Context, sent: list[bytes], fields: Any) -> None:
    """A known key is no reason to trust what is sent with it: every request is answered, in words."""
    with joined(context, target, zmq.DEALER, "control_port", curve_of(target, "cli", "control")) as one:
        one.send_multipart(sent)
        one.send_multipart([b"", b"asked", msgpack.packb(fields)])
        while True:
            assert one.poll(int(SOON * 1000)), fields
            empty, request, answer = one.recv_multipart()
            assert empty == b""
            if request == b"asked":
                break
        found = msgpack.unpackb(answer, strict_map_key=False)
        assert list(found) in (["ok"], ["error"])
        if "error" in found:
            assert found["error"]["name"] not in ("InternalError", ""), (fields, found)
        control_ping(one)


@EXAMPLES
@given(sent=frames)
# Said of workers that nobody knows, as often as one likes.
@example(sent=[HUNG, b"nobody"])
@example(sent=[HUNG, b"nobody"])
def test_garbage_with_a_workers_key_on_4516_and_4512(target: Lab, context: Context, sent: list[bytes]) -> None:
    for kind, link in ((zmq.DEALER, "workers"), (zmq.PUSH, "event_pull")):
        keys = curve_of(target, "mworker", link)
        with joined(context, target, kind, f"{link}_port", keys, watch=zmq.EVENT_HANDSHAKE_SUCCEEDED) as one:
            let_in(one)
            one.send_multipart(sent)
