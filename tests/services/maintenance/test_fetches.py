"""Fetches beside the loop: when they are due, one round at a time, and what is told of them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from saltern.kit.config.master import MasterOptions
from saltern.kit.trees.updates import Update, mirrors, roots_changes, tidy
from saltern.maintenance import main as maintenance
from saltern.maintenance.fetches import Fetches
from statecore.sources.gitrepos.mirror import Mirror
from tests.services.maintenance.test_maintenance import Round, round_of

WAIT = 10.0


def options_of(tmp_path: Path, *remotes: Any, **more: Any) -> MasterOptions:
    return MasterOptions(
        cachedir=str(tmp_path / "cache"), fileserver_backend=["roots", "gitfs"], gitfs_remotes=list(remotes), **more
    )


def turned(fetches: Fetches, now: float, eventually: Callable[..., Any]) -> list[Update]:
    found: list[Update] = []
    eventually(lambda: found.extend(fetches.poll(now)) or found)
    return found


def test_each_remote_has_its_time(tmp_path: Path, eventually: Callable[..., Any]) -> None:
    often = {"https://x/often": [{"update_interval": 10}]}
    rounds: list[list[str]] = []

    def fetch(due: Sequence[Mirror]) -> list[Update]:
        rounds.append([each.remote.url for each in due])
        return [Update(each, True, "") for each in due]

    fetches = Fetches(mirrors(options_of(tmp_path, often, "https://x/seldom")), fetch)
    for now in (0.0, 11.0, 61.0):
        assert fetches.poll(now) == []
        turned(fetches, now, eventually)
        assert fetches.poll(now + 5) == []
    assert rounds == [
        ["https://x/often", "https://x/seldom"],
        ["https://x/often"],
        ["https://x/often", "https://x/seldom"],
    ]


def test_a_slow_server_holds_up_nobody(tmp_path: Path, eventually: Callable[..., Any]) -> None:
    go = threading.Event()

    def fetch(due: Sequence[Mirror]) -> list[Update]:
        assert go.wait(WAIT)
        return [Update(each, False, "slow") for each in due]

    fetches = Fetches(mirrors(options_of(tmp_path, {"https://x/y": [{"update_interval": 1}]})), fetch)
    assert [fetches.poll(float(now)) for now in range(50)] == [[]] * 50
    go.set()
    (update,) = turned(fetches, 50.0, eventually)
    assert update.error == "slow"


@pytest.mark.redis
def test_what_fails_is_said_once_and_that_it_works_again(
    tmp_path: Path, redis_url: str, caplog: pytest.LogCaptureFixture, eventually: Callable[..., Any]
) -> None:
    answers = iter(("away", "away", "", ""))
    made: Round = round_of(redis_url, tmp_path, fileserver_events=True)
    remotes = mirrors(options_of(tmp_path, {"https://x/y": [{"update_interval": 1}]}))
    made.context.fetches = Fetches(remotes, lambda due: [Update(each, False, next(answers)) for each in due])
    with caplog.at_level(logging.WARNING):
        eventually(lambda: maintenance.fetch_remotes(made.context) or len(made.fired) == 4)
    assert [record.message for record in caplog.records] == [
        "away; what was fetched before stays",
        "https://x/y can be fetched again",
    ]
    assert made.fired[0] == ("salt/fileserver/gitfs/update", {"changed": False, "backend": "gitfs"})


def test_changes_of_directories_are_told(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("same", "changed", "gone"):
        (tree / name).write_text(name)
    options = MasterOptions(cachedir=str(tmp_path / "cache"), file_roots={"base": [str(tree)]})
    first = roots_changes(options)
    assert (first["changed"], len(first["files"]["added"])) == (True, 3)
    assert roots_changes(options)["changed"] is False
    (tree / "changed").write_text("other")
    (tree / "gone").unlink()
    (tree / "new").write_text("")
    assert roots_changes(options) == {
        "changed": True,
        "backend": "roots",
        "files": {"changed": [f"{tree}/changed"], "added": [f"{tree}/new"], "removed": [f"{tree}/gone"]},
    }


def test_what_is_no_longer_wanted_is_removed(tmp_path: Path) -> None:
    options = options_of(tmp_path, "https://x/y")
    home = tmp_path / "cache" / "gitfs"
    (kept,) = mirrors(options)
    kept.place.mkdir(parents=True)
    (home / "mirrors" / "other").mkdir()
    old, new = home / "blobs" / "aa" / "old", home / "blobs" / "aa" / "new"
    for blob, when in ((old, 1_000_000), (new, None)):
        blob.mkdir(parents=True)
        (blob / "name").write_text("")
        if when:
            os.utime(blob / "name", (when, when))
            os.utime(blob, (when, when))
    tidy(options)
    assert kept.place.is_dir()
    assert sorted(path.name for path in (home / "mirrors").iterdir()) == [kept.place.name]
    assert [path.name for path in (home / "blobs" / "aa").iterdir()] == ["new"]
