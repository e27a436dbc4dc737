"""Files that are whole: one that is there stays or is replaced, and nothing is left beside it."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from saltern.kit.trees.whole_files import create, put


def test_one_that_is_there_is_replaced_or_stays(tmp_path: Path) -> None:
    file = tmp_path / "key"
    assert create(file, b"first", 0o400)
    assert not create(file, b"second", 0o400)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"first", 0o400)
    put(file, b"third", 0o600)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"third", 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    for write in (create, put):
        with pytest.raises(FileNotFoundError):
            write(tmp_path / "none" / "key", b"", 0o600)
    (tmp_path / "directory").mkdir()
    with pytest.raises(IsADirectoryError):
        put(tmp_path / "directory", b"", 0o600)
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
