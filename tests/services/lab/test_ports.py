"""Taken ports are all named before anything starts."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from saltern.lab.plan import LabError, PortUse, Program, check_free


@pytest.fixture
def taken() -> Iterator[list[int]]:
    with ExitStack() as stack:
        numbers = []
        for address in ("127.0.0.1", "0.0.0.0"):
            one = stack.enter_context(socket.socket())
            one.bind((address, 0))
            one.listen()
            numbers.append(one.getsockname()[1])
        yield numbers


def program(*numbers: int) -> Program:
    return Program("x", (), tuple(PortUse(number, f"purpose {number}", f"--option-{number}") for number in numbers))


def test_all_taken_ports_are_named_with_purpose_and_option(taken: list[int]) -> None:
    with pytest.raises(LabError) as caught:
        check_free([program(taken[0]), program(taken[1])])
    for number in taken:
        assert f"purpose {number}" in str(caught.value)
        assert f"--option-{number}" in str(caught.value)
    assert "Nothing was started" in str(caught.value)


def test_free_ports_pass() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        number = one.getsockname()[1]
    check_free([program(number)])


def test_a_port_with_lingering_connections_is_free() -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", 0))
        server.listen()
        number = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", number))
        served, _ = server.accept()
        # The side that closes first keeps TIME_WAIT.
        served.close()
        client.close()
    check_free([program(number)])
