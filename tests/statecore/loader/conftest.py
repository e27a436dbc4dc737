"""A loader over a directory of users' modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statecore.engine.call import finish
from statecore.host.host import Host
from statecore.loader import Loader
from statecore.loader.tables import attached
from statecore.model.context import Context


class Shelf:
    """Users' modules on disk, and contexts that reach them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.loader = Loader(directory)

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def context(self, test: bool = False, **opts: Any) -> Context:
        nothing: Any = None
        bare = Context(
            host=Host(self.directory),
            grains={"os": "Debian"},
            pillar={"key": "value"},
            opts={"id": "m1", **opts},
            files=nothing,
            templates=nothing,
            events=nothing,
            jobs=nothing,
            minion=nothing,
            catalog=nothing,
            state_system=nothing,
            functions={},
            states={},
            test=test,
        )
        return attached(bare, self.loader, finish)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """An empty shelf."""
    return Shelf(tmp_path)
