"""The count of attacks: what is refused, what is not, and what is no attack."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.security.mutations import MUTATIONS, Mutation

pytestmark = pytest.mark.ordinary

ROOT = Path(__file__).resolve().parents[2]

TESTS = """
import pytest

@pytest.fixture
def broken():
    raise RuntimeError

@pytest.mark.parametrize("attack", range(3))
def test_attack(attack):
    assert attack

def test_prepared_wrongly(broken): pass

def test_skipped():
    pytest.skip("no reason")

@pytest.mark.ordinary
def test_use(): pass
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_attacks_that_succeed_are_named(tmp_path: Path, workers: str) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    run = (
        "import sys, tests.security.run as run; run.__file__ = sys.argv[1];"
        "sys.exit(run.main(['-p', 'no:cacheprovider', '-c', 'pyproject.toml', '-n', sys.argv[2]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", run, str(tmp_path / "run.py"), workers],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    *_, first, second, skipped, last = done.stdout.splitlines()
    assert (first[-14:], second[-21:]) == ("test_attack[0]", "test_prepared_wrongly")
    assert skipped.startswith("1 attacks were skipped")
    assert last == "2 refused of 4 tried"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.defence)
def test_a_mutation_finds_its_defence_and_its_attack(mutation: Mutation) -> None:
    """``make security-mutations`` runs them; a renamed defence is noticed here."""
    assert (ROOT / mutation.file).read_text("utf-8").count(mutation.old) == 1
    file, _, name = mutation.attack.partition("[")[0].partition("::")
    assert f"def {name}(" in (Path(__file__).parent / file).read_text("utf-8")
