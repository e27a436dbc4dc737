"""A connection of a link while keys are replaced: the client's own, and the server's."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
import zmq

from saltern.kit.config.master import MasterOptions
from saltern.kit.links import curve_auth, sockets
from saltern.kit.links.curve_auth import CurveAuth
from saltern.kit.links.sockets import LinkConnection, LinkKeys, bind
from saltern.rotate.key_files import KeyFiles
from saltern.rotate.link_keys import rotate_link_key

Context: TypeAlias = "zmq.Context[zmq.Socket[bytes]]"

#: Seconds for somebody to be heard on a busy machine.
SOON = 30.0


class Ends:
    """A server and a client of the link ``control``, whose loops take turns."""

    def __init__(self, context: Context, keys: Path, options: MasterOptions) -> None:
        self.keys = keys
        self.auth = CurveAuth(context, LinkKeys.load(keys / "reqserver"))
        self.server = context.socket(zmq.ROUTER)
        self.auth.serve(self.server, "control")
        bind(self.server, "127.0.0.1", options.control_port, "control_port")
        self.client = context.socket(zmq.DEALER)
        self.client.setsockopt(zmq.LINGER, 0)
        self.connection = LinkConnection(self.client, "control", options, LinkKeys.load(keys / "reactor"))
        self.reconnected = 0

    def turn(self, seconds: float = 0.05) -> None:
        """What both loops do from time to time."""
        self.auth.follow()
        self.reconnected += self.connection.follow()
        time.sleep(seconds)

    def heard(self) -> str:
        """The name by which the server knows the client's next message. Repeats the message, as clients do."""
        deadline = time.monotonic() + SOON
        while time.monotonic() < deadline:
            # A refused connection takes no message.
            with contextlib.suppress(zmq.Again):
                self.client.send(b"hello", zmq.NOBLOCK)
            self.turn()
            while self.server.poll(50):
                frame = self.server.recv_multipart(copy=False)[1]
                try:
                    return self.auth.name_of(frame)
                except PermissionError:
                    continue
        pytest.fail("nobody was heard")

    def drain(self) -> None:
        """Forget what was repeated."""
        while self.server.poll(50):
            self.server.recv_multipart()

    def close(self) -> None:
        """Close both ends."""
        self.connection.close()
        self.server.close(linger=0)
        self.auth.stop()


@pytest.fixture
def ends(
    context: Context,
    role_keys: Path,
    tmp_path: Path,
    new_options: Callable[..., MasterOptions],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Ends]:
    monkeypatch.setattr(curve_auth, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(sockets, "FOLLOW_SECONDS", 0.0)
    made = Ends(context, shutil.copytree(role_keys, tmp_path / "keys"), new_options())
    yield made
    made.close()


@pytest.mark.parametrize("name", ["reactor", "reqserver"])
def test_both_ends_go_on_in_every_step(ends: Ends, name: str) -> None:
    assert ends.heard() == "reactor"

    def between(seconds: float) -> None:
        ends.drain()
        assert ends.heard() == "reactor"

    rotate_link_key(KeyFiles(ends.keys, 0, sleep=between), name)
    ends.drain()
    assert ends.heard() == "reactor"
    assert 1 <= ends.reconnected <= 5


def test_a_client_that_was_refused_connects_once_its_key_is_known(ends: Ends) -> None:
    """libzmq gives a refused connection up for good."""
    path = ends.keys / "reqserver" / "known" / "reactor.pub"
    public = path.read_bytes()
    path.unlink()
    ends.connection.reconnect()
    for _ in range(20):
        ends.turn()
    assert not ends.server.poll(50)
    path.write_bytes(public)
    assert ends.heard() == "reactor"


def test_keys_that_cannot_be_read_leave_the_connection(ends: Ends, caplog: pytest.LogCaptureFixture) -> None:
    assert ends.heard() == "reactor"
    (ends.keys / "reactor" / "curve.secret").write_text("half a k")
    ends.drain()
    assert ends.heard() == "reactor"
    assert len([one for one in caplog.messages if "not a CurveZMQ key" in one]) == 1


def test_unchanged_keys_make_no_new_connection(ends: Ends) -> None:
    assert ends.heard() == "reactor"
    path = ends.keys / "reactor" / "curve.secret"
    path.write_bytes(path.read_bytes())
    before = ends.reconnected
    for _ in range(5):
        ends.turn()
    assert ends.reconnected == before
