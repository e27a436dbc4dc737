"""Events for users' returners: which, when, and what becomes of those that fail."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from saltern.kit.config.master import MasterOptions
from saltern.reactor.event_return import EventReturns, wanted
from saltern.reactor.sls import runtime_of

#: A user's returner.
RETURNER = """
import json

def event_return(events):
    with open({place!r}, "a") as file:
        file.write(json.dumps([[event["tag"], event["data"]["n"]] for event in events]) + "\\n")
"""


class Given:
    """Event returns over a user's returner, and a clock."""

    def __init__(self, tmp_path: Path, **options: Any) -> None:
        self.place, self.now = tmp_path / "stored", 0.0
        directory = tmp_path / "returners"
        directory.mkdir()
        (directory / "kept.py").write_text(RETURNER.format(place=str(self.place)))
        (directory / "broken.py").write_text("def event_return(events):\n    raise OSError('no room')\n")
        chosen = MasterOptions(returner_dirs=[str(directory)], extension_modules=str(tmp_path / "none"), **options)
        self.returns = EventReturns(chosen, runtime_of(chosen), lambda: self.now)

    def stored(self) -> list[Any]:
        return [json.loads(line) for line in self.place.read_text().splitlines()] if self.place.exists() else []


def test_each_event_is_handed_on(tmp_path: Path) -> None:
    given = Given(tmp_path, event_return="kept")
    for number in range(2):
        given.returns.feed("a/b", {"n": number})
    assert given.stored() == [[["a/b", 0]], [["a/b", 1]]]


def test_events_are_kept_back_until_there_are_enough_or_it_is_time(tmp_path: Path) -> None:
    given = Given(tmp_path, event_return=["kept"], event_return_queue=2, event_return_queue_max_seconds=10)
    for number in range(3):
        given.returns.feed("a", {"n": number})
    assert given.stored() == [[["a", 0], ["a", 1], ["a", 2]]]
    given.returns.feed("a", {"n": 3})
    given.now = 9.0
    given.returns.flush_overdue()
    assert len(given.stored()) == 1
    given.now = 10.0
    given.returns.flush_overdue()
    assert given.stored()[1:] == [[["a", 3]]]
    given.returns.feed("a", {"n": 4})
    given.returns.flush()
    assert given.stored()[2:] == [[["a", 4]]]


def test_one_that_fails_is_told_and_not_in_the_way(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    given = Given(tmp_path, event_return=["broken", "nosuch", "kept"])
    given.returns.feed("a", {"n": 1})
    assert given.stored() == [[["a", 1]]]
    assert "the returner broken did not store 1 events: no room" in caplog.text
    assert "nosuch" in caplog.text


@pytest.mark.parametrize(
    ("tag", "whitelist", "blacklist", "goes"),
    [
        ("a/b", [], [], True),
        ("a/b", ["a/*"], [], True),
        ("a/b", ["c/*"], [], False),
        ("a/b", [], ["*/b"], False),
        ("a/b", ["a/*"], ["a/b"], False),
    ],
)
def test_which_events_go(tag: str, whitelist: list[str], blacklist: list[str], goes: bool) -> None:
    assert wanted(tag, whitelist, blacklist) is goes
