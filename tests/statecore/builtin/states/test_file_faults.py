"""What a host may do to a file state: a full disk, a read-only one, a directory that is not its own.

Each state fails, saying what and where, loses nothing, and does its work in the next run, once the host lets it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import open_to_all
from tests.statecore.builtin.states.test_file_swapped import CALLS, World
from tests.statecore.conftest import PlainMinion

#: States that look, or work on what the minion keeps for itself.
_LOOK = frozenset({"exists", "missing", "accumulated", "cached", "not_cached", "shortcut"})

_MOUNT_SIZE = 512 * 1024


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[World]:
    """A world whose /srv/d is a small file system of its own."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root mounts file systems")
    minion = PlainMinion(tmp_path)
    place = minion.root / "srv/d"
    place.mkdir(parents=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_MOUNT_SIZE},mode=755", "small", place], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        yield World(minion)
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def _tree(top: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(top)): path.read_bytes()
        if path.is_file() and not path.is_symlink()
        else path.lstat().st_mode
        for path in sorted(top.rglob("*"))
        if path.name != "filler"
    }


def _fill(place: Path) -> None:
    with (place / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return


def _remount(place: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", place], check=True)


def _heals(world: World, name: str) -> None:
    told = world.state(name, 1)
    assert told["result"] is True, told["comment"]


#: What needs room in any case, so that the test cannot pass by doing nothing.
_NEEDS_ROOM = frozenset(
    {"managed", "append", "prepend", "replace", "copy_", "serialize", "decode", "recurse", "keyvalue"}
)


@pytest.mark.parametrize("name", sorted(set(CALLS) - _LOOK))
def test_a_full_disk(disk: World, name: str) -> None:
    _fill(disk.place)
    before = _tree(disk.place)
    told = disk.state(name, 1)
    if told["result"] is not True:
        assert "No space left on device" in told["comment"]
        assert "/srv/d" in told["comment"]
        assert "Traceback" not in told["comment"]
        left = _tree(disk.place)
        # Directories that were made on the way hold nothing yet.
        assert {path: what for path, what in left.items() if path in before} == before
        assert all(isinstance(what, int) for path, what in left.items() if path not in before), left
    else:
        assert name not in _NEEDS_ROOM
    (disk.place / "filler").unlink()
    _heals(disk, name)


@pytest.mark.parametrize("name", sorted(set(CALLS) - _LOOK))
def test_a_read_only_disk(disk: World, name: str) -> None:
    before = _tree(disk.place)
    _remount(disk.place, "ro")
    told = disk.state(name, 1)
    _remount(disk.place, "rw")
    assert told["result"] is False
    assert "Read-only file system" in told["comment"], told["comment"]
    assert "/srv/d" in told["comment"]
    assert _tree(disk.place) == before
    _heals(disk, name)


@pytest.mark.parametrize("name", sorted(set(CALLS) - _LOOK))
def test_a_directory_of_somebody_else(tmp_path: Path, name: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root becomes somebody else")
    world = World(PlainMinion(tmp_path))
    open_to_all(world.place)
    before = _tree(world.place)
    # Python's own files may be for root alone: what retention_schedule needs is loaded before.
    time.strptime("2026", "%Y")
    os.seteuid(65534)
    try:
        told = world.state(name, 1)
    finally:
        os.seteuid(0)
    assert told["result"] is False
    assert "ermission denied" in told["comment"] or "not permitted" in told["comment"], told["comment"]
    assert "/srv/d" in told["comment"]
    assert _tree(world.place) == before
    _heals(world, name)


def test_a_source_that_is_not_there_says_where_it_was_looked_for(plain: PlainMinion) -> None:
    sources: list[str | Mapping[str, str]] = [
        "salt://none",
        "salt://other?saltenv=dev",
        "/no/such",
        {"file:///nor/this": "md5=1"},
    ]
    told = plain.state("file.managed", name="/f", source=sources)
    assert told["result"] is False
    for words in (
        "salt://none not found in saltenv 'base'",
        "salt://other?saltenv=dev not found in saltenv 'dev'",
        "/no/such does not exist",
        "file:///nor/this does not exist",
    ):
        assert words in told["comment"]
    assert not (plain.root / "f").exists()
