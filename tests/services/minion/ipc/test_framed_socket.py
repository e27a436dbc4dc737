"""Messages of any size between main process and zygote."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator

import pytest

from saltern.minion.ipc.framed_socket import PART_BYTES, FramedSocket, _cut


@pytest.fixture
def ends() -> Iterator[tuple[FramedSocket, FramedSocket]]:
    raw = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in raw:
        # As small as a system may have it.
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * PART_BYTES)
    pairs = (FramedSocket(raw[0]), FramedSocket(raw[1]))
    yield pairs
    for pair in pairs:
        pair.close()


def moved(sender: FramedSocket, receiver: FramedSocket, number: int) -> list[bytes]:
    """Messages that arrive while the sender flushes."""
    messages = []
    for _ in range(100_000):
        sender.flush()
        assert select.select([receiver], [], [], 10)[0], "nothing more comes"
        if (message := receiver.receive()) is not None:
            messages.append(message)
        if len(messages) == number:
            return messages
    raise AssertionError(f"only {len(messages)} messages came")


@pytest.mark.parametrize("size", [1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES, 5_000_000])
def test_a_message_arrives_whole(ends: tuple[FramedSocket, FramedSocket], size: int) -> None:
    message = bytes(number % 251 for number in range(1000)) * (size // 1000 + 1)
    ends[0].put(message[:size])
    assert moved(ends[0], ends[1], 1) == [message[:size]]
    assert not ends[0].pending


def test_order_is_kept_and_nobody_waits(ends: tuple[FramedSocket, FramedSocket]) -> None:
    sent = [b"a" * 300_000, b"b", b"c" * 300_000, b"d"]
    for message in sent:
        ends[0].put(message)
    assert ends[0].pending, "more than the socket takes"
    assert moved(ends[0], ends[1], 4) == sent


def test_a_jobbers_word_between_the_parts_of_a_message(ends: tuple[FramedSocket, FramedSocket]) -> None:
    large = b"x" * (3 * PART_BYTES - 5)
    first, *rest = _cut(large)
    jobber = FramedSocket(socket.socket(fileno=os.dup(ends[0].fileno())))
    ends[0]._end.send(first)
    jobber.send(b"spooled")
    for part in rest:
        ends[0]._outgoing.append(part)
    assert moved(ends[0], ends[1], 2) == [b"spooled", large]
    jobber.close()


def test_the_end_of_the_other_is_an_empty_message(ends: tuple[FramedSocket, FramedSocket]) -> None:
    ends[0].send(b"last words")
    ends[0].close()
    assert ends[1].receive() == b"last words"
    assert ends[1].receive() == b""
    with pytest.raises(OSError, match="pipe"):
        ends[1].put(b"anybody?")
