"""Who may connect where: real sockets on loopback, real keys."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest
import zmq

from saltern.kit.config.master import ConfigError, MasterOptions
from saltern.kit.links.curve_auth import CurveAuth
from saltern.kit.links.sockets import LINKS, NAMES, LinkKeys, bind, connect

Context: TypeAlias = "zmq.Context[zmq.Socket[bytes]]"
Socket: TypeAlias = "zmq.Socket[bytes]"
NewOptions: TypeAlias = Callable[..., MasterOptions]


@contextmanager
def serving(context: Context, keys: Path, link: str, options: MasterOptions) -> Iterator[tuple[Socket, CurveAuth]]:
    row = LINKS[link]
    doorkeeper = CurveAuth(context, LinkKeys.load(keys / row.server))
    server = context.socket(zmq.ROUTER)
    try:
        doorkeeper.serve(server, link)
        bind(server, "127.0.0.1", row.port(options), link)
        yield server, doorkeeper
    finally:
        server.close(linger=0)
        doorkeeper.stop()


def knock(context: Context, keys: LinkKeys, link: str, options: MasterOptions) -> Socket:
    client = context.socket(zmq.DEALER)
    connect(client, link, options, keys)
    # Whoever was turned away already has no connection to send to, and would wait for one for ever.
    with contextlib.suppress(zmq.Again):
        client.send(b"hello", zmq.NOBLOCK)
    return client


@pytest.mark.parametrize("link", LINKS)
def test_every_name_is_admitted_or_turned_away_as_the_row_says(
    link: str, context: Context, role_keys: Path, new_options: NewOptions
) -> None:
    options = new_options()
    with serving(context, role_keys, link, options) as (server, doorkeeper):
        barred = [name for name in NAMES if name not in LINKS[link].clients]
        clients = [knock(context, LinkKeys.load(role_keys / name), link, options) for name in (*barred, *NAMES)]
        heard = set()
        while heard != LINKS[link].clients:
            assert server.poll(20_000), f"only {heard} were heard"
            _, frame = server.recv_multipart(copy=False)
            assert frame.bytes == b"hello"
            heard.add(doorkeeper.name_of(frame))
        # The barred knocked first, and nobody else is waiting.
        assert not server.poll(50)
        for client in clients:
            client.close()


def test_a_key_that_nobody_made_is_turned_away(context: Context, role_keys: Path, new_options: NewOptions) -> None:
    options = new_options()
    public, secret = zmq.curve_keypair()
    known = LinkKeys.load(role_keys / "cli").known
    with serving(context, role_keys, "control", options) as (server, _):
        monitor = context.socket(zmq.DEALER)
        events = monitor.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_SUCCEEDED)
        connect(monitor, "control", options, LinkKeys(secret, public, known))
        with contextlib.suppress(zmq.Again):
            monitor.send(b"hello", zmq.NOBLOCK)
        assert events.poll(20_000)
        assert int.from_bytes(events.recv_multipart()[0][:2], "little") == zmq.EVENT_HANDSHAKE_FAILED_AUTH
        assert not server.poll(0)
        monitor.disable_monitor()


def test_a_client_without_curve_is_not_heard(context: Context, role_keys: Path, new_options: NewOptions) -> None:
    options = new_options()
    with serving(context, role_keys, "workers", options) as (server, _):
        plain = context.socket(zmq.DEALER)
        events = plain.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED)
        plain.connect(f"tcp://127.0.0.1:{options.workers_port}")
        plain.send(b"hello")
        assert events.poll(20_000)
        assert int.from_bytes(events.recv_multipart()[0][:2], "little") == zmq.EVENT_DISCONNECTED
        assert not server.poll(0)
        plain.disable_monitor()


def test_keys_of_a_name(role_keys: Path) -> None:
    keys = LinkKeys.load(role_keys / "mworker")
    assert set(keys.known) == set(NAMES)
    assert keys.known["mworker"] == (keys.public,)
    assert keys.server_keys("reqserver") == (LinkKeys.load(role_keys / "reqserver").public,)


def test_missing_keys_say_how_they_are_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"curve\.secret: No such file.*saltern keygen --out DIR.*key_dir"):
        LinkKeys.load(tmp_path / "nowhere")


def test_a_key_that_may_not_be_read_says_how_to_have_another(role_keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", forbidden)
    with pytest.raises(
        ConfigError, match=r"cli/curve.secret: Permission denied to user \d+\. .*--operator NAME.*key_dir"
    ):
        LinkKeys.load(role_keys / "cli")


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 40, b"x" * 400])
def test_a_broken_key_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "curve.secret").write_bytes(content)
    with pytest.raises(ConfigError, match=r"curve\.secret: not a CurveZMQ key"):
        LinkKeys.load(tmp_path)


def test_an_unknown_server_is_named(role_keys: Path) -> None:
    keys = LinkKeys(b"", b"", {"cli": b""})
    with pytest.raises(ConfigError, match=r"no public key of reqserver among \['cli'\]"):
        keys.server_keys("reqserver")


def test_a_port_that_is_taken_is_named(context: Context, new_options: NewOptions) -> None:
    port = new_options().ret_port
    taker = context.socket(zmq.ROUTER)
    bind(taker, "127.0.0.1", port, "ret_port")
    with pytest.raises(ConfigError, match=f"ret_port: cannot listen on 127.0.0.1:{port}: Address already in use"):
        bind(context.socket(zmq.ROUTER), "127.0.0.1", port, "ret_port")
    taker.close()


def test_rows_name_names() -> None:
    for name, row in LINKS.items():
        assert {row.server, *row.clients} <= set(NAMES), name


def test_an_address_that_swallows_everything_is_left(
    context: Context, role_keys: Path, new_options: NewOptions
) -> None:
    """As a lost node's: the next attempt looks the name up anew, and that may be another address."""
    with socket.socket() as deaf, socket.socket() as first:
        # One place before it is accepted, which is taken: whoever comes next gets no answer at all.
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        first.connect(deaf.getsockname())
        client = context.socket(zmq.DEALER)
        monitor = client.get_monitor_socket(zmq.EVENT_CONNECT_RETRIED)
        connect(
            client, "workers", new_options(workers_port=deaf.getsockname()[1]), LinkKeys.load(role_keys / "mworker")
        )
        assert monitor.poll(60_000), "it still tries"
        client.disable_monitor()
        client.close(linger=0)
