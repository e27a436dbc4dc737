"""The minion's beacons: where they come from, who changes them, and the process that looks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from saltern.minion.duties import beacon_watch
from saltern.minion.duties.beacons import Beacons
from saltern.minion.ipc.control import MinionNotRunning

PS = [{"processes": {"nginx": "running"}}]


@pytest.fixture
def told() -> list[Any]:
    return []


@pytest.fixture
def beacons(tmp_path: Path, told: list[Any]) -> Beacons:
    return Beacons({"ps": PS}, tmp_path / "minion.d" / "beacons.conf", told.extend)


def manage(beacons: Beacons, verb: str, **request: Any) -> dict[str, Any]:
    return beacons.manage({"verb": verb, **request})


def test_the_configuration_stands_in_for_the_pillar(beacons: Beacons) -> None:
    beacons.update({"beacons": {"ps": [], "load": []}})
    assert manage(beacons, "list")["beacons"] == {"ps": PS, "load": []}
    assert manage(beacons, "list", include_pillar=False)["beacons"] == {"ps": PS}
    assert manage(beacons, "list", include_opts=False)["beacons"] == {"ps": [], "load": []}
    beacons.update({"beacons": ["no map"]})
    assert manage(beacons, "list")["beacons"] == {"ps": PS}


def test_changes(beacons: Beacons) -> None:
    beacons.update({"beacons": {"load": []}})
    for verb in ("add", "modify", "delete", "enable_beacon", "disable_beacon"):
        refused = manage(beacons, verb, name="load", beacon_data=[])
        assert refused["complete"] is False
        assert "configured in pillar" in refused["comment"]
    assert manage(beacons, "add", name="log", beacon_data=[])["beacons"] == {"ps": PS, "log": []}
    assert manage(beacons, "disable_beacon", name="ps")["beacons"]["ps"] == [*PS, {"enabled": False}]
    assert manage(beacons, "enable_beacon", name="ps")["beacons"]["ps"] == [*PS, {"enabled": True}]
    assert manage(beacons, "delete", name="ps")["comment"] == "Deleting beacon item: ps"
    assert manage(beacons, "delete", name="ps")["comment"] == "Beacon item ps not found."
    assert manage(beacons, "disable")["beacons"] == {"log": [], "enabled": False}
    assert beacons.any
    assert manage(beacons, "reset")["beacons"] == {}
    beacons.update({})
    assert not beacons.any
    with pytest.raises(ValueError, match="unknown verb dance for beacons"):
        manage(beacons, "dance")


def test_they_are_kept(beacons: Beacons, tmp_path: Path) -> None:
    assert manage(beacons, "save") == {"unsaved": "", "file": str(tmp_path / "minion.d" / "beacons.conf")}
    assert yaml.safe_load((tmp_path / "minion.d" / "beacons.conf").read_text()) == {"beacons": {"ps": PS}}


def test_what_was_seen_goes_to_the_master(beacons: Beacons, told: list[Any]) -> None:
    event = {"tag": "t", "data": {}}
    answer = manage(beacons, "look", events=[event], done=["ps", "gone"])
    assert told == [event]
    assert answer["beacons"] == {"ps": [*PS, {"enabled": False}]}


class Runs:
    """Looks that tell their number."""

    def __init__(self) -> None:
        self.looks = 0

    def call_due(self, configured: Mapping[str, Any], now: float, states_run: Any) -> tuple[list[Any], list[str]]:
        self.looks += 1
        return [{"tag": str(self.looks)}], [str(self.looks)]


def test_the_process_brings_what_it_saw_and_ends_when_there_is_nothing_to_look_at() -> None:
    runs: Any = Runs()
    answers = [{"beacons": {"ps": PS}}, {"beacons": {"ps": PS}}, {"beacons": {"enabled": True}}]
    asked: list[Any] = []

    def ask(request: Mapping[str, Any]) -> Mapping[str, Any]:
        asked.append(request)
        return answers.pop(0)

    beacon_watch.run_loop(runs, ask, lambda: False, os.getppid())
    assert [(one["events"], one["done"]) for one in asked] == [
        ([], []),
        ([{"tag": "1"}], ["1"]),
        ([{"tag": "2"}], ["2"]),
    ]


def test_the_process_ends_with_the_minion() -> None:
    def nobody(request: Mapping[str, Any]) -> Mapping[str, Any]:
        raise MinionNotRunning("gone")

    runs: Any = Runs()
    beacon_watch.run_loop(runs, nobody, lambda: False, os.getppid())
    beacon_watch.run_loop(runs, nobody, lambda: False, -1)
    assert runs.looks == 0
