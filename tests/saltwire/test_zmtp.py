"""The master's side of a connection on 4506: what libzmq sends is read, whatever its parts, and nothing else is kept."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltwire.zmtp import GREETING, RequestConnection, ZmtpFault, reply_header

MOST = 1000


def frame(body: bytes, *, more: bool = False, command: bool = False) -> bytes:
    flags = (1 if more else 0) | (4 if command else 0)
    if len(body) > 255:
        return bytes([flags | 2]) + struct.pack(">Q", len(body)) + body
    return bytes([flags, len(body)]) + body


def ready(kind: bytes = b"REQ", identity: bytes = b"") -> bytes:
    fields = b"".join(
        bytes([len(name)]) + name + struct.pack(">I", len(value)) + value
        for name, value in ((b"Identity", identity), (b"Socket-Type", kind))
    )
    return frame(b"\x05READY" + fields, command=True)


def request(payload: bytes) -> bytes:
    return frame(b"", more=True) + frame(payload)


def connected() -> RequestConnection:
    made = RequestConnection(MOST)
    assert list(made.feed(GREETING + ready())) == []
    made.outgoing.clear()
    return made


PAYLOADS = st.binary(max_size=MOST)


@given(st.lists(PAYLOADS, max_size=5), st.lists(st.integers(1, 300), min_size=1))
def test_requests_arrive_however_they_are_cut(payloads: list[bytes], cuts: list[int]) -> None:
    data = GREETING + ready(b"DEALER", b"me") + b"".join(map(request, payloads))
    peer, found, place, number = RequestConnection(MOST), [], 0, 0
    while place < len(data):
        size = cuts[number % len(cuts)]
        found += peer.feed(data[place : place + size])
        place, number = place + size, number + 1
    assert found == payloads
    assert peer.ready
    assert peer.held == 0


@pytest.mark.parametrize(
    "message",
    [
        frame(b"x"),
        frame(b""),
        frame(b"x", more=True) + frame(b"y"),
        frame(b"", more=True) + frame(b"y", more=True) + frame(b"z"),
        frame(b"x" * 900, more=True) * 50 + frame(b""),
        frame(b"", more=True) * 5000 + frame(b"x"),
    ],
    ids=["one frame", "an empty frame", "no delimiter", "three frames", "large frames", "many frames"],
)
@pytest.mark.parametrize("cut", [1, 7, 100_000])
def test_a_message_that_is_no_request_is_not_kept(message: bytes, cut: int) -> None:
    peer = connected()
    found: list[bytes | None] = []
    for place in range(0, len(message), cut):
        found += peer.feed(message[place : place + cut])
        assert peer.held <= 16
    assert found == [None]
    assert list(peer.feed(request(b"next"))) == [b"next"]


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n".ljust(64),
        b"\xff" + bytes(8) + b"\x7f\x01\x05".ljust(55, b"\0"),
        GREETING.replace(b"NULL", b"CURV"),
        GREETING + request(b"x"),
        GREETING + frame(b"\x05HELLO", command=True),
        GREETING + ready(b"SUB"),
        GREETING + ready(b""),
        GREETING + frame(b"\x05READY\xff\xff\xff", command=True),
        GREETING + ready() + ready(),
        GREETING + ready() + frame(b"\x05ERROR\x00", command=True),
        GREETING + ready() + frame(b"x" * 2000, command=True),
        GREETING + ready() + frame(b"", more=True) + b"\x02" + struct.pack(">Q", MOST + 1),
        GREETING + ready() + b"\x02" + b"\xff" * 8,
    ],
)
def test_what_breaks_the_protocol_is_refused(data: bytes) -> None:
    with pytest.raises(ZmtpFault):
        list(RequestConnection(MOST).feed(data))


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    for start in (b"", GREETING, GREETING + ready()):
        peer = RequestConnection(MOST)
        try:
            list(peer.feed(start + data))
        except ZmtpFault:
            continue
        assert peer.held <= MOST + 9


@pytest.mark.parametrize(("sent", "back"), [(b"", b""), (b"ctx", b"ctx"), (b"x" * 40, b"x" * 16)])
def test_heartbeats_are_answered(sent: bytes, back: bytes) -> None:
    peer = connected()
    assert list(peer.feed(frame(b"\x04PING\0\0" + sent, command=True))) == []
    assert bytes(peer.outgoing) == frame(b"\x04PONG" + back, command=True)
    peer.outgoing.clear()
    assert (
        list(peer.feed(frame(b"\x04PING", command=True) + frame(b"\x04PONG", command=True) + frame(b"", command=True)))
        == []
    )
    assert bytes(peer.outgoing) == frame(b"\x04PONG", command=True)


@pytest.mark.parametrize("size", [0, 255, 256, 70_000])
def test_a_reply_is_framed(size: int) -> None:
    assert reply_header(size) + b"x" * size == request(b"x" * size)
