"""Trees as data, made and run by both: real Salt in one process for all of them, ours in this one.

A tree (``trees/*.yaml``) has these keys:

``files``, ``pillar``
    path -> text, of the state tree and of the pillar tree. Without a ``top.sls`` every minion gets ``a``.
``dev``, ``pillar_dev``
    the same of the environment dev
``opts``, ``grains``
    options of the minion, grains besides GRAINS
``differs``
    what ours does otherwise on purpose, and why: ``high``, ``low``, ``ran`` or ``pillar`` -> the reason. That much is not
    compared; what ours does is in the tests of its part.

Grains are the same for all (GRAINS) but for those that a tree sets.
"""

from __future__ import annotations

import json
import select
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from statecore.runtime.runtime import local_runtime
from tests import case_files

GRAINS: Mapping[str, Any] = {
    "id": "web1",
    "os": "Debian",
    "os_family": "Debian",
    "osmajorrelease": 12,
    "roles": ["web", "db"],
    "ipv4": ["127.0.0.1", "192.0.2.7"],
    "nested": {"key": "value"},
}

#: What is asked of a tree.
PARTS = ("high", "low", "ran")

#: A tree leaves most of a megabyte behind in real Salt.
_ANSWERS = 400

#: Real Salt starts in two seconds and answers in a tenth of one.
_ANSWER_SECONDS = 60

_HERE = Path(__file__).parent

_FUNCTIONS: Mapping[str, str] = {
    "high": "state.show_highstate",
    "low": "state.show_lowstate",
    "ran": "state.highstate",
}

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
    grains: Mapping[str, Any] = field(default_factory=dict)
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
        # Users' modules as they were fetched for an earlier run.
        for path in (path for path in self.files if path.startswith("_")):
            fetched = directory / "extmods" / path.removeprefix("_")
            fetched.parent.mkdir(parents=True, exist_ok=True)
            fetched.write_text(self.files[path])

        def roots(base: str, dev: str) -> dict[str, list[str]]:
            return {"base": [f"{directory}/{base}"]} | ({"dev": [f"{directory}/{dev}"]} if trees[dev] else {})

        own = {"file_roots": roots("base", "dev"), "pillar_roots": roots("pillar", "pillar_dev")}
        return own | dict(self.opts)


def trees() -> list[Tree]:
    """All trees, ids "file/tree"."""
    return [
        Tree(id=f"{path.stem}/{name}", **tree)
        for path in sorted(_HERE.glob("trees/*.yaml"))
        for name, tree in case_files.read(path).items()
    ]


def ours(tree: Tree, directory: Path, parts: Sequence[str] = PARTS) -> dict[str, Any]:
    """What our state engine makes of a tree."""
    opts = {
        **tree.write(directory),
        "id": "web1",
        "cachedir": str(directory / "cache"),
        "extension_modules": str(directory / "extmods"),
        "grains": {**GRAINS, **tree.grains},
    }
    runtime = local_runtime(opts)
    told = {"pillar": dict(runtime.pillar)}
    told |= {part: runtime.call(_FUNCTIONS[part]).value for part in parts}
    return dict(json.loads(json.dumps(told, default=str)))


class Salt:
    """Real Salt in a process that answers one tree after the other, and makes room for another when it has grown fat."""

    def __init__(self, python: str, directory: Path) -> None:
        self._python = python
        self._directory = directory
        self._count = 0
        self._process: subprocess.Popen[str] | None = None

    def ask(self, tree: Tree, parts: Sequence[str] = PARTS) -> Callable[[], dict[str, Any]]:
        """Hands over a tree; what is returned waits for the answer, so that ours may work meanwhile. One at a time."""
        if self._process is None or self._count % _ANSWERS == 0:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        self._count += 1
        directory = self._directory / str(self._count)
        asked = {
            "directory": str(directory),
            "grains": {**GRAINS, **tree.grains},
            "opts": tree.write(directory),
            "pillar": bool(tree.pillar),
            "parts": parts,
        }
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()

        def answer() -> dict[str, Any]:
            told = self._line()
            # Something of Salt may still be writing its cache.
            shutil.rmtree(directory, ignore_errors=True)
            return told

        return answer

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> None:
        self.close()
        with (self._directory / "stderr").open("w") as errors:
            self._process = subprocess.Popen(
                [self._python, str(_HERE / "salt_trees.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def _line(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        # A line comes whole, and only after it was asked for: nothing is left behind in a buffer.
        ready, _, _ = select.select([self._process.stdout], [], [], _ANSWER_SECONDS)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            said = (self._directory / "stderr").read_text()[-2000:]
            raise AssertionError(f"real Salt does not answer: {said}")
        return dict(json.loads(line))


@pytest.fixture(scope="session")
def salt(oracle: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Salt]:
    """Real Salt, ready to be asked."""
    process = Salt(oracle.program("python"), tmp_path_factory.mktemp("salt"))
    try:
        yield process
    finally:
        process.close()
