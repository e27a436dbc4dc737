"""Keys that come and go while a server runs: who connects, and who is connected already."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
import zmq

from saltern.kit.config.master import MasterOptions
from saltern.kit.keys.keygen import make_keys
from saltern.kit.links import curve_auth as module
from saltern.kit.links.curve_auth import CurveAuth
from saltern.kit.links.sockets import LinkKeys, bind, connect

Context: TypeAlias = "zmq.Context[zmq.Socket[bytes]]"
Socket: TypeAlias = "zmq.Socket[bytes]"

#: Milliseconds for somebody to be heard on a busy machine.
SOON = 30_000


class Door:
    """A server of the control link, whose key directory a test changes."""

    def __init__(self, context: Context, keys: Path, options: MasterOptions) -> None:
        self.keys, self.options, self._context = keys, options, context
        self.doorkeeper = CurveAuth(context, LinkKeys.load(keys / "reqserver"))
        self._server = context.socket(zmq.ROUTER)
        self.doorkeeper.serve(self._server, "control")
        bind(self._server, "127.0.0.1", options.control_port, "control_port")
        self._clients: list[Socket] = []

    @property
    def known(self) -> Path:
        return self.keys / "reqserver" / "known"

    def client(self, name: str) -> Socket:
        made = self._context.socket(zmq.DEALER)
        connect(made, "control", self.options, LinkKeys.load(self.keys / name))
        self._clients.append(made)
        return made

    def heard(self, client: Socket) -> str:
        """The name that the server knows this client's message by."""
        client.send(b"hello")
        assert self._server.poll(SOON), "nobody was heard"
        return self.doorkeeper.name_of(self._server.recv_multipart(copy=False)[1])

    def close(self) -> None:
        for one in (*self._clients, self._server):
            one.close(linger=0)
        self.doorkeeper.stop()


@pytest.fixture
def door(
    context: Context,
    role_keys: Path,
    tmp_path: Path,
    new_options: Callable[..., MasterOptions],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Door]:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)
    keys = shutil.copytree(role_keys, tmp_path / "keys")
    made = Door(context, keys, new_options())
    yield made
    made.close()


def test_a_key_that_is_added_counts_at_once(door: Door) -> None:
    make_keys(door.keys, operators=["ann"])
    assert door.heard(door.client("ann")) == "ann"
    assert door.doorkeeper.lost() == frozenset()


def test_a_key_that_is_removed_counts_no_more_on_a_connection_that_stands(door: Door) -> None:
    make_keys(door.keys, operators=["ann"])
    ann, cli = door.client("ann"), door.client("cli")
    assert (door.heard(ann), door.heard(cli)) == ("ann", "cli")
    (door.known / "ann.pub").unlink()
    with pytest.raises(PermissionError, match="the key of ann was taken back"):
        door.heard(ann)
    assert door.heard(cli) == "cli"
    assert door.doorkeeper.lost() == {"ann"}
    assert door.doorkeeper.lost() == frozenset()


def test_a_key_that_is_replaced_is_not_the_old_one(door: Door) -> None:
    make_keys(door.keys, operators=["ann"])
    old = door.client("ann")
    assert door.heard(old) == "ann"
    (door.keys / "ann" / "curve.secret").unlink()
    make_keys(door.keys, operators=["ann"])
    with pytest.raises(PermissionError, match="replaced by another one"):
        door.heard(old)
    assert door.heard(door.client("ann")) == "ann"


def test_a_file_that_is_no_key_bars_its_name_alone(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    make_keys(door.keys, operators=["ann", "bob"])
    (door.known / "ann.pub").write_text("half a k")
    assert door.heard(door.client("bob")) == "bob"
    assert "the public key of ann: not a CurveZMQ key" in caplog.text
    assert caplog.text.count("ann may not connect") == 1


def test_a_directory_that_is_away_takes_nobodys_key_back(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    cli = door.client("cli")
    assert door.heard(cli) == "cli"
    door.known.rename(door.known.with_name("elsewhere"))
    assert door.heard(cli) == "cli"
    assert "no public key is there; who may connect stays as it was" in caplog.text
    door.known.with_name("elsewhere").rename(door.known)
    assert door.heard(door.client("api")) == "api"


def test_a_mounted_secret_is_looked_at_behind_its_links(
    context: Context, role_keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kubernetes puts each state of a Secret into a directory of its own, turns one link round, then tidies up."""
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)
    keys = shutil.copytree(role_keys, tmp_path / "keys")
    make_keys(keys, operators=["ann"])
    mount = tmp_path / "mount"
    for state, names in (("..0", ["ann", "cli"]), ("..1", ["cli"])):
        (mount / state).mkdir(parents=True)
        for name in names:
            shutil.copy(keys / "reqserver" / "known" / f"{name}.pub", mount / state / f"known.{name}.pub")
            (mount / f"known.{name}.pub").unlink(missing_ok=True)
            (mount / f"known.{name}.pub").symlink_to(Path("..data") / f"known.{name}.pub")
    shutil.copy(keys / "reqserver" / "curve.secret", mount)
    (mount / "..data").symlink_to("..0")
    keeper = CurveAuth(context, LinkKeys.load(mount))
    try:
        (mount / "..new").symlink_to("..1")
        (mount / "..new").replace(mount / "..data")
        assert keeper.lost() == frozenset(), "a link that leads nowhere is a state in between"
        (mount / "known.ann.pub").unlink()
        assert keeper.lost() == {"ann"}
    finally:
        keeper.stop()
