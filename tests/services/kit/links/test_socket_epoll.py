"""Waiting for several ZeroMQ sockets by their file descriptors: no message is missed, whatever calls come in between."""

from __future__ import annotations

import os
import select
import time
from collections import deque
from collections.abc import Iterator
from typing import TypeAlias

import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st

from saltern.kit.links.socket_epoll import SocketEpoll

Socket: TypeAlias = "zmq.Socket[bytes]"

#: Seconds after which a message counts as missed.
LONG = 10.0


class Pairs:
    """Some sockets of this process in an epoll, and the other ends of their connections."""

    def __init__(self, count: int) -> None:
        self.context: zmq.Context[Socket] = zmq.Context()
        self.epoll = SocketEpoll()
        self.ours: list[Socket] = []
        self.theirs: list[Socket] = []
        self.numbers: list[int] = []
        for index in range(count):
            ours, theirs = self.context.socket(zmq.PAIR), self.context.socket(zmq.PAIR)
            ours.bind(f"inproc://pair.{index}")
            theirs.connect(f"inproc://pair.{index}")
            self.ours.append(ours)
            self.theirs.append(theirs)
            self.numbers.append(self.epoll.add(ours))

    def close(self) -> None:
        self.epoll.close()
        self.context.destroy(linger=0)


@pytest.fixture
def pairs() -> Iterator[Pairs]:
    made = Pairs(2)
    yield made
    made.close()


def readable(number: int, seconds: float) -> bool:
    return bool(select.select([number], [], [], seconds)[0])


def test_it_names_the_socket_with_a_message(pairs: Pairs) -> None:
    pairs.theirs[1].send(b"x")
    assert pairs.epoll.wait(LONG) == [pairs.numbers[1]]
    assert pairs.ours[1].recv(zmq.NOBLOCK) == b"x"
    assert pairs.epoll.wait(0.0) == []


def test_what_is_not_read_is_named_again(pairs: Pairs) -> None:
    pairs.theirs[0].send(b"1")
    pairs.theirs[0].send(b"2")
    assert pairs.epoll.wait(LONG) == [pairs.numbers[0]]
    pairs.ours[0].recv(zmq.NOBLOCK)
    assert pairs.epoll.wait(LONG) == [pairs.numbers[0]]
    pairs.ours[0].recv(zmq.NOBLOCK)
    assert pairs.epoll.wait(0.0) == []


def test_a_message_is_found_whose_news_a_call_took(pairs: Pairs) -> None:
    pairs.epoll.wait(0.0)
    pairs.theirs[0].send(b"x")
    # As a send may do: the descriptor says nothing of the message any more.
    assert pairs.ours[0].getsockopt(zmq.EVENTS)
    assert not readable(pairs.numbers[0], 0.0)
    pairs.epoll.used(pairs.numbers[0])
    assert pairs.epoll.wait(LONG) == [pairs.numbers[0]]


def test_a_message_that_arrived_before_is_found(pairs: Pairs) -> None:
    ours, theirs = pairs.context.socket(zmq.PAIR), pairs.context.socket(zmq.PAIR)
    ours.bind("inproc://late")
    theirs.connect("inproc://late")
    theirs.send(b"x")
    assert ours.getsockopt(zmq.EVENTS)
    number = pairs.epoll.add(ours)
    assert pairs.epoll.wait(LONG) == [number]


def test_a_message_from_another_machine_ends_the_wait(pairs: Pairs) -> None:
    server, client = pairs.context.socket(zmq.ROUTER), pairs.context.socket(zmq.DEALER)
    number = pairs.epoll.add(server)
    client.connect(f"tcp://127.0.0.1:{server.bind_to_random_port('tcp://127.0.0.1')}")
    pairs.epoll.used(number)
    client.send(b"x")
    until = time.monotonic() + LONG
    while (found := pairs.epoll.wait(LONG)) == [] and time.monotonic() < until:
        # Reports of libzmq to its own socket end a wait, too.
        pass
    assert found == [number]


def test_a_file_is_named_while_it_is_readable(pairs: Pairs) -> None:
    read, write = os.pipe()
    pairs.epoll.add_file(read)
    assert pairs.epoll.wait(0.0) == []
    os.write(write, b"x")
    assert pairs.epoll.wait(LONG) == [read]
    assert pairs.epoll.wait(LONG) == [read]
    pairs.theirs[0].send(b"x")
    assert sorted(pairs.epoll.wait(LONG)) == sorted([read, pairs.numbers[0]])
    pairs.epoll.remove(read)
    os.close(read)
    os.close(write)
    assert pairs.epoll.wait(LONG) == [pairs.numbers[0]]


def test_a_removed_socket_is_not_named(pairs: Pairs) -> None:
    pairs.theirs[0].send(b"x")
    pairs.epoll.remove(pairs.numbers[0])
    assert pairs.epoll.wait(0.0) == []


@settings(max_examples=150, deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from(["arrive", "read", "send", "wait"]), st.integers(0, 2)), max_size=60))
def test_each_wait_names_the_sockets_with_messages(steps: list[tuple[str, int]]) -> None:
    pairs = Pairs(3)
    try:
        unread: list[deque[bytes]] = [deque(), deque(), deque()]
        named: set[int] = set()
        for count, (step, index) in enumerate(steps):
            if step == "arrive":
                pairs.theirs[index].send(b"%d" % count)
                unread[index].append(b"%d" % count)
            elif step == "send":
                pairs.ours[index].send(b"%d" % count)
                pairs.epoll.used(pairs.numbers[index])
            elif step == "read" and index in named and unread[index]:
                assert pairs.ours[index].recv(zmq.NOBLOCK) == unread[index].popleft()
            elif step == "wait":
                found = pairs.epoll.wait(0.0)
                named = {pairs.numbers.index(number) for number in found}
                assert len(named) == len(found)
                assert named == {index for index, waiting in enumerate(unread) if waiting}
    finally:
        pairs.close()
