"""The compiler and the runtime beside real Salt: the same trees give the same high data, low data, runs and pillar."""

from __future__ import annotations

from pathlib import Path

import pytest

from .comparison import agreed, shown
from .conftest import Salt, Tree, ours, trees

pytestmark = pytest.mark.oracle

_TREES = trees()


@pytest.mark.parametrize("tree", _TREES, ids=[tree.id for tree in _TREES])
def test_as_salt(tree: Tree, salt: Salt, tmp_path: Path) -> None:
    answer = salt.ask(tree)
    own, salts = shown(ours(tree, tmp_path / "t")), shown(answer())
    for part in salts:
        if part not in tree.differs:
            assert agreed(own[part], salts[part]) == salts[part], part
