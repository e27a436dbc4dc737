"""What a forked process loads is told and loaded in the process that it was forked from, a part at a time."""

from __future__ import annotations

import importlib
import os
import select
import sys
from collections.abc import Callable

import pytest

from saltern.minion.engine.preload import Preload

PATIENCE = 40.0

#: Of the engine, and small.
PARTS = ("statecore.builtin.modules.environ", "statecore.builtin.modules.timezone")


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> Preload:
    for name in PARTS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    made = Preload()
    made.mark_loaded()
    return made


def _in_a_jobber(learned: Preload, does: Callable[[], object]) -> None:
    pid = os.fork()
    if not pid:
        try:
            does()
            learned.report()
        finally:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def _heard(learned: Preload) -> bool:
    if not select.select([learned], [], [], 0)[0]:
        return False
    learned.receive()
    return learned.waiting


def test_what_a_jobber_loaded_is_loaded_one_part_after_the_other(learned: Preload) -> None:
    _in_a_jobber(learned, lambda: [importlib.import_module(name) for name in PARTS])
    assert _heard(learned)
    learned.load_one()
    assert not all(name in sys.modules for name in PARTS)
    while learned.waiting:
        learned.load_one()
    assert all(name in sys.modules for name in PARTS)


def test_what_was_loaded_before_is_no_news(learned: Preload) -> None:
    importlib.import_module(PARTS[0])
    learned.mark_loaded()
    _in_a_jobber(learned, lambda: importlib.import_module(PARTS[0]))
    assert not _heard(learned)


@pytest.mark.parametrize("name", ["this_is_ours_not", "saltern_loaded.modules.users"])
def test_only_the_engine_is_told(learned: Preload, name: str) -> None:
    _in_a_jobber(learned, lambda: sys.modules.__setitem__(name, sys))
    assert not _heard(learned)


def test_a_part_that_is_gone_is_passed_over(learned: Preload) -> None:
    def pretend() -> None:
        sys.modules["statecore.builtin.modules.taken_away"] = sys

    _in_a_jobber(learned, pretend)
    assert _heard(learned)
    learned.load_one()
    assert not learned.waiting
    assert "statecore.builtin.modules.taken_away" not in sys.modules


def test_more_names_than_one_piece_or_the_pipe_holds_never_block(learned: Preload) -> None:
    names = [f"statecore.builtin.modules.made_up_{number:05}" for number in range(5000)]
    _in_a_jobber(learned, lambda: sys.modules.update(dict.fromkeys(names, sys)))
    assert _heard(learned)
    # As many as the pipe took, each whole.
    while learned.waiting:
        assert learned._waiting[0] in names
        learned.load_one()
