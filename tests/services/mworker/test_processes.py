"""Runners' processes: started, counted, ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from saltern.mworker import processes as processes_module
from saltern.mworker.processes import Processes, TooManyRunners

Eventually: TypeAlias = Callable[[Callable[[], Any]], Any]


def nobody(how: str) -> None:
    raise AssertionError(f"the child {how}")


@pytest.fixture
def processes() -> Iterator[Processes]:
    made = Processes()
    yield made
    made.drain(0)
    assert not made.pids


def wait_for_signal() -> None:
    signal.pause()


def test_work_is_done_in_a_process_of_its_own(processes: Processes, tmp_path: Path, eventually: Eventually) -> None:
    place = tmp_path / "pid"

    def work() -> None:
        place.with_suffix(".new").write_text(str(os.getpid()))
        place.with_suffix(".new").rename(place)

    processes.start(work, nobody)
    eventually(place.exists)
    assert int(place.read_text()) in processes.pids
    eventually(lambda: processes.reap() or not processes.pids)


def test_what_goes_wrong_there_stays_there_and_is_told(processes: Processes, eventually: Eventually) -> None:
    told: list[str] = []

    def work() -> None:
        raise RuntimeError("broken")

    processes.start(work, told.append)
    eventually(lambda: processes.reap() or not processes.pids)
    assert told == ["ended with exit code 1, see the worker's log"]


def test_who_is_killed_is_told_of(processes: Processes, eventually: Eventually) -> None:
    told: list[str] = []
    processes.start(wait_for_signal, told.append)
    (pid,) = processes.pids
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: processes.reap() or not processes.pids)
    assert told == ["was killed by signal 9 (Killed)"]


def test_there_is_an_end_to_runners(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes_module, "MAX_RUNNERS", 2)
    for _ in range(2):
        processes.start(wait_for_signal, lambda how: None)
    with pytest.raises(TooManyRunners, match="2 runners run on this worker already"):
        processes.start(wait_for_signal, nobody)


def test_one_minion_leaves_room_for_others(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes_module, "MAX_PER_MINION", 2)
    for _ in range(2):
        processes.start(wait_for_signal, lambda how: None, "web1")
    with pytest.raises(TooManyRunners, match="2 requests of web1 are worked on here already"):
        processes.start(wait_for_signal, nobody, "web1")
    processes.start(wait_for_signal, lambda how: None, "db1")
    for _ in range(3):
        processes.start(wait_for_signal, lambda how: None)
    os.kill(min(processes.pids), signal.SIGKILL)


def wait_for_kill() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        signal.pause()


@pytest.mark.parametrize(
    ("work", "how"),
    [
        (wait_for_signal, "was killed by signal 15 (Terminated)"),
        (wait_for_kill, "was killed by signal 9 (Killed)"),
    ],
)
def test_what_has_not_ended_is_ended(
    processes: Processes, work: Callable[[], None], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes_module, "_GRACE", 0.3)
    told: list[str] = []
    processes.start(work, told.append)
    processes.drain(0.2)
    assert told == [how]


def test_drain_waits_for_what_ends_by_itself(processes: Processes) -> None:
    processes.start(lambda: None, nobody)
    processes.drain(10)
    assert not processes.pids
