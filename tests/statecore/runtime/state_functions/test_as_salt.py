"""Every scene: the same value and the same exit code as real Salt's, call by call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import Scene, agreed, ours, plainly, scenes


@pytest.mark.oracle
@pytest.mark.parametrize("scene", scenes(), ids=lambda scene: scene.id)
def test_as_salt(scene: Scene, salt_says: dict[str, list[Any]], other_process: int, tmp_path: Path) -> None:
    own = plainly(ours(scene, tmp_path, other_process), tmp_path)
    told = {
        name: (agreed(mine, salts), salts)
        for name, mine, salts in zip(scene.calls, own, salt_says[scene.id], strict=True)
        if name not in scene.differs
    }
    assert {name: mine for name, (mine, _) in told.items()} == {name: salts for name, (_, salts) in told.items()}


def test_differences_name_calls() -> None:
    assert [(scene.id, name) for scene in scenes() for name in scene.differs if name not in scene.calls] == []
