"""Top files compared with real Salt: merge strategies, saltenvs, target types, rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statecore.model.errors import SlsError
from statecore.render import SlsTree
from statecore.sources.local_tree import LocalFiles
from tests import case_files

from .conftest import GRAINS, PILLAR, Functions, write_tree

pytestmark = pytest.mark.oracle

_NETWORKS = {"ipv4": ["127.0.0.1", "192.0.2.7"], "ipv6": ["2001:db8::7"], "fqdn_ip4": []}

CASES: dict[str, dict[str, Any]] = case_files.read(Path(__file__).parent / "tops.yaml")


def _envs(case: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {name: files for name, files in case.items() if name not in ("opts", "differs")}


@pytest.fixture(scope="module")
def salts(ask_salt: Any) -> dict[str, tuple[str, Any]]:
    files = {
        f"c{number}/{env}/{path}": text
        for number, case in enumerate(CASES.values())
        for env, own in _envs(case).items()
        for path, text in own.items()
    }
    asks = [
        ["top", f"c{number}", list(_envs(case)), case.get("opts", {})] for number, case in enumerate(CASES.values())
    ]
    return dict(zip(CASES, ask_salt(files, asks, grains=GRAINS | _NETWORKS), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_as_salt(name: str, salts: dict[str, tuple[str, Any]], tmp_path: Path) -> None:
    case = CASES[name]
    kind, value = salts[name]
    envs = _envs(case)
    for env, files in envs.items():
        write_tree(tmp_path / env, files)
    tree = SlsTree(
        LocalFiles({env: [tmp_path / env] for env in envs}),
        opts={"id": "web1", **case.get("opts", {})},
        grains=GRAINS | _NETWORKS,
        pillar=PILLAR,
        functions=Functions(),
    )
    try:
        own: Any = {env: refs for env, refs in tree.top().items() if refs}
    except SlsError as error:
        own = {"errors": [fault.message for fault in error.faults]}
    if kind == "value" and "errors" not in value:
        value = {env: refs for env, refs in value.items() if refs}
    if "differs" in case:
        assert own != value, "no difference any more"
    elif kind == "error":
        assert "errors" in own, f"Salt refuses it: {value}; ours: {own}"
    else:
        assert own == value
