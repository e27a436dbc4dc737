"""What a stock master remembers of its minions: its files are read, sent in portions, and written again."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from saltern.entry import main
from saltern.kit.command.command_line import CommandError
from saltern.moving import minion_data
from saltwire.pack import packb, unpackb
from tests.conftest import Oracle

GRAINS = {"id": "web1", "os": "Debian", "roles": ["web"]}
PILLAR = {"owner": "é", "since": datetime(2026, 3, 14, 12)}
MINE = {"test.ping": True, "network.ip_addrs": {"__data__": ["10.0.0.1"], "__saltmine_acl__": 1, "allow_tgt": "web*"}}
WHOLE = {"grains": GRAINS, "pillar": PILLAR, "mine": MINE}

#: Releases -> file below cachedir -> content.
LAYOUTS: dict[str, dict[str, Any]] = {
    "3008": {
        "grains/web1.p": GRAINS,
        "pillar/web1.p": PILLAR,
        "pillar/web1:dev.p": {"owner": "no"},
        "mine/web1.p": MINE,
    },
    "3006": {"minions/web1/data.p": {"grains": GRAINS, "pillar": PILLAR}, "minions/web1/mine.p": MINE},
    # 3008 on the cache of an older master: what it wrote is newer.
    "both": {
        "minions/web1/data.p": {"grains": {"id": "old"}, "pillar": PILLAR},
        "minions/web1/mine.p": MINE,
        "grains/web1.p": GRAINS,
    },
}


def lay(cachedir: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        path = cachedir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else packb(content))
    return cachedir


@pytest.mark.parametrize("release", LAYOUTS)
def test_the_files_of_each_release_are_read(tmp_path: Path, release: str) -> None:
    found = minion_data.read(lay(tmp_path, LAYOUTS[release]))
    assert (found.minions, found.faults) == ({"web1": WHOLE}, {})
    assert minion_data.count(tmp_path) == 1


def test_the_files_of_salt_itself_are_read_and_written(tmp_path: Path, oracle: Oracle) -> None:
    """Salt's own cache module writes them, and reads what is written here."""
    program = """
import sys, datetime, json, salt.cache, salt.config
opts = salt.config.master_config(None); opts["cachedir"] = sys.argv[1]
cache = salt.cache.factory(opts)
if sys.argv[2] == "store":
    cache.store("grains", "web1", {"id": "web1", "os": "Debian", "roles": ["web"]})
    cache.store("pillar", "web1", {"owner": "\\xe9", "since": datetime.datetime(2026, 3, 14, 12)})
    cache.store("mine", "web1", {"test.ping": True})
    cache.store("minions/old1", "data", {"grains": {"id": "old1"}, "pillar": {"a": 1}})
else:
    print(json.dumps([cache.fetch("grains", "web1"), cache.fetch("pillar", "web1"), cache.fetch("mine", "web1"),
                      cache.fetch("minions/web1", "data"), cache.fetch("minions/web1", "mine")], default=str))
"""
    oracle.run("python", "-c", program, str(tmp_path / "stock"), "store")
    found = minion_data.read(tmp_path / "stock")
    assert found.minions == {
        "web1": {**WHOLE, "mine": {"test.ping": True}},
        "old1": {"grains": {"id": "old1"}, "pillar": {"a": 1}},
    }
    minion_data.write(tmp_path / "again", {"web1": WHOLE})
    pillar = {**PILLAR, "since": "2026-03-14 12:00:00"}
    assert json.loads(oracle.run("python", "-c", program, str(tmp_path / "again"), "fetch")) == [
        GRAINS, pillar, MINE, {"grains": GRAINS, "pillar": pillar}, MINE,
    ]  # fmt: skip


def test_what_cannot_be_used_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lay(tmp_path, {**LAYOUTS["3008"], "mine/web1.p": b"\xc1", "grains/web2.p": [1], "grains/*.p": {"id": "*"}})
    found = minion_data.read(tmp_path)
    assert found.minions == {"web1": {"grains": GRAINS, "pillar": PILLAR}}
    assert found.faults[f"{tmp_path}/mine/web1.p"].startswith("not msgpack")
    assert found.faults[f"{tmp_path}/grains/web2.p"] == "must hold a map, not a list"
    assert found.faults[f"{tmp_path}: *"] == "the name is no minion id here"
    with pytest.raises(CommandError, match="is no directory; name the cachedir"):
        minion_data.read(tmp_path / "none")
    # The check sends nothing: there is no master.
    assert main(["import", "--data", str(tmp_path), "--check"]) == 1
    said = capsys.readouterr()
    assert said.out == "web1: grains, pillar\n"
    assert f"{tmp_path}/mine/web1.p: not msgpack" in said.err


def test_data_goes_in_portions(tmp_path: Path) -> None:
    minions: dict[str, dict[str, object]] = {f"m{number}": {"grains": {"id": f"m{number}"}} for number in range(45)}
    minions["large1"] = {"grains": {"x": "y" * 5_000_000}}
    minions["large2"] = {"grains": {"x": "y" * 5_000_000}}
    asked: list[list[str]] = []

    def wheel(fun: str, **kwarg: Any) -> Any:
        assert (fun, kwarg["replace"]) == ("minions.import_data", True)
        asked.append(list(kwarg["data"]))
        assert all(isinstance(unpackb(packed), dict) for packed in kwarg["data"].values())
        return {"stored": {minion: ["grains"] for minion in kwarg["data"]}, "refused": {}, "pillar_errors": {}}

    answers = minion_data.send(minion_data.Remembered(minions), wheel, replace=True)
    assert list(answers.stored) == list(minions)
    assert list(map(len, asked)) == [20, 20, 5, 1, 1]


def test_written_files_are_for_their_owner(tmp_path: Path) -> None:
    assert minion_data.write(tmp_path, {"web1": WHOLE, "web2": {"mine": MINE}}) == 7
    assert minion_data.read(tmp_path).minions == {"web1": WHOLE, "web2": {"mine": MINE}}
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*.p")} == {0o600}
