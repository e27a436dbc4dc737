"""``-a`` and ``-T``: which token a command sends, and where it stays."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from saltern.cli.sign_in import TOKEN_FILE, signed_in
from saltern.kit.command.command_line import CommandError
from saltern.kit.links.control import ControlError


class FakeControl:
    """Notes what is asked; ``known`` are the tokens that the master accepts."""

    def __init__(self, *known: str, wrong: bool = False) -> None:
        self.token = ""
        self.known = known
        self.wrong = wrong
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def call(self, cmd: str, *, timeout: float | None = None, **fields: Any) -> Any:
        self.asked.append((cmd, fields))
        if cmd == "login":
            if self.wrong:
                raise ControlError("EauthAuthenticationError", "Authentication failure")
            return {"token": "new"}
        if cmd == "token_info" and fields["of"] not in self.known:
            raise ControlError("TokenAuthenticationError", "unknown")
        return {"eauth": "file"}


def _flags(**more: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"eauth": "", "make_token": False, "username": "", "password": ""} | more)


def _used(control: FakeControl, home: Path, **more: Any) -> str:
    """The token that the command sent."""
    env = {"HOME": str(home)}
    with signed_in(control, _flags(**more), env, lambda prompt: "ann", lambda prompt: "secret"):  # type: ignore[arg-type]
        return control.token


def test_without_it_the_key_counts(tmp_path: Path) -> None:
    (tmp_path / TOKEN_FILE).write_text("old")
    control = FakeControl("old")
    assert _used(control, tmp_path) == ""
    assert control.asked == []


def test_a_token_ends_with_the_command(tmp_path: Path) -> None:
    control = FakeControl()
    assert _used(control, tmp_path, eauth="file") == "new"
    assert control.asked == [
        ("login", {"username": "ann", "password": "secret", "eauth": "file"}),
        ("logout", {"of": "new"}),
    ]
    assert control.token == ""
    assert not (tmp_path / TOKEN_FILE).exists()


def test_a_kept_token_serves_until_it_ends(tmp_path: Path) -> None:
    control = FakeControl()
    assert _used(control, tmp_path, eauth="file", make_token=True) == "new"
    path = tmp_path / TOKEN_FILE
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert _used(FakeControl("new"), tmp_path, eauth="file") == "new"
    for known, more in (
        (("new",), {"eauth": "pam"}),
        ((), {"eauth": "file"}),
        (("new",), {"eauth": "file", "username": "b"}),
    ):
        control = FakeControl(*known)
        _used(control, tmp_path, **more)
        assert "login" in [cmd for cmd, _ in control.asked]


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / TOKEN_FILE).symlink_to(other)
    _used(FakeControl(), tmp_path, eauth="file", make_token=True)
    assert other.read_text() == "mine"
    assert (tmp_path / TOKEN_FILE).read_text() == "new"


@pytest.mark.parametrize(
    ("control", "more", "code"),
    [(FakeControl(wrong=True), {"eauth": "file"}, 2), (FakeControl(), {"make_token": True}, 64)],
)
def test_what_is_wrong(tmp_path: Path, control: FakeControl, more: dict[str, Any], code: int) -> None:
    with pytest.raises(CommandError) as caught:
        _used(control, tmp_path, **more)
    assert caught.value.code == code
