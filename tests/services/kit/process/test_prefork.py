"""A parent with real children, in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

#: Children write a line for each life into a file of their own; words after the directory say what the first one does.
PROGRAM = """\
import logging, os, signal, sys, time
from pathlib import Path
from saltern.kit.process.prefork import Child, Parent

directory, how = Path(sys.argv[1]), sys.argv[2]
logging.basicConfig(level=logging.INFO, format="%(message)s")

def lives(name):
    with (directory / name).open("a") as file:
        file.write(f"{os.getpid()}\\n")

def run(name):
    if how == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif how == "drain":
        signal.signal(signal.SIGTERM, lambda number, frame: (time.sleep(0.5), (directory / "drained").touch(), os._exit(0)))
    lives(name)
    if how.isdigit():
        return int(how)
    if how == "raise":
        raise RuntimeError("a fault of the child")
    while True:
        time.sleep(0.05)

names = ["one", "two"]
children = [Child(name, lambda name=name: run(name), stage, 1.0) for stage, name in enumerate(names)]
sys.exit(Parent(children, logging.getLogger("parent")).run())
"""


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


class Running:
    """A parent that runs, its output and its children's process ids."""

    def __init__(self, directory: Path, how: str) -> None:
        self.directory = directory
        self.out = directory / "out"
        with self.out.open("wb") as out:
            words = [sys.executable, "-c", PROGRAM, str(directory), how]
            self.process = subprocess.Popen(words, stdout=out, stderr=out)

    def lives(self, name: str) -> list[int]:
        path = self.directory / name
        return [int(line) for line in path.read_text().splitlines()] if path.exists() else []

    def said(self) -> str:
        return self.out.read_text()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Running]]:
    made: list[Running] = []

    def run(how: str = "stay") -> Running:
        made.append(Running(tmp_path, how))
        until(lambda: made[0].lives("one") and made[0].lives("two"), "both children run")
        return made[0]

    yield run
    for one in made:
        one.process.kill()
        one.process.wait()
        for pid in one.lives("one") + one.lives("two"):
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_killed_child_is_replaced_and_the_other_left_alone(start: Callable[[str], Running]) -> None:
    parent = start("stay")
    os.kill(parent.lives("one")[0], signal.SIGKILL)
    until(lambda: len(parent.lives("one")) == 2, "it is started again")
    assert "ended: signal 9 (Killed); it starts again in 0.5 s" in parent.said()
    assert len(parent.lives("two")) == 1
    assert alive(parent.lives("two")[0])


def test_a_child_has_its_own_name(start: Callable[[str], Running]) -> None:
    parent = start("stay")
    assert Path(f"/proc/{parent.lives('one')[0]}/comm").read_text() == "one\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_parent_ends_its_children_and_waits_for_them(
    number: signal.Signals, start: Callable[[str], Running], tmp_path: Path
) -> None:
    parent = start("drain")
    parent.process.send_signal(number)
    assert parent.process.wait(20) == 0
    assert (tmp_path / "drained").exists()
    assert not any(alive(pid) for pid in parent.lives("one") + parent.lives("two"))
    # The higher stage ends first.
    said = parent.said()
    assert said.index("two (") < said.index("one (")


def test_a_child_that_does_not_end_is_killed(start: Callable[[str], Running]) -> None:
    parent = start("deaf")
    parent.process.terminate()
    assert parent.process.wait(20) == 0
    assert "is killed: it did not end within 1 s" in parent.said()
    assert not any(alive(pid) for pid in parent.lives("one") + parent.lives("two"))


def test_children_end_with_a_parent_that_is_killed(start: Callable[[str], Running]) -> None:
    parent = start("stay")
    parent.process.kill()
    until(lambda: not any(alive(pid) for pid in parent.lives("one") + parent.lives("two")), "the children end")


def test_a_child_whose_configuration_is_unusable_is_not_started_again(start: Callable[[str], Running]) -> None:
    parent = start("78")
    until(lambda: parent.said().count("exit code 78; it is not started again") == 2, "both are given up")
    assert (len(parent.lives("one")), len(parent.lives("two"))) == (1, 1)


def test_a_child_that_fails_again_and_again_is_started_more_and_more_slowly(start: Callable[[str], Running]) -> None:
    parent = start("raise")
    until(lambda: len(parent.lives("one")) >= 3, "three lives")
    said = parent.said()
    assert "a fault of the child" in said
    assert "starts again in 0.5 s" in said
    assert "starts again in 1 s" in said


def test_sighup_replaces_the_children_one_after_the_other(start: Callable[[str], Running]) -> None:
    parent = start("stay")
    parent.process.send_signal(signal.SIGHUP)
    until(lambda: "all processes are replaced" in parent.said(), "the rollout is done")
    assert (len(parent.lives("one")), len(parent.lives("two"))) == (2, 2)
    assert parent.process.poll() is None


def test_an_idle_parent_does_not_wake(start: Callable[[str], Running]) -> None:
    parent = start("stay")

    def switches() -> int:
        text = Path(f"/proc/{parent.process.pid}/status").read_text()
        return int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0])

    until(lambda: Path(f"/proc/{parent.process.pid}/wchan").exists(), "it runs")

    def waits() -> bool:
        seen = switches()
        time.sleep(0.2)
        return switches() == seen

    until(waits, "its start is over")
    before = switches()
    time.sleep(1.5)  # a parent that looks at its children from time to time would wake meanwhile
    assert switches() == before
