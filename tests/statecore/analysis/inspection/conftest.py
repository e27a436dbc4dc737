"""Trees of files, looked at for a minion whose grains and pillar are given: nothing of the machine that runs the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from statecore.runtime.runtime import Runtime, local_runtime
from statecore.runtime.state_runs.state_system import RunParts

GRAINS = {"os": "Debian", "os_family": "Debian", "kernel": "Linux"}


class Minion:
    """A minion that is nothing but directories."""

    def __init__(self, directory: Path) -> None:
        self.tree = directory / "tree"
        self.host = directory / "host"
        self.directory = directory
        for path in (self.tree, self.host / "etc"):
            path.mkdir(parents=True)
        self.grains: dict[str, Any] = {**GRAINS, "id": "web1"}
        self.pillar: dict[str, Any] = {}

    def write(self, files: Mapping[str, str]) -> None:
        """Files of the state tree."""
        for name, text in files.items():
            path = self.tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def runtime(self, **opts: Any) -> Runtime:
        """A new runtime over what there is now."""
        whole = {
            "id": "web1",
            "file_roots": {"base": [str(self.tree)]},
            "pillar_roots": {"base": []},
            "host_root": str(self.host),
            "extension_modules": str(self.directory / "extmods"),
            "cachedir": str(self.directory / "cache"),
            **opts,
        }
        return local_runtime(whole, grains=self.grains, pillar=self.pillar)

    def run_parts(self, **options: Any) -> RunParts:
        """The parts of a run, in test mode unless told otherwise."""
        return self.runtime().run_parts({"test": True, **options})

    def short(self, text: str) -> str:
        """A text with the tree's own paths made short."""
        return text.replace(f"{self.tree}/", "")


#: minion(files, pillar={...}, grains={...})
MakeMinion = Callable[..., Minion]


@pytest.fixture
def minion(tmp_path: Path) -> MakeMinion:
    """Makes the minion of a test."""

    def make(files: Mapping[str, str], *, pillar: Any = None, grains: Any = None) -> Minion:
        made = Minion(tmp_path)
        made.write(files)
        made.pillar = dict(pillar or {})
        made.grains |= dict(grains or {})
        return made

    return make
