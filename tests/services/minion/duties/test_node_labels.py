"""A node's labels as grains."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from saltern.kit.config.minion_options import load_minion
from saltern.minion.duties.node_labels import grains_of, main

NODE = {
    "metadata": {"name": "n1", "labels": {"pool": "edge", "kubernetes.io/arch": "amd64"}},
    "status": {"nodeInfo": {"kubeletVersion": "v1.32.4"}},
}


def test_the_minion_reads_them(tmp_path: Path) -> None:
    (tmp_path / "minion.d").mkdir()
    (tmp_path / "minion.d" / "50-node.conf").write_text(yaml.safe_dump({"grains": grains_of(NODE)}))
    grains = load_minion(str(tmp_path), env={}).grains["kubernetes"]
    assert grains == {"node": "n1", "labels": NODE["metadata"]["labels"], "version": "v1.32.4"}


def test_a_node_without_labels_has_none() -> None:
    assert grains_of({"metadata": {"name": "n1"}})["kubernetes"]["labels"] == {}


@pytest.mark.parametrize(
    ("words", "says"), [(["--node", "n1"], "this is not a pod of a cluster"), (["--node", ""], "no node: give --node")]
)
def test_what_is_missing_is_said(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert main(["--out", str(tmp_path / "x"), *words]) == 1
    assert says in capsys.readouterr().err
