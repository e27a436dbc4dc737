"""A rotation of a link's key: what files hold after each step, and that an interrupted one goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
import zmq

from saltern.kit.keys.keygen import make_keys
from saltern.kit.links.sockets import NAMES, LinkKeys
from saltern.rotate.key_files import KeyFiles, RotationError
from saltern.rotate.link_keys import rotate_link_key


class Interrupted(Exception):
    """Stands for whatever ends the command."""


class Steps:
    """Looks at the files after each step, and ends the command after some of them."""

    def __init__(self, directory: Path, name: str, ends_after: int = 0) -> None:
        self.seen: list[tuple[bytes, tuple[tuple[bytes, ...], ...]]] = []
        self._directory, self._name, self._ends_after = directory, name, ends_after

    def __call__(self, seconds: float) -> None:
        publics = {LinkKeys.load(self._directory / each).known[self._name] for each in NAMES}
        self.seen.append((LinkKeys.load(self._directory / self._name).public, tuple(map(tuple, publics))))
        if len(self.seen) == self._ends_after:
            raise Interrupted


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    make_keys(tmp_path / "keys", operators=["ann"])
    return tmp_path / "keys"


def test_old_and_new_are_valid_in_between(keys: Path) -> None:
    old, steps = LinkKeys.load(keys / "reactor").public, Steps(keys, "reactor")
    rotate_link_key(KeyFiles(keys, 0, sleep=steps), "reactor")
    new = LinkKeys.load(keys / "reactor").public
    assert new != old
    # Everybody agrees after each step; the key in use is known to all.
    assert steps.seen == [(old, ((old, new),)), (new, ((new, old),)), (new, ((new,),))]
    assert not (keys / "reactor" / "curve.next").exists()


@pytest.mark.parametrize("step", [1, 2, 3])
def test_an_interrupted_rotation_goes_on(keys: Path, step: int) -> None:
    old, steps = LinkKeys.load(keys / "mworker").public, Steps(keys, "mworker", ends_after=step)
    with pytest.raises(Interrupted):
        rotate_link_key(KeyFiles(keys, 0, sleep=steps), "mworker")
    after = Steps(keys, "mworker")
    rotate_link_key(KeyFiles(keys, 0, sleep=after), "mworker")
    new = LinkKeys.load(keys / "mworker").public
    assert after.seen[-1] == (new, ((new,),))
    assert old not in after.seen[-1][1][0]
    if step < 3:
        # The new key of the first attempt is the one that is used now.
        assert new in steps.seen[0][1][0]


def test_keygen_between_two_steps_changes_nothing(keys: Path) -> None:
    def run_keygen(seconds: float) -> None:
        assert make_keys(keys, operators=["ann"]) == []

    rotate_link_key(KeyFiles(keys, 0, sleep=run_keygen), "cli")


def test_an_operators_key(keys: Path) -> None:
    old = LinkKeys.load(keys / "ann").secret
    rotate_link_key(KeyFiles(keys, 0), "ann")
    new = LinkKeys.load(keys / "ann")
    assert new.secret != old
    assert {LinkKeys.load(keys / server).known["ann"] for server in ("reqserver", "eventpublisher")} == {(new.public,)}


def test_the_mode_of_key_files_stays(keys: Path) -> None:
    rotate_link_key(KeyFiles(keys, 0), "cli")
    assert {path.stat().st_mode & 0o777 for path in keys.rglob("*") if path.is_file()} == {0o600}


def test_a_name_without_keys_is_named(keys: Path) -> None:
    with pytest.raises(RotationError, match=r"bob/curve\.secret: No such file; --keys names the directory"):
        rotate_link_key(KeyFiles(keys, 0), "bob")


def test_a_command_that_fails_stops_the_rotation_and_says_how_it_goes_on(keys: Path) -> None:
    old = LinkKeys.load(keys / "cli").public
    with pytest.raises(RotationError, match=r"`exit 3` ended with exit code 3: .* run the same `saltern rotate` again"):
        rotate_link_key(KeyFiles(keys, 0, apply="exit 3"), "cli")
    assert LinkKeys.load(keys / "cli").public == old
    rotate_link_key(KeyFiles(keys, 0, apply="true"), "cli")
    assert LinkKeys.load(keys / "cli").public != old
    assert zmq.curve_public((keys / "cli" / "curve.secret").read_bytes().strip()) == LinkKeys.load(keys / "cli").public
