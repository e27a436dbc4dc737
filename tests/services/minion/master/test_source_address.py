"""``source_address``, ``source_interface_name`` and their ports: where the minion's connections come from."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest
import zmq

from saltern.kit.config.minion_options import MinionOptions, load_minion
from saltern.minion.master.channel import endpoint, source_of
from saltern.reqserver.minion_port import MinionPort
from saltwire.zmq import RequestSocket
from tests.ports import free_ports


def options(directory: Path, text: str) -> MinionOptions:
    (directory / "minion").write_text(f"id: web1\nmaster: 127.0.0.1\n{text}\n")
    return load_minion(str(directory), env={})


@pytest.mark.parametrize(
    ("text", "port", "expected"),
    [
        ("", 0, "tcp://127.0.0.1:4506"),
        ("source_ret_port: 49017", 49017, "tcp://127.0.0.1:4506"),
        ("source_address: 127.0.0.2", 0, "tcp://127.0.0.2:0;127.0.0.1:4506"),
        ("source_address: '::1'", 5, "tcp://[::1]:5;127.0.0.1:4506"),
        ("source_interface_name: lo", 49017, "tcp://127.0.0.1:49017;127.0.0.1:4506"),
        ("source_interface_name: nosuch0\nsource_address: 127.0.0.2", 0, "tcp://127.0.0.1:4506"),
    ],
)
def test_the_endpoint_names_the_source(
    tmp_path: Path, text: str, port: int, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert endpoint(options(tmp_path, text), port) == expected
    assert ("source_interface_name: nosuch0 is no interface with an IPv4 address" in caplog.text) == ("nosuch0" in text)


def test_requests_come_from_there(tmp_path: Path) -> None:
    port = MinionPort("127.0.0.1", 0, max_bytes=1000, max_held=1000)
    (own,) = free_ports(1)
    made = options(tmp_path, f"source_address: 127.0.0.2\nsource_ret_port: {own}\nmaster_port: {port.port}")
    with zmq.Context() as context:
        requests = RequestSocket(context, endpoint(made, made.source_ret_port))
        # What people read names the master alone.
        assert requests.endpoint == f"tcp://127.0.0.1:{port.port}"
        requests.send(b"x")
        deadline = time.monotonic() + 10
        arrived = None
        while arrived is None and time.monotonic() < deadline:
            arrived = next(port.arrived(time.monotonic()), None)
            time.sleep(0.01)
        requests.close()
    port.close()
    assert arrived is not None
    assert (arrived.address, arrived.payload) == ("127.0.0.2", b"x")
    assert source_of(made, made.source_publish_port) == "127.0.0.2:0;"
