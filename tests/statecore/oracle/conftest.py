"""Trees as data, made and run by both: real Salt in one process for all of them, ours in this one.

A tree (``trees/*.yaml``) has these keys:

``files``, ``pillar``
    path -> text, of the state tree and of the pillar tree. Without a ``top.sls`` every minion gets ``a``.
``dev``, ``pillar_dev``
    the same of the environment dev
``opts``
    options of the minion
``differs``
    what ours does otherwise on purpose, and why: ``high``, ``low``, ``ran`` or ``pillar`` -> the reason. That much is not
    compared; what ours does is in the tests of its part.

Grains are the same for all (GRAINS).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from statecore.runtime import local_runtime

GRAINS: Mapping[str, Any] = {
    "id": "web1",
    "os": "Debian",
    "os_family": "Debian",
    "osmajorrelease": 12,
    "roles": ["web", "db"],
    "ipv4": ["127.0.0.1", "192.0.2.7"],
    "nested": {"key": "value"},
}

_HERE = Path(__file__).parent

_TOP = "base:\n  '*':\n    - a\n"


@dataclass(frozen=True, slots=True)
class Tree:
    """One tree, as in the file."""

    id: str
    files: Mapping[str, str] = field(default_factory=dict)
    pillar: Mapping[str, str] = field(default_factory=dict)
    dev: Mapping[str, str] = field(default_factory=dict)
    pillar_dev: Mapping[str, str] = field(default_factory=dict)
    opts: Mapping[str, Any] = field(default_factory=dict)
    differs: Mapping[str, str] = field(default_factory=dict)

    def write(self, directory: Path) -> dict[str, Any]:
        """Makes the tree's directories; gives the options that name them."""
        pillar_top = {"top.sls": _TOP} if "a.sls" in self.pillar else {}
        trees = {
            "base": {"top.sls": _TOP} | dict(self.files),
            "dev": self.dev,
            "pillar": pillar_top | dict(self.pillar),
            "pillar_dev": self.pillar_dev,
        }
        for name, files in trees.items():
            (directory / name).mkdir(parents=True)
            for path, text in files.items():
                file = directory / name / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)

        def roots(base: str, dev: str) -> dict[str, list[str]]:
            return {"base": [f"{directory}/{base}"]} | ({"dev": [f"{directory}/{dev}"]} if trees[dev] else {})

        own = {"file_roots": roots("base", "dev"), "pillar_roots": roots("pillar", "pillar_dev")}
        return own | dict(self.opts)


def trees() -> list[Tree]:
    """All trees, ids "file/tree"."""
    return [
        Tree(id=f"{path.stem}/{name}", **tree)
        for path in sorted(_HERE.glob("trees/*.yaml"))
        for name, tree in yaml.safe_load(path.read_text()).items()
    ]


def ours(tree: Tree, directory: Path) -> dict[str, Any]:
    """What our state engine makes of a tree."""
    opts = {**tree.write(directory), "id": "web1", "cachedir": str(directory / "cache"), "grains": dict(GRAINS)}
    runtime = local_runtime(opts)
    told = {
        "pillar": dict(runtime.pillar),
        "high": runtime.call("state.show_highstate").value,
        "low": runtime.call("state.show_lowstate").value,
        "ran": runtime.call("state.highstate").value,
    }
    return dict(json.loads(json.dumps(told, default=str)))


@pytest.fixture(scope="session")
def salt_says(oracle: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What real Salt makes of every tree, by id."""
    directory = tmp_path_factory.mktemp("salt")
    asked = [
        {
            "directory": str(directory / str(number)),
            "grains": GRAINS,
            "opts": tree.write(directory / str(number)),
            "pillar": bool(tree.pillar),
        }
        for number, tree in enumerate(trees())
    ]
    told = json.loads(oracle.run("python", str(_HERE / "salt_trees.py"), stdin=json.dumps(asked), timeout=110))
    return {tree.id: each for tree, each in zip(trees(), told, strict=True)}
