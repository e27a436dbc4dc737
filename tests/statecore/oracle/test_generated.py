"""Trees that nobody thought of: real Salt and ours must make the same of them.

``SALTERN_GENERATED_TREES=5000`` tries that many new ones; without it the same few are tried every time.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, note, settings

from . import broken, generated
from .comparison import agreed, generously, refused
from .conftest import Salt, Tree, ours

_ASKED = int(os.environ.get("SALTERN_GENERATED_TREES", "0"))

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(_ASKED * 2 or 240)]

_HYPOTHESIS = settings(
    max_examples=_ASKED or 50,
    derandomize=not _ASKED,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    # What is found is worth minutes of shrinking only when somebody looks for it.
    phases=[Phase.generate, Phase.shrink] if _ASKED else [Phase.generate],
    print_blob=False,
)


@_HYPOTHESIS
@given(tree=generated.trees())
def test_as_salt(salt: Salt, tree: Tree) -> None:
    note(shown_as_case(tree))
    answer = salt.ask(tree)
    with tempfile.TemporaryDirectory() as directory:
        told = ours(tree, Path(directory) / "t")
    theirs = answer()
    salts, own = generously(theirs, theirs, tree.opts), generously(told, theirs, tree.opts)
    for part in salts:
        assert agreed(own[part], salts[part]) == salts[part], part


@_HYPOTHESIS
@given(tree=broken.trees())
def test_what_is_not_well_formed(salt: Salt, tree: Tree) -> None:
    """No exception, no end of patience: located errors, and at least those that Salt has."""
    note(shown_as_case(tree))
    answer = salt.ask(tree, ("high", "low"))
    with tempfile.TemporaryDirectory() as directory:
        told = ours(tree, Path(directory) / "t")
    assert isinstance(told["ran"], dict | list)
    assert refused(told, answer()) == ""


def shown_as_case(tree: Tree) -> str:
    """The tree as one of ``trees/*.yaml`` would have it."""
    return "\n" + yaml.safe_dump({"found": {"files": dict(tree.files), "opts": dict(tree.opts)}}, default_style="|")
