"""``eventlisten``: events as they fire."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from saltern.cli import eventlisten

EVENTS = [
    (1.0, "salt/job/1/new", {"fun": "test.ping", "minions": ["a"]}),
    (2.0, "salt/auth", {"id": "a"}),
    (3.0, "salt/job/1/ret/a", {"return": True}),
]


def test_the_look() -> None:
    text = eventlisten.shown("salt/job/1/new", {"tgt": "*", "arg": []}, datetime(2016, 11, 8, 9, 52, 4))
    assert text == (
        "Event fired at Tue Nov 8 09:52:04 2016\n*************************\nTag: salt/job/1/new\nData:\n"
        "{'arg': [], 'tgt': '*'}\n"
    )


@pytest.mark.parametrize(
    ("words", "tags"),
    [
        (["-n", "3"], ["salt/job/1/new", "salt/auth", "salt/job/1/ret/a"]),
        (["-n", "2"], ["salt/job/1/new", "salt/auth"]),
        (["salt/job/*", "-n", "2"], ["salt/job/1/new", "salt/job/1/ret/a"]),
        (["salt/auth", "salt/job/.*/ret/a", "-n", "2"], ["salt/auth", "salt/job/1/ret/a"]),
    ],
)
def test_which(
    master: Callable[..., Any], capsys: pytest.CaptureFixture[str], words: list[str], tags: list[str]
) -> None:
    fake = master(events=list(EVENTS))
    assert eventlisten.run(words, fake.context()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.removeprefix("Tag: ") for line in lines if line.startswith("Tag: ")] == tags


def test_without_a_bus(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master(hears=False)
    assert eventlisten.run([], fake.context()) == 69
    assert "no answer from the event bus" in capsys.readouterr().err


def test_ctrl_c_ends_it(master: Callable[..., Any]) -> None:
    fake = master(events=[(1.0, KeyboardInterrupt(), None)])
    assert eventlisten.run([], fake.context()) == 0


@pytest.mark.parametrize("count", ["x", "-1", "0", "1.5", "²"])
def test_a_wrong_word(master: Callable[..., Any], count: str) -> None:
    with pytest.raises(SystemExit) as ended:
        eventlisten.run([f"--count={count}"], master(events=list(EVENTS)).context())
    assert ended.value.code == 64
