"""Files that minions send: where they go, and what is not taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.redis

Worker = Any


@pytest.fixture
def worker(new_worker: Callable[..., Worker], tmp_path: Path) -> Worker:
    return new_worker(file_recv=True, file_recv_max_size=1, cachedir=str(tmp_path / "cache"))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "minions" / "web1" / "files"


def test_chunks_make_a_file(worker: Worker, files: Path) -> None:
    minion = worker.minion()
    chunks = [(0, b"one"), (3, b"two"), (3, b"two"), (6, b"!")]
    assert all(minion.ask("_file_recv", path=["etc", "x"], size=7, loc=loc, data=data) for loc, data in chunks)
    assert (files / "etc" / "x").read_bytes() == b"onetwo!"
    # A shorter one that is sent later replaces it.
    assert minion.ask("_file_recv", path=["etc", "x"], size=1, loc=0, data=b"y") is True
    assert (files / "etc" / "x").read_bytes() == b"y"


def test_an_empty_file_is_one_chunk(worker: Worker, files: Path) -> None:
    assert worker.minion().ask("_file_recv", path=["empty"], size=0, loc=0, data=b"") is True
    assert (files / "empty").read_bytes() == b""


@pytest.mark.parametrize(
    "change",
    [
        {"path": "etc/x"},
        {"path": []},
        {"path": ["..", "x"]},
        {"path": ["a", "../../../x"]},
        {"path": ["/etc", "x"]},
        {"path": ["a\0b"]},
        {"path": ["."]},
        {"path": ["a", None]},
        {"path": ["link", "x"]},
        {"loc": -1},
        {"loc": "0"},
        {"loc": True},
        {"loc": 5},
        {"loc": None},
        {"data": None},
        {"data": 5},
        {"data": b"x" * (1024 * 1024 + 1)},
        {"loc": 1024 * 1024, "data": b"x"},
    ],
)
def test_what_is_not_taken(worker: Worker, files: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    files.mkdir(parents=True)
    (files / "link").symlink_to(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert worker.minion().ask("_file_recv", **{"path": ["x"], "size": 1, "loc": 0, "data": b"x"} | change) is False
    assert sorted(tmp_path.rglob("*")) == before


def test_none_is_taken_unless_the_option_says_so(new_worker: Callable[..., Worker], tmp_path: Path) -> None:
    worker = new_worker(cachedir=str(tmp_path / "cache"))
    assert worker.minion().ask("_file_recv", path=["x"], size=1, loc=0, data=b"x") is False
    assert not (tmp_path / "cache").exists()
