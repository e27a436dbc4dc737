"""Where the lab's settings come from."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from saltern.lab import settings
from saltern.lab.plan import PORTS, LabError
from saltern.lab.settings import RequestedSettings


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree" / "salt").mkdir(parents=True)
    return tmp_path / "tree"


def requested_settings(*words: str) -> RequestedSettings:
    parser = argparse.ArgumentParser()
    settings.add_flags(parser)
    return settings.requested_settings(parser.parse_args(words))


def test_without_a_word_the_defaults_hold(tree: Path) -> None:
    chosen = settings.settle(requested_settings("--tree", str(tree)), None)
    assert chosen.minions == ("web1", "web2")
    assert chosen.ports == {name: row.default for name, row in PORTS.items()}


def test_every_port_has_an_option(tree: Path) -> None:
    words = [word for number, name in enumerate(PORTS, 7000) for word in (f"--{name.replace('_', '-')}", str(number))]
    chosen = settings.settle(requested_settings("--tree", str(tree), *words), None)
    assert list(chosen.ports.values()) == list(range(7000, 7000 + len(PORTS)))


def test_a_shift_moves_all_ports_but_those_that_are_named(tree: Path) -> None:
    chosen = settings.settle(requested_settings("--tree", str(tree), "--shift", "20000", "--ret-port", "5000"), None)
    assert chosen.ports["publish_port"] == 24505
    assert chosen.ports["ret_port"] == 5000


def test_the_last_start_is_remembered_and_a_word_changes_it(tree: Path, tmp_path: Path) -> None:
    first = settings.settle(requested_settings("--tree", str(tree), "--shift", "20000", "--minions", "a,b,a"), None)
    (tmp_path / "lab.json").write_text(settings.dump(first))
    last = settings.load(tmp_path / "lab.json")
    assert last == first
    assert settings.settle(requested_settings(), last) == first
    assert settings.settle(requested_settings("--shift", "0"), last).ports["publish_port"] == 4505
    assert settings.settle(requested_settings("--ret-port", "5000"), last).ports == {**first.ports, "ret_port": 5000}


def test_what_a_running_lab_cannot_become_is_said(tree: Path) -> None:
    running = settings.settle(requested_settings("--tree", str(tree)), None)
    wanted = settings.settle(requested_settings("--minions", "web1", "--ret-port", "5000"), running)
    assert settings.differences(running, wanted) == ["--minions web1,web2, not web1", "--ret-port 4506, not 5000"]
    assert settings.differences(running, running) == []


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--minions", ""], "at least one"),
        (["--minions", "../x"], "'../x'"),
        (["--minions", "web 1"], "'web 1'"),
        (["--minions", "a:b"], "'a:b'"),
        (["--workers", "0"], "--workers"),
    ],
)
def test_names_and_numbers_that_cannot_be(words: list[str], named: str) -> None:
    with pytest.raises(LabError, match=named):
        requested_settings(*words)


def test_a_directory_that_is_no_state_tree(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="--tree"):
        settings.settle(requested_settings("--tree", str(tmp_path)), None)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"tree": "/x", "minions": ["a/b"], "workers": 1, "ports": {}}'])
def test_spoilt_settings_are_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "lab.json").write_text(content)
    with pytest.raises(LabError, match=r"lab\.json"):
        settings.load(tmp_path / "lab.json")


def test_a_lab_that_never_started_has_none(tmp_path: Path) -> None:
    assert settings.load(tmp_path / "lab.json") is None
