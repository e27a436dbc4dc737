"""Frames go out and come in as pyzmq's own calls send and read them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import zmq

from saltern.kit.links import frames

#: Milliseconds that a message may take.
DEADLINE = 60_000

MESSAGES = ([b"one"], [b""], [b"", b""], [b"a", b"", b"c" * 100_000], [b"%d" % number for number in range(20)])


@pytest.fixture
def pair() -> Iterator[tuple[zmq.Socket[bytes], zmq.Socket[bytes]]]:
    with zmq.Context() as context, context.socket(zmq.PAIR) as one, context.socket(zmq.PAIR) as other:
        for end in (one, other):
            end.setsockopt(zmq.RCVTIMEO, DEADLINE)
            end.setsockopt(zmq.LINGER, 0)
        one.bind("inproc://pair")
        other.connect("inproc://pair")
        yield one, other


def test_what_is_sent_is_one_message(pair: tuple[zmq.Socket[bytes], zmq.Socket[bytes]]) -> None:
    one, other = pair
    for message in MESSAGES:
        frames.send(one, message)
        assert other.recv_multipart() == message


def test_what_is_received_is_one_message(pair: tuple[zmq.Socket[bytes], zmq.Socket[bytes]]) -> None:
    one, other = pair
    for message in MESSAGES:
        one.send_multipart(message)
    assert [frames.receive(other) for _ in MESSAGES] == list(MESSAGES)


@pytest.mark.parametrize("most", [1, 3, len(MESSAGES), 100])
def test_what_has_arrived_comes_as_it_was_sent(pair: tuple[zmq.Socket[bytes], zmq.Socket[bytes]], most: int) -> None:
    one, other = pair
    for message in MESSAGES:
        one.send_multipart(message)
    assert other.poll(DEADLINE)
    taken = [[frame.bytes for frame in message] for message in frames.arrived(other, most)]
    assert taken == list(MESSAGES[:most])
    left = [[frame.bytes for frame in message] for message in frames.arrived(other, 100)]
    assert taken + left == list(MESSAGES)


def test_where_nothing_has_arrived_nothing_comes(pair: tuple[zmq.Socket[bytes], zmq.Socket[bytes]]) -> None:
    _, other = pair
    assert list(frames.arrived(other, 100)) == []
