"""The compiler and the runtime beside real Salt: the same trees give the same high data, low data, runs and pillar."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import Tree, ours, trees

pytestmark = pytest.mark.oracle

_TREES = trees()


@pytest.mark.parametrize("tree", _TREES, ids=[tree.id for tree in _TREES])
def test_as_salt(tree: Tree, salt_says: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    salts, own = _shown(salt_says[tree.id]), _shown(ours(tree, tmp_path / "t"))
    for part in salts:
        if part not in tree.differs:
            assert agreed(own[part], salts[part]) == salts[part], part


def agreed(own: Any, salts: Any) -> Any:
    """Ours, with Salt's line for each that begins with it: ours may say more behind Salt's words."""
    if not isinstance(own, list) or not isinstance(salts, list) or len(own) != len(salts):
        return own
    return [theirs if _says(each, theirs) else each for each, theirs in zip(own, salts, strict=True)]


def _says(own: Any, salts: Any) -> bool:
    return isinstance(own, str) and isinstance(salts, str) and own.startswith(salts)


def _shown(told: dict[str, Any]) -> dict[str, Any]:
    """What is compared: of errors the first line of each, as ours say more; of a run what came of each state, in order."""
    pillar = dict(told["pillar"])
    errors = pillar.pop("_errors", None)
    return {
        "pillar": pillar,
        "errors": _first_lines(errors or []),
        "high": _first_lines(told["high"]),
        "low": _low(told["low"]),
        "ran": _ran(told["ran"]),
    }


def _first_lines(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [each.splitlines()[0].rstrip() if isinstance(each, str) else each for each in value]


def _low(chunks: Any) -> Any:
    if not chunks or isinstance(chunks[0], str):
        return _first_lines(chunks)
    return chunks


def _ran(running: Any) -> Any:
    if isinstance(running, list):
        return _first_lines(running)
    ordered = sorted(running.items(), key=lambda item: item[1]["__run_num__"])
    return [(tag, entry["result"], entry["changes"], _comment(entry)) for tag, entry in ordered]


def _comment(entry: dict[str, Any]) -> Any:
    """The comment; of a failure the first line, as ours add what is near and where it stands."""
    return _first_lines([entry["comment"]]) if entry["result"] is False and entry["comment"] else entry["comment"]
