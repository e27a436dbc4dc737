"""The browser's own network: what is there, and what is not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.own_network import OwnNetwork


def _may_make_one() -> bool:
    tried = subprocess.run(["unshare", "--net", "ip", "link", "set", "lo", "up"], capture_output=True, check=False)
    return tried.returncode == 0


pytestmark = pytest.mark.skipif(
    not _may_make_one(), reason="this user may not make a network namespace, or ip is missing"
)

#: Says what it hears from the port that is named.
HEAR = "import socket, sys; print(socket.create_connection(('127.0.0.1', int(sys.argv[1])), 10).recv(9).decode())"


@pytest.fixture
def network() -> Iterator[OwnNetwork]:
    with OwnNetwork() as made:
        yield made


def test_a_program_reaches_a_listener_of_this_process(network: OwnNetwork, tmp_path: Path) -> None:
    program = network.program(sys.executable, tmp_path)
    with network.listener() as listener:
        port = str(listener.getsockname()[1])
        with subprocess.Popen([program, "-c", HEAR, port], stdout=subprocess.PIPE, text=True) as started:
            listener.settimeout(30)
            near, _ = listener.accept()
            with near:
                near.sendall(b"hello")
            assert started.communicate(timeout=30)[0] == "hello\n"


def test_the_machine_is_not_in_it(network: OwnNetwork, tmp_path: Path) -> None:
    program = network.program("ip", tmp_path)
    shown = subprocess.run([program, "-brief", "link"], capture_output=True, text=True, timeout=30, check=True)
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["lo"]


def test_it_ends_with_its_last_process(network: OwnNetwork, tmp_path: Path) -> None:
    program = network.program(sys.executable, tmp_path)
    network.close()
    ended = subprocess.run([program, "-c", "pass"], capture_output=True, text=True, timeout=30, check=False)
    assert "nsenter" in ended.stderr
