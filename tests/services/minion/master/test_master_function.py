"""``master_type: func``: a function of a module says where the master is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saltern.kit.config.master import ConfigError
from saltern.kit.config.minion_options import MinionOptions
from saltern.kit.process.health import Health
from saltern.kit.process.metrics import new_metrics
from saltern.kit.process.process import Stop
from saltern.minion.master.master_function import evaluated
from saltern.minion.master.sign_in import Ended, Shutdown

MODULE = """
import time

def one():
    return __opts__["id"] + ".example.com"

def two():
    return ["a", "b:4600"]

def number():
    return 5

def nothing():
    return []

def broken():
    raise RuntimeError("no network")

def dead():
    import os
    os._exit(3)

def slow():
    time.sleep(600)
"""

Make = Callable[[Any], MinionOptions]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "near.py").write_text(MODULE)
    cachedir = str(tmp_path / "cache")
    return lambda master: MinionOptions(
        id="web1", master=master, master_type="func", module_dirs=[str(modules)], cachedir=cachedir
    )


@pytest.mark.parametrize(("function", "master"), [("near.one", "web1.example.com"), ("near.two", ["a", "b:4600"])])
def test_what_the_function_returns_is_the_master(make: Make, function: str, master: Any) -> None:
    found = evaluated(make(function))
    assert (found.master, found.master_type) == (master, "str")
    # What is known is not asked again.
    assert evaluated(found) is found


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("near.number", "near.number returned 5, which is no address and no list"),
        ("near.nothing", r"near.nothing returned \[\], which is no address"),
        ("near.broken", "near.broken .master_type: func. failed: .* RuntimeError: no network"),
        ("near.dead", "the process of the function near.dead died"),
        ("no.such", "'no.such' is not available"),
        ("salt", "'salt': with master_type func it must name a function"),
        ("10.0.0.1", "it must name a function"),
        (["near.one"], "it must name a function"),
    ],
)
def test_what_is_no_answer(make: Make, function: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        evaluated(make(function))


def test_a_minion_that_is_to_end_does_not_wait_for_it(make: Make) -> None:
    turn = Shutdown(Stop(requested=True), Health("minion", new_metrics("minion").registry))
    with pytest.raises(Ended):
        evaluated(make("near.slow"), turn)
