"""Every SLS block of the seeds, by its caption: it compiles as real Salt compiles it and as the seed says, and where it touches
nothing but files, it runs. What the seeds show as wrong is refused with the words that they have for it.

A block (``seeds/*.yaml``) is a tree, with these keys besides:

``sls``
    the SLS references that are applied
``runs``
    whether it is run, by both; ``/etc`` and ``/opt`` are then directories of the test. ``host``: files that are there before
``high``, ``low``, ``top``, ``tags``, ``order``
    what the seed shows: high data, low data, matches, tags of the run, IDs in order of the run list
``refused``
    what the errors say; FILE stands for the path of a file
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from statecore.runtime.runtime import local_runtime
from tests import case_files

from .comparison import refused, shown
from .conftest import GRAINS, Salt, Tree, ours

pytestmark = pytest.mark.oracle

_HERE = Path(__file__).parent

_TREE_KEYS = ("files", "opts", "grains", "differs")


@dataclass(frozen=True, slots=True)
class Block:
    """One code block."""

    id: str
    tree: Tree
    said: Mapping[str, Any]

    def on(self, root: Path) -> Tree:
        """The tree, with the host's directories below ``root``."""
        host = re.compile(r"(?:\A|(?<=[ \n']))/(?=(?:etc|opt)/)")
        texts = {path: host.sub(f"{root}/", text) for path, text in self.tree.files.items()}
        return replace(self.tree, files=texts)


def _blocks() -> list[Block]:
    found = []
    for path in sorted(_HERE.glob("seeds/*.yaml")):
        for caption, block in case_files.read(path).items():
            tree = {key: value for key, value in block.items() if key in _TREE_KEYS}
            if "sls" in block:
                tree["files"] = {**tree["files"], "top.sls": yaml.safe_dump({"base": {"*": block["sls"]}})}
            name = f"{path.stem}: {caption}"
            found.append(
                Block(name, Tree(id=name, **tree), {key: block[key] for key in block if key not in _TREE_KEYS})
            )
    return found


_BLOCKS = _blocks()


def _where(condition: str) -> Any:
    chosen = [block for block in _BLOCKS if condition in block.said]
    assert chosen
    return pytest.mark.parametrize("block", chosen, ids=[block.id for block in chosen])


@pytest.mark.parametrize("block", _BLOCKS, ids=[block.id for block in _BLOCKS])
def test_compiles_as_in_salt(block: Block, salt: Salt, tmp_path: Path) -> None:
    answer = salt.ask(block.tree, ("high", "low"))
    own, salts = ours(block.tree, tmp_path, ("high", "low")), answer()
    if "refused" in block.said:
        assert isinstance(own["low"][0], str)
        assert refused(own, salts) == ""
        return
    for part in ("high", "low"):
        assert own[part] == salts[part], part


@_where("runs")
def test_runs_as_in_salt(block: Block, salt: Salt, tmp_path: Path) -> None:
    told = []
    for who in ("salt", "ours"):
        root = tmp_path / who
        for path, text in {"etc/": "", **block.said.get("host", {})}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            if text:
                (root / path).write_text(text)
        tree = block.on(root)
        ran = (salt.ask(tree, ("ran",))() if who == "salt" else ours(tree, tmp_path / "t", ("ran",)))["ran"]
        assert isinstance(ran, dict), ran
        plain = yaml.safe_load(yaml.safe_dump(ran).replace(str(root), ""))
        came = shown({"pillar": {}, "high": {}, "low": [], "ran": plain})["ran"]
        files = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}
        told.append((came, files, {str(path.relative_to(root)) for path in root.rglob("*")}))
    salts, own = told
    assert own == salts
    if "tags" in block.said:
        assert [tag for tag, *_ in own[0]] == block.said["tags"]


@_where("high")
def test_high_data_is_the_seeds(block: Block, tmp_path: Path) -> None:
    assert ours(block.tree, tmp_path, ("high",))["high"] == block.said["high"]


@_where("low")
def test_low_data_is_the_seeds(block: Block, tmp_path: Path) -> None:
    assert ours(block.tree, tmp_path, ("low",))["low"] == block.said["low"]


@_where("order")
def test_order_is_the_seeds(block: Block, tmp_path: Path) -> None:
    assert [low["__id__"] for low in ours(block.tree, tmp_path, ("low",))["low"]] == block.said["order"]


@_where("top")
def test_matches_are_the_seeds(block: Block, tmp_path: Path) -> None:
    opts = {**block.tree.write(tmp_path), "id": "web1", "cachedir": str(tmp_path / "cache"), "grains": dict(GRAINS)}
    assert local_runtime(opts).call("state.show_top").value == block.said["top"]


@_where("refused")
def test_refused_with_the_words_of_the_seeds(block: Block, tmp_path: Path) -> None:
    low = ours(block.tree, tmp_path, ("low",))["low"]
    said = "\n".join(low).replace(f"{tmp_path}/base/", "")
    for words in block.said["refused"]:
        assert re.search(re.escape(words).replace("FILE", r"\S+:\d+"), said), said
