"""The kept inputs of every fuzz target, each played once: what a fuzzer found stays closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).with_name("corpus")
INPUTS = [path for name in TARGETS for path in sorted((CORPUS / name).iterdir())]


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_input_raises_no_undocumented_error(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


def test_every_target_has_a_corpus() -> None:
    assert sorted(path.name for path in CORPUS.iterdir()) == sorted(TARGETS)
