"""The formulas of ``examples/formulas`` compile as in real Salt on several systems and with several pillars; the one that manages
only files and commands is run by both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from .comparison import once, shown
from .conftest import Salt, Tree, ours

pytestmark = pytest.mark.oracle

_FORMULAS = Path(__file__).parents[3] / "examples" / "formulas"

#: Grains that formulas ask for.
_SYSTEMS: Mapping[str, dict[str, Any]] = {
    "Debian": {"os_family": "Debian", "os": "Debian", "osfinger": "Debian-12"},
    "RedHat": {"os_family": "RedHat", "os": "CentOS Stream", "osfinger": "CentOS Stream-9", "osmajorrelease": 9},
    "Suse": {"os_family": "Suse", "os": "SUSE", "osfinger": "Leap-15", "roles": []},
}

#: Formula -> what is applied, and how many chunks that is at least with the example of a pillar.
_APPLIED: Mapping[str, Mapping[str, int]] = {
    "webserver": {"webserver": 15, "webserver.clean": 5},
    "accounts": {"accounts": 18},
    "releases": {"releases": 32, "releases.clean": 1},
    "database": {"database": 15},
    "ssh": {"openssh": 10},
    "firewall": {"firewall": 15},
    "scheduling": {"scheduling": 15},
    "mounts": {"mounts": 8},
    "certificates": {"certificates": 10},
    "containers": {"containers": 9},
    "application": {"application": 12},
}

_CASES = [
    (formula, system, pillar, sls)
    for formula, applied in _APPLIED.items()
    for system in _SYSTEMS
    for pillar in ("none", "example")
    for sls in applied
]


def _tree(formula: str, system: str, pillar: Mapping[str, Any], sls: str) -> Tree:
    directory = _FORMULAS / formula
    files = {str(path.relative_to(directory)): path.read_text() for path in directory.glob("*/**/*") if path.is_file()}
    assert files
    return Tree(
        id=formula,
        files=files | {"top.sls": yaml.safe_dump({"base": {"*": [sls]}})},
        pillar={"a.sls": yaml.safe_dump(dict(pillar))} if pillar else {},
        grains={**_SYSTEMS[system], "shell": "/bin/sh"},
    )


def _low(chunk: dict[str, Any]) -> dict[str, Any]:
    """A chunk as it is where services are known: real Salt knows those of the machine it is on, whatever the grains say."""
    chunk = once(chunk)
    if chunk["state"] == "service" and "watch" in chunk:
        chunk["require"] = [*chunk.get("require", ()), *chunk.pop("watch")]
    return chunk


def _pillar(formula: str, which: str) -> dict[str, Any]:
    return dict(yaml.safe_load((_FORMULAS / formula / "pillar.example").read_text())) if which == "example" else {}


@pytest.mark.parametrize(
    ("formula", "system", "pillar", "sls"),
    _CASES,
    ids=[f"{sls} on {system}, pillar {pillar}" for _, system, pillar, sls in _CASES],
)
def test_compiles_as_in_salt(formula: str, system: str, pillar: str, sls: str, salt: Salt, tmp_path: Path) -> None:
    tree = _tree(formula, system, _pillar(formula, pillar), sls)
    answer = salt.ask(tree, ("high", "low"))
    own, salts = ours(tree, tmp_path, ("high", "low")), answer()
    assert isinstance(own["high"], dict), "\n".join(own["high"])
    assert all(isinstance(chunk, dict) for chunk in own["low"]), own["low"]
    assert own["high"] == salts["high"]
    assert [_low(chunk) for chunk in own["low"]] == [_low(chunk) for chunk in salts["low"]]
    if pillar == "example":
        assert len(own["low"]) >= _APPLIED[formula][sls]


@pytest.mark.parametrize("system", _SYSTEMS)
def test_runs_as_in_salt(system: str, salt: Salt, tmp_path: Path) -> None:
    """Twice: what is as it should be stays, and the application that does not start is tried no more."""
    told = []
    for who in ("salt", "ours"):
        root = tmp_path / who
        pillar = _pillar("releases", "example")
        pillar["releases"]["root"] = str(root / "opt")
        tree = _tree("releases", system, pillar, "releases")
        came = []
        for number in range(2):
            ran = (salt.ask(tree, ("ran",))() if who == "salt" else ours(tree, tmp_path / str(number), ("ran",)))["ran"]
            plain = yaml.safe_load(re.sub(r"pid: \d+", "pid: 1", yaml.safe_dump(ran).replace(str(root), "")))
            came.append(shown({"pillar": {}, "high": {}, "low": [], "ran": plain})["ran"])
        files = {str(path.relative_to(root)): _content(path, root) for path in root.rglob("*")}
        told.append((came, files))
    salts, own = told
    assert own == salts
    results = [{tag: result for tag, result, *_ in came} for came in own[0]]
    assert [list(each.values()).count(False) for each in results] == [2, 0]
    assert len(own[1]) > 10


def _content(path: Path, root: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}".replace(str(root), "")
    return f"{path.stat().st_mode:o} {path.read_text() if path.is_file() else ''}"
