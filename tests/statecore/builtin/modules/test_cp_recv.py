"""``cp.recv`` and ``cp.recv_chunked``: what salt-cp brings."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import pytest


def packed(data: bytes, *, compressed: bool = True) -> bytes:
    return base64.b64encode(gzip.compress(data, mtime=0) if compressed else data)


@pytest.mark.parametrize("compressed", [True, False])
def test_pieces_are_put_together(plain: Any, compressed: bool) -> None:
    for number, piece in enumerate((b"one ", b"two")):
        took = plain.call(
            "cp.recv_chunked", "/a/b/file", packed(piece, compressed=compressed), number > 0, compressed, 0o640
        )
        assert took is True
    place = plain.root / "a/b/file"
    assert place.read_bytes() == b"one two"
    assert place.stat().st_mode & 0o777 == 0o640


def test_an_empty_directory(plain: Any) -> None:
    assert plain.call("cp.recv_chunked", "/a/b", None) is True
    assert plain.call("cp.recv_chunked", "/a/b", None) is True
    assert (plain.root / "a/b").is_dir()


@pytest.mark.parametrize(
    ("dest", "chunk", "compressed", "said"),
    [
        ("/file", None, True, "Path exists and is a file"),
        ("/file/below", packed(b"x"), True, "file cannot be made: File exists"),
        ("/x", b"no base64!", True, "base64"),
        ("/x", packed(b"x", compressed=False), True, "Not a gzipped file"),
        ("/directory", packed(b"x"), True, "Is a directory"),
        ("relative", packed(b"x"), True, "absolute"),
    ],
)
def test_what_cannot_be_taken(plain: Any, dest: str, chunk: bytes | None, compressed: bool, said: str) -> None:
    (plain.root / "file").write_text("")
    (plain.root / "directory").mkdir()
    answer = plain.call("cp.recv_chunked", dest, chunk, False, compressed)
    assert isinstance(answer, str)
    assert said in answer


@pytest.mark.parametrize(
    ("dest", "taken"),
    [
        ("/there", {"/there/f": True}),
        ("/there/other", {"/there/other": True}),
        ("/nowhere/at/all", "Destination unavailable"),
    ],
)
def test_small_files_at_once(plain: Any, dest: str, taken: Any) -> None:
    (plain.root / "there").mkdir()
    assert plain.call("cp.recv", {"/from/f": "text"}, dest) == taken
    for path in taken if isinstance(taken, dict) else ():
        assert (plain.root / path.lstrip("/")).read_text() == "text"
