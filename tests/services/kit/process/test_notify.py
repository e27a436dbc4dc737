"""Messages to systemd."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from saltern.kit.process.notify import Notifier


def test_systemd_is_told_and_children_do_not_know_its_socket(tmp_path: Path) -> None:
    env = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "PATH": "/bin"}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(env["NOTIFY_SOCKET"])
        notifier = Notifier.taken(env)
        assert env == {"PATH": "/bin"}
        notifier.status("waits")
        notifier.ready("runs")
        assert systemd.recv(100) == b"STATUS=waits"
        assert systemd.recv(100) == b"READY=1\nSTATUS=runs"


@pytest.mark.parametrize(("value", "address"), [("@name", "\0name"), ("/run/notify", "/run/notify"), ("", "")])
def test_an_abstract_address_begins_with_a_zero(value: str, address: str) -> None:
    assert Notifier.taken({"NOTIFY_SOCKET": value} if value else {}).address == address


@pytest.mark.parametrize("address", ["", "/nowhere/notify"])
def test_without_systemd_nothing_is_sent(address: str) -> None:
    Notifier(address).ready("runs")
