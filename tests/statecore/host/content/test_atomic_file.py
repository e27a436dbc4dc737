"""Atomic replacement: the target has the old content or the new one, and no temporary file is left."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from statecore.host.content.atomic_file import create, replacement, write, writer


def test_one_that_is_there_is_replaced_or_stays(tmp_path: Path) -> None:
    file = tmp_path / "key"
    assert create(file, b"first", 0o400)
    assert not create(file, b"second", 0o400)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"first", 0o400)
    write(file, b"third", 0o600)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"third", 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    for each in (create, write):
        with pytest.raises(FileNotFoundError):
            each(tmp_path / "none" / "key", b"", 0o600)
    (tmp_path / "directory").mkdir()
    with pytest.raises(IsADirectoryError):
        write(tmp_path / "directory", b"", 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["directory"]


@pytest.mark.parametrize(("number", "works"), [(errno.EPERM, True), (errno.EIO, False)])
def test_a_file_system_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, works: bool
) -> None:
    def refuse(*args: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    if works:
        assert create(tmp_path / "key", b"content", 0o600)
    else:
        with pytest.raises(OSError, match=os.strerror(number)):
            create(tmp_path / "key", b"content", 0o600)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == ({"key": b"content"} if works else {})


def test_a_block_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"old")
    with pytest.raises(TypeError), writer(file) as new:
        new.write("no bytes")  # type: ignore[arg-type]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"key": b"old"}


@pytest.mark.parametrize(("exact", "mode"), [(False, 0o640), (True, 0o664)])
def test_the_umask_applies_unless_the_mode_is_exact(tmp_path: Path, exact: bool, mode: int) -> None:
    old = os.umask(0o027)
    try:
        write(tmp_path / "key", "text", 0o664, exact=exact, sync=True)
    finally:
        os.umask(old)
    assert (tmp_path / "key").stat().st_mode & 0o777 == mode


def test_a_second_name_of_the_same_file_leaves_one_file(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"content")
    for _ in range(2):
        with replacement(tmp_path / "other") as new:
            new.hardlink_to(tmp_path / "one")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "other"]
    assert (tmp_path / "one").samefile(tmp_path / "other")


def test_a_name_of_full_length_leaves_room_for_the_temporary_name(tmp_path: Path) -> None:
    write(tmp_path / ("n" * 255), b"content")
    assert [len(path.name) for path in tmp_path.iterdir()] == [255]
