"""Files in chunks: both ends against each other, and answers of a master that lies."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltwire import file_transfer
from saltwire.errors import PeerFault
from saltwire.file_transfer import Download, MissingFile, chunk, is_inside, missing
from saltwire.pack import packb, unpackb


@pytest.mark.parametrize("path", ["a", "a/b", "a/..b", "...", "a/b..", ".hidden", "a b", "ä", "a\\b", "a//b", "./a"])
def test_paths_inside(path: str) -> None:
    assert is_inside(path)


@pytest.mark.parametrize("path", ["", "/", "/etc/passwd", "..", "../a", "a/..", "a/../b", "a/../../b", "a\0b", "//a"])
def test_paths_outside(path: str) -> None:
    assert not is_inside(path)


def test_chunks_in_the_form_of_the_protocol() -> None:
    assert chunk(b"data", "a/b") == {"data": b"data", "dest": "a/b"}
    assert chunk(b"", "a/b") == {"data": b"", "dest": "a/b"}
    assert missing() == {"data": b"", "dest": ""}
    packed = chunk(b"data" * 100, "a", gzip_level=6)
    assert (packed["gzip"], packed["dest"]) == (6, "a")
    assert gzip.decompress(packed["data"]) == b"data" * 100
    # The end of a file is never compressed.
    assert chunk(b"", "a", gzip_level=6) == {"data": b"", "dest": "a"}


@pytest.mark.parametrize(("asked", "used"), [(None, None), (0, None), (1, 1), (9, 9), (50, 9), (-3, 1)])
def test_levels_of_compression(asked: int | None, used: int | None) -> None:
    assert chunk(b"data", "a", gzip_level=asked).get("gzip") == used


def fetched(content: bytes, size: int, *, level: int | None = None) -> bytes:
    """The file as a minion gets it from a master that sends ``size`` bytes at a time."""
    download, got = Download("a/b", "base"), b""
    for _ in range(len(content) // size + 2):
        request = download.request()
        assert {**request, "loc": 0} == {"cmd": "_serve_file", "path": "a/b", "saltenv": "base", "loc": 0}
        part = content[request["loc"] : request["loc"] + size]
        # Over the wire, as raw values (docs/protocol.md#file-transfer).
        got += download.feed(unpackb(packb(chunk(part, "a/b", gzip_level=level)), raw=True))
        if download.done:
            return got
    raise AssertionError("the download does not end")


@given(st.binary(max_size=300), st.integers(1, 100), st.sampled_from([None, 1, 9]))
def test_a_file_arrives(content: bytes, size: int, level: int | None) -> None:
    assert fetched(content, size, level=level) == content


@pytest.mark.parametrize("reply", [missing(), {"data": "", "dest": ""}, {"data": b"", "dest": b""}, {"data": ""}])
def test_a_file_that_is_not_there(reply: dict[str, Any]) -> None:
    with pytest.raises(MissingFile, match="a/b"):
        Download("a/b", "base").feed(reply)


def test_a_file_that_goes_away_in_the_middle_is_not_whole() -> None:
    download = Download("a/b", "base")
    assert download.feed(chunk(b"first", "a/b")) == b"first"
    with pytest.raises(MissingFile, match="a/b"):
        download.feed(missing())
    assert not download.done


def test_an_empty_file() -> None:
    download = Download("a", "base")
    assert download.feed({"data": "", "dest": "a"}) == b""
    assert (download.done, download.received) == (True, 0)


BAD: dict[str, Any] = {
    "none": None,
    "text": "bad load",
    "list": [],
    "number": 5,
    "no data": {"dest": "a"},
    "data is none": {"data": None, "dest": "a"},
    "data is a list": {"data": [1], "dest": "a"},
    "no gzip stream": {"data": b"plain", "dest": "a", "gzip": 1},
    "zlib, not gzip": {"data": zlib.compress(b"x"), "dest": "a", "gzip": 1},
    "cut gzip": {"data": gzip.compress(b"x" * 1000)[:-9], "dest": "a", "gzip": 1},
    "cut gzip, in its sum": {"data": gzip.compress(b"x" * 1000)[:-1], "dest": "a", "gzip": 1},
    "gzip of another sum": {"data": gzip.compress(b"x")[:-8] + b"\0" * 8, "dest": "a", "gzip": 1},
    # It would be asked for again at the same place, for ever.
    "gzip of nothing": {"data": gzip.compress(b""), "dest": "a", "gzip": 1},
}


@pytest.mark.parametrize("reply", BAD.values(), ids=BAD.keys())
def test_answers_that_are_no_chunks(reply: Any) -> None:
    download = Download("a", "base")
    with pytest.raises(PeerFault):
        download.feed(reply)
    assert (download.received, download.done) == (0, False)


@pytest.mark.parametrize(
    "compress", [gzip.compress, lambda data: gzip.compress(data, 1), lambda data: gzip.compress(data, 0)]
)
def test_a_small_stream_of_a_large_file_is_refused(
    monkeypatch: pytest.MonkeyPatch, compress: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(file_transfer, "MAX_CHUNK", 10_000)
    for length in (9_999, 10_000):
        assert Download("a", "base").feed({"data": compress(b"x" * length), "dest": "a", "gzip": 9}) == b"x" * length
    for length in (10_001, 1_000_000):
        with pytest.raises(PeerFault, match="more than 10000 bytes"):
            Download("a", "base").feed({"data": compress(b"x" * length), "dest": "a", "gzip": 9})


VALUES = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.binary(max_size=20) | st.lists(st.integers())
)


@given(st.dictionaries(st.sampled_from(["data", "dest", "gzip"]), VALUES) | VALUES)
def test_any_answer_is_a_chunk_or_refused(reply: Any) -> None:
    download = Download("a", "base")
    try:
        data = download.feed(reply)
    except (PeerFault, MissingFile):
        return
    assert download.done or data
