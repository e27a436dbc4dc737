"""One request, one answer: what is sent again, what is passed over, what a refusal looks like."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import msgpack
import pytest
import zmq

from saltern.kit.config.master import ConfigError, MasterOptions
from saltern.kit.keys.keygen import make_keys
from saltern.kit.links import control, curve_auth
from saltern.kit.links.control import ControlClient, ControlError, ControlTimeout, connect_control, ok, refused
from saltern.kit.links.curve_auth import CurveAuth
from saltern.kit.links.sockets import LinkKeys, bind

#: (the request's id, its fields, how many came before) -> frames after the route.
Handler: TypeAlias = Callable[[bytes, dict[str, Any], int], list[list[bytes]]]


@dataclass
class Master:
    """What came in."""

    options: MasterOptions
    requests: list[tuple[bytes, dict[str, Any]]] = field(default_factory=list)


Serve: TypeAlias = Callable[[Handler], AbstractContextManager[tuple[Master, ControlClient]]]


@pytest.fixture
def serve(role_keys: Path, new_options: Callable[..., MasterOptions]) -> Serve:
    """A reqserver of the test's own with one client."""

    @contextmanager
    def run(handler: Handler) -> Iterator[tuple[Master, ControlClient]]:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        context.linger = 0
        master = Master(new_options())
        curve_auth = CurveAuth(context, LinkKeys.load(role_keys / "reqserver"))
        server = context.socket(zmq.ROUTER)
        curve_auth.serve(server, "control")
        bind(server, "127.0.0.1", master.options.control_port, "control_port")
        ended = threading.Event()

        def work() -> None:
            while not ended.is_set():
                if server.poll(20):
                    identity, empty, request, payload = server.recv_multipart()
                    assert empty == b""
                    master.requests.append((request, msgpack.unpackb(payload)))
                    for frames in handler(request, master.requests[-1][1], len(master.requests) - 1):
                        server.send_multipart([identity, *frames])
            server.close()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        client = ControlClient(context, master.options, LinkKeys.load(role_keys / "cli"))
        try:
            yield master, client
        finally:
            client.close()
            ended.set()
            thread.join(30)
            curve_auth.stop()
            context.term()

    return run


def test_a_value_comes_back(serve: Serve) -> None:
    with serve(lambda request, fields, nth: [[b"", request, ok({"echo": fields["x"], 1: None})]]) as (master, client):
        assert client.call("ping", x=[1, "ä"]) == {"echo": [1, "ä"], 1: None}
        assert client.call("ping", x=2) == {"echo": 2, 1: None}
    assert [fields for _, fields in master.requests] == [{"cmd": "ping", "x": [1, "ä"]}, {"cmd": "ping", "x": 2}]
    assert len({request for request, _ in master.requests}) == 2


def test_a_refusal_is_an_error_with_a_name(serve: Serve) -> None:
    with (
        serve(lambda request, fields, nth: [[b"", request, refused("TargetError", "no such thing")]]) as (_, client),
        pytest.raises(ControlError, match="TargetError: no such thing") as caught,
    ):
        client.call("publish")
    assert (caught.value.name, caught.value.message) == ("TargetError", "no such thing")


def test_silence_ends_in_words(serve: Serve) -> None:
    with (
        serve(lambda request, fields, nth: []) as (_, client),
        pytest.raises(ControlTimeout, match="saltern keygen") as caught,
    ):
        client.call("ping", timeout=0.05)
    assert client.endpoint in str(caught.value)
    assert caught.value.seconds == 0.05


def test_no_server_at_all(
    context: zmq.Context[zmq.Socket[bytes]], role_keys: Path, new_options: Callable[..., MasterOptions]
) -> None:
    client = ControlClient(context, new_options(), LinkKeys.load(role_keys / "cli"))
    with pytest.raises(ControlTimeout):
        client.call("ping", timeout=0.05)
    client.close()


def test_a_forgotten_request_is_sent_again_with_the_same_id(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "RESEND_AFTER", 0.05)
    with serve(lambda request, fields, nth: [[b"", request, ok(nth)]] if nth >= 2 else []) as (master, client):
        assert client.call("ping", timeout=10, request_id="r") == 2
    assert len({request for request, _ in master.requests}) == 1
    assert all(fields == {"cmd": "ping", "request_id": "r"} for _, fields in master.requests)


def test_late_and_malformed_answers_are_passed_over(serve: Serve) -> None:
    def handler(request: bytes, fields: dict[str, Any], nth: int) -> list[list[bytes]]:
        return [
            [b"", b"1-1", ok("of another request")],
            [b"", request],
            [request, ok("without a delimiter")],
            [b"", request, ok("wanted")],
            [b"", request, ok("twice")],
        ]

    with serve(handler) as (_, client):
        assert client.call("ping", timeout=20) == "wanted"
        assert client.call("ping", timeout=20) == "wanted"


def test_what_cannot_be_sent_is_refused_here(serve: Serve) -> None:
    with (
        serve(lambda request, fields, nth: []) as (_, client),
        pytest.raises(ControlError, match="is not UTF-8") as caught,
    ):
        client.call("publish", arg=["\udcff"])
    assert caught.value.name == "InvocationError"


def test_numbers_beyond_64_bits_are_sent_as_their_digits(serve: Serve) -> None:
    sent = [2**64, {"a": [-(2**63) - 1]}, 2**64 - 1, -(2**63), True]
    with serve(lambda request, fields, nth: [[b"", request, ok(fields["arg"])]]) as (_, client):
        got = client.call("ping", arg=sent, timeout=20)
    assert got == ["18446744073709551616", {"a": ["-9223372036854775809"]}, 2**64 - 1, -(2**63), True]


def test_values_that_msgpack_does_not_know_are_answered_as_text() -> None:
    assert msgpack.unpackb(ok({"path": Path("/srv")})) == {"ok": {"path": "/srv"}}


def test_keys_come_from_the_directory_of_the_configuration(tmp_path: Path, role_keys: Path) -> None:
    with pytest.raises(ConfigError, match=str(tmp_path)):
        connect_control(MasterOptions(), config_dir=str(tmp_path))
    connect_control(MasterOptions(key_dir=str(role_keys / "cli"))).close()


def test_a_key_that_is_turned_away_ends_in_words_and_is_tried_again(
    context: zmq.Context[zmq.Socket[bytes]],
    role_keys: Path,
    tmp_path: Path,
    new_options: Callable[..., MasterOptions],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """libzmq gives a connection up that the server's end turned away, and what is sent on it would wait for ever."""
    monkeypatch.setattr(control, "RESEND_AFTER", 0.1)
    monkeypatch.setattr(curve_auth, "LOOK_SECONDS", 0.0)
    keys, options = shutil.copytree(role_keys, tmp_path / "keys"), new_options()
    make_keys(keys, operators=["ann"])
    known = keys / "reqserver" / "known" / "ann.pub"
    public = known.read_bytes()
    known.unlink()
    keeper, server = CurveAuth(context, LinkKeys.load(keys / "reqserver")), context.socket(zmq.ROUTER)
    keeper.serve(server, "control")
    bind(server, "127.0.0.1", options.control_port, "control_port")
    client = ControlClient(context, options, LinkKeys.load(keys / "ann"))
    try:
        with pytest.raises(ControlTimeout, match="among those it knows"):
            client.call("ping", timeout=1)
        known.write_bytes(public)
        with pytest.raises(ControlTimeout):
            client.call("ping", timeout=1)
        assert server.poll(30_000)
        assert keeper.name_of(server.recv_multipart(copy=False)[3]) == "ann"
    finally:
        client.close()
        server.close(linger=0)
        keeper.stop()


class _WithoutConnection:
    """A socket of which libzmq has given up the connection, and the next one as well before anything is sent on it."""

    def send_multipart(self, frames: Sequence[bytes], flags: int) -> None:
        raise zmq.Again

    def poll(self, milliseconds: int) -> int:
        return 0


def test_a_key_that_is_turned_away_before_the_request_is_sent_ends_in_words(
    context: zmq.Context[zmq.Socket[bytes]],
    role_keys: Path,
    new_options: Callable[..., MasterOptions],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = ControlClient(context, new_options(), LinkKeys.load(role_keys / "cli"))
    try:
        with monkeypatch.context() as patch:
            patch.setattr(client, "_socket", _WithoutConnection())
            with pytest.raises(ControlTimeout, match="among those it knows"):
                client.call("ping", timeout=0.1)
    finally:
        client.close()
