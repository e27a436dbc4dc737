"""Every runner and wheel function of Salt is here, or is named as one that is not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from saltern.cli.run import HERE
from saltern.mworker.commands import keys, wheel
from saltern.mworker.runners.table import RUNNERS
from tests.conftest import Oracle

pytestmark = pytest.mark.oracle

#: Runners that are not here, as docs/differences.md says under "Not here yet"; of some modules all.
MISSING = frozenset(
    {
        *("auth", "batch", "cluster", "net", "pki", "queue", "resource", "ssh", "winrepo"),
        *("cache.cloud", "cache.migrate", "manage.bootstrap_psexec"),
    }
)

#: Wheel functions that are not here: they write key files on the machine of a master.
MISSING_WHEELS = frozenset({"key.gen_keys", "key.gen_signature"})


def names(directory: Path) -> set[str]:
    """Public functions of the modules in a directory of Salt, as they are called."""
    found = set()
    for path in directory.glob("[a-z]*.py"):
        body = ast.parse(path.read_text("utf-8")).body
        aliases: dict[str, str] = {}
        for node in body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__func_alias__":
                aliases = ast.literal_eval(node.value)
        found |= {
            f"{path.stem}.{aliases.get(node.name, node.name)}"
            for node in body
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        }
    return found


def test_runners(oracle: Oracle) -> None:
    (salt,) = oracle.venv.glob("lib/python3*/site-packages/salt")
    ours = {*RUNNERS, *HERE}
    lacking = {name for name in names(salt / "runners") - ours if not {name, name.partition(".")[0]} & MISSING}
    assert lacking == set()
    assert not {name for name in ours if {name, name.partition(".")[0]} & MISSING}, "is here by now: take its name away"


def test_wheel_functions(oracle: Oracle) -> None:
    (salt,) = oracle.venv.glob("lib/python3*/site-packages/salt")
    assert names(salt / "wheel") - {*wheel.FUNCTIONS, *keys.WHEELS} == MISSING_WHEELS
