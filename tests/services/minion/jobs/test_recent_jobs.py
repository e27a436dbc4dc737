"""JIDs that were handed out before, over restarts."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from saltern.minion.jobs.journal import SeenJobs


def test_what_was_seen_is_seen_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "new" / "jids"
    seen = SeenJobs(path, 10)
    assert "1" not in seen
    seen.add("1")
    assert "1" in seen
    assert "1" in SeenJobs(path, 10)
    assert "2" not in SeenJobs(path, 10)


def test_only_the_last_ones_are_kept_and_the_file_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "jids"
    seen = SeenJobs(path, 3)
    for number in range(1000):
        seen.add(str(number))
        assert len(path.read_text().split()) <= 30
    for again in (seen, SeenJobs(path, 3)):
        assert [str(number) in again for number in (996, 997, 998, 999)] == [False, True, True, True]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("broken", ["missing directory", "directory in its place"])
def test_a_file_that_cannot_be_written_stops_no_job(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    path = tmp_path / "place" / "jids"
    if broken == "directory in its place":
        path.mkdir(parents=True)
    seen = SeenJobs(path, 3)
    if broken == "missing directory":
        path.parent.rmdir()
    with caplog.at_level(logging.WARNING):
        seen.add("1")
    assert "1" in seen
    assert str(path) in caplog.text
