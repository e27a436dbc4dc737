"""Processes without their supervisor are found by their mark, and no others."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from saltern.lab.plan import Paths
from saltern.lab.readiness import last_lines
from saltern.lab.supervisor import MARK, end_all, marked, wait_until


@contextmanager
def process(**env: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"], env={"PATH": os.environ["PATH"], **env}) as one:
        try:
            yield one
        finally:
            one.kill()


def test_the_labs_own_are_ended_and_others_left(tmp_path: Path) -> None:
    paths = Paths(tmp_path / "lab")
    with process(**{MARK: str(paths.root)}) as own, process(**{MARK: str(tmp_path / "lab2")}) as other:
        assert wait_until(lambda: marked(paths) == [own.pid], 10)
        assert end_all(paths) == []
        assert own.wait(10) != 0
        assert other.poll() is None


def test_a_log_is_shown_from_where_it_ended_before(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert last_lines(log, 0) == []
    log.write_text("before\n")
    start = log.stat().st_size
    with log.open("a") as file:
        file.writelines(f"line {number}\n" for number in range(20))
    assert last_lines(log, start) == [f"line {number}" for number in range(12, 20)]
    log.write_text("cut\n")
    assert last_lines(log, start) == ["cut"]
