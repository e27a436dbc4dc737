"""Which keys the lab accepts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saltern.lab.minions import accept_keys
from saltern.lab.plan import KeyStuckError, LabError, Paths


class Master:
    """A wheel with keys that come in at the first look or later."""

    def __init__(self, keys: dict[str, list[str]], later: Callable[[dict[str, list[str]]], None] | None = None) -> None:
        self.keys = keys
        self.accepted: list[str] = []
        self._later = later

    def __call__(self, fun: str, **kwarg: Any) -> Any:
        return {"key.list_all": self._list, "key.key_str": self._show, "key.accept": self._accept}[fun](**kwarg)

    def _list(self) -> dict[str, list[str]]:
        answer = {name: list(ids) for name, ids in self.keys.items()}
        if self._later:
            self._later(self.keys)
            self._later = None
        return answer

    def _show(self, match: list[str]) -> dict[str, dict[str, str]]:
        return {"minions_pre": {name: f"key of {name}" for name in match}}

    def _accept(self, match: list[str]) -> dict[str, list[str]]:
        self.accepted += match
        for name in match:
            self.keys["minions_pre"].remove(name)
            self.keys.setdefault("minions", []).append(name)
        return {"minions": match}


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    paths = Paths(tmp_path)
    for name in ("web1", "web2"):
        paths.pki_of(name).mkdir(parents=True)
        (paths.pki_of(name) / "minion.pub").write_text(f"key of {name}\n")
    return paths


def test_only_the_labs_own_minions_are_accepted(paths: Paths) -> None:
    master = Master({"minions_pre": ["web1", "stranger", "web2"]})
    assert sorted(accept_keys(master, paths, ["web1", "web2"], 1)) == ["web1", "web2"]
    assert master.keys["minions_pre"] == ["stranger"]


def test_keys_are_waited_for(paths: Paths) -> None:
    master = Master({"minions": ["web1"]}, lambda keys: keys.update(minions_pre=["web2"]))
    assert accept_keys(master, paths, ["web1", "web2"], 5) == ["web2"]


def test_accepted_keys_are_left_alone(paths: Paths) -> None:
    master = Master({"minions": ["web1", "web2"]})
    assert accept_keys(master, paths, ["web1", "web2"], 1) == []
    assert master.accepted == []


def test_a_stranger_under_the_name_of_a_minion_is_not_accepted(paths: Paths) -> None:
    (paths.pki_of("web1") / "minion.pub").write_text("another key\n")
    master = Master({"minions_pre": ["web1", "web2"]})
    with pytest.raises(LabError, match=r"web1.*another minion"):
        accept_keys(master, paths, ["web1", "web2"], 1)
    assert master.accepted == []


@pytest.mark.parametrize(("listed", "word"), [("minions_rejected", "rejected"), ("minions_denied", "denied")])
def test_keys_that_never_will_be_accepted_end_the_wait(paths: Paths, listed: str, word: str) -> None:
    with pytest.raises(KeyStuckError, match=f"web2 is {word}.*salt-key -d web2"):
        accept_keys(Master({"minions_pre": ["web1"], listed: ["web2"]}), paths, ["web1", "web2"], 60)


def test_a_minion_that_does_not_come_is_named_with_its_log(paths: Paths) -> None:
    with pytest.raises(LabError, match=r"web2 .*minion-web2\.log"):
        accept_keys(Master({"minions": ["web1"]}), paths, ["web1", "web2"], 0)
