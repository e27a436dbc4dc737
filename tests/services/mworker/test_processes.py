"""Runners' processes: started, counted, ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.mworker import processes as processes_module
from services.mworker.processes import Processes, TooManyRunners


@pytest.fixture
def processes() -> Iterator[Processes]:
    made = Processes()
    yield made
    made.drain(0)
    for pid in made.pids:
        os.waitpid(pid, 0)


def wait_for_signal() -> None:
    signal.pause()


def test_work_is_done_in_a_process_of_its_own(
    processes: Processes, tmp_path: Path, eventually: Callable[[Callable[[], Any]], Any]
) -> None:
    place = tmp_path / "pid"

    def work() -> None:
        place.with_suffix(".new").write_text(str(os.getpid()))
        place.with_suffix(".new").rename(place)

    processes.start(work)
    eventually(place.exists)
    assert int(place.read_text()) in processes.pids
    eventually(lambda: processes.reap() or not processes.pids)


def test_what_goes_wrong_there_stays_there(
    processes: Processes, eventually: Callable[[Callable[[], Any]], Any]
) -> None:
    def work() -> None:
        raise RuntimeError("broken")

    processes.start(work)
    eventually(lambda: processes.reap() or not processes.pids)


def test_there_is_an_end_to_runners(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes_module, "MAX_RUNNERS", 2)
    for _ in range(2):
        processes.start(wait_for_signal)
    with pytest.raises(TooManyRunners, match="2 runners run on this worker already"):
        processes.start(wait_for_signal)


def test_what_has_not_ended_is_ended(processes: Processes) -> None:
    processes.start(wait_for_signal)
    (pid,) = processes.pids
    processes.drain(0.05)
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGTERM
    processes.pids.clear()


def test_drain_waits_for_what_ends_by_itself(processes: Processes) -> None:
    processes.start(lambda: None)
    processes.drain(10)
    assert not processes.pids
