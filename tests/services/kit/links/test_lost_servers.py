"""A connection of a link where the server is one of several, and is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import msgpack
import pytest
import zmq

from saltern.kit.config.master import MasterOptions
from saltern.kit.links.control import ControlClient, ok
from saltern.kit.links.curve_auth import CurveAuth
from saltern.kit.links.socket_epoll import SocketEpoll
from saltern.kit.links.sockets import LinkConnection, LinkKeys, bind

Context: TypeAlias = "zmq.Context[zmq.Socket[bytes]]"

HOSTS = ("127.0.0.1", "127.0.0.2")


class Reqserver:
    """One of two servers of the link ``control``. ``end`` closes its connections, as the end of a process does."""

    def __init__(self, host: str, keys: Path, options: MasterOptions, *, silent: bool = False) -> None:
        self.host, self.silent = host, silent
        self.heard: list[bytes] = []
        self._context: Context = zmq.Context()
        self._auth = CurveAuth(self._context, LinkKeys.load(keys / "reqserver"))
        self._socket = self._context.socket(zmq.ROUTER)
        self._auth.serve(self._socket, "control")
        bind(self._socket, host, options.control_port, "control_port")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._answer, daemon=True)
        self._thread.start()

    def _answer(self) -> None:
        while not self._ended.is_set():
            if self._socket.poll(10):
                identity, _, request, payload = self._socket.recv_multipart()
                self.heard.append(request)
                if not self.silent:
                    fields = msgpack.unpackb(payload)
                    self._socket.send_multipart([identity, b"", request, ok([self.host, fields.get("x")])])

    def end(self) -> None:
        """End it; nothing that it holds is answered."""
        self._ended.set()
        self._thread.join()
        self._socket.close(linger=0)
        self._auth.stop()
        self._context.term()


@pytest.fixture
def options(new_options: Callable[..., MasterOptions]) -> MasterOptions:
    return new_options(reqserver_host=list(HOSTS))


@pytest.fixture
def client(context: Context, role_keys: Path, options: MasterOptions) -> Iterator[ControlClient]:
    made = ControlClient(context, options, LinkKeys.load(role_keys / "cli"))
    yield made
    made.close()


def test_a_lost_reqserver_is_replaced_by_the_other_one(
    client: ControlClient, role_keys: Path, options: MasterOptions
) -> None:
    servers = {host: Reqserver(host, role_keys, options, silent=True) for host in HOSTS}
    first = next(host for host in HOSTS if f"//{host}:" in client.endpoint)
    (other,) = set(HOSTS) - {first}
    servers[other].silent = False

    def kill() -> None:
        while not servers[first].heard:
            time.sleep(0.01)
        servers[first].end()

    killing = threading.Thread(target=kill)
    killing.start()
    try:
        began = time.monotonic()
        assert client.call("ping", x=1, timeout=40) == [other, 1]
        took = time.monotonic() - began
        killing.join()
        # The same request, with the same id; a busy machine has its time.
        assert servers[first].heard[:1] == servers[other].heard[:1]
        assert took < 4.5, "sooner than a request is sent again in any case"
    finally:
        killing.join()
        servers[other].end()


@pytest.mark.parametrize("alive", HOSTS)
def test_a_reqserver_that_is_not_there_is_left_for_the_other_one(
    client: ControlClient, role_keys: Path, options: MasterOptions, alive: str
) -> None:
    server = Reqserver(alive, role_keys, options)
    try:
        assert client.call("ping", x=2, timeout=40) == [alive, 2]
    finally:
        server.end()


def test_a_request_is_sent_again_once_the_only_reqserver_is_back(
    context: Context, role_keys: Path, new_options: Callable[..., MasterOptions]
) -> None:
    options = new_options(reqserver_host="127.0.0.1")
    client = ControlClient(context, options, LinkKeys.load(role_keys / "cli"))
    server = Reqserver("127.0.0.1", role_keys, options, silent=True)
    back: list[Reqserver] = []

    def restart() -> None:
        while not server.heard:
            time.sleep(0.01)
        server.end()
        back.append(Reqserver("127.0.0.1", role_keys, options))

    restarting = threading.Thread(target=restart)
    restarting.start()
    try:
        began = time.monotonic()
        assert client.call("ping", x=3, timeout=40) == ["127.0.0.1", 3]
        assert time.monotonic() - began < 4.5
    finally:
        restarting.join()
        client.close()
        for one in back:
            one.end()


def test_the_end_of_a_connection_ends_the_wait_of_an_epoll(
    context: Context, role_keys: Path, options: MasterOptions
) -> None:
    epoll = SocketEpoll()
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.LINGER, 0)
    connection = LinkConnection(socket, "control", options, LinkKeys.load(role_keys / "cli"), HOSTS[0])
    epoll.add(socket)
    connection.report_to(epoll)

    def await_state(up: bool) -> None:
        until = time.monotonic() + 20
        while connection.up != up:
            assert time.monotonic() < until
            if connection.reports in epoll.wait(until - time.monotonic()):
                connection.look()

    server = Reqserver(HOSTS[0], role_keys, options)
    try:
        await_state(up=True)
        connection.reconnect()
        assert not connection.up
        await_state(up=True)
    finally:
        server.end()
    await_state(up=False)
    connection.close()
    assert connection.reports == -1
    epoll.close()
