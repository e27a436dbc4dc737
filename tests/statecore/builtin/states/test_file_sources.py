"""Sources of file states behind HTTP: marks, broken servers, lists, the states besides file.managed that take them."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from statecore.model.errors import CommandError
from statecore.sources import downloads
from tests.statecore.conftest import PlainMinion
from tests.statecore.loopback_server import Asked, Web, serve

DATA = b"from afar\n"
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve() as running:
        running.answers["/f"] = (200, {}, DATA)
        running.answers["/more"] = (200, {}, b"more\n")
        running.answers["/SUMS"] = (200, {}, f"{SHA256}  f\n".encode())
        running.answers["/loop"] = (302, {"Location": "/loop"}, b"")
        running.answers["/here"] = (302, {"Location": "/f"}, b"")
        yield running


def test_another_mark_brings_another_file(web: Web, plain: PlainMinion) -> None:
    now = {"tag": '"1"', "data": DATA}

    def marked(asked: Asked) -> tuple[int, dict[str, str], bytes]:
        if asked.headers.get("If-None-Match") == now["tag"]:
            return 304, {"ETag": str(now["tag"])}, b""
        return 200, {"ETag": str(now["tag"])}, bytes(now["data"])  # type: ignore[arg-type]

    web.answers["/marked"] = marked
    args = {"name": "/f", "source": f"{web.url}/marked", "use_etag": True}
    assert plain.state("file.managed", **args)["changes"]["diff"] == "New file"
    now["data"] = b"nobody asks\n"
    assert plain.state("file.managed", **args)["changes"] == {}
    now["tag"] = '"2"'
    assert "+nobody asks" in plain.state("file.managed", **args)["changes"]["diff"]
    told = plain.state("file.managed", **args, source_hash=SHA256)
    assert told["result"] is False
    assert "does not match actual checksum" in told["comment"]
    # What was wrong is not kept, and so is not taken for right because its mark is.
    now["data"] = DATA
    assert plain.state("file.managed", **args, source_hash=SHA256)["result"] is True


#: What a server says at its worst -> what is told.
_BROKEN: dict[str, tuple[bytes, str]] = {
    "closed at once": (b"", "closed connection without response"),
    "closed in the headers": (b"HTTP/1.1 200 OK\r\nContent-Le", "in its headers"),
    "closed half way": (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789", "ended after 10 of 100 bytes"),
    "closed in a chunk": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n0123",
        "ended before it was whole",
    ),
    "closed between chunks": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n",
        "ended before it was whole",
    ),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n", ""),
    "gone": (b"HTTP/1.1 410 Gone\r\n\r\n", "HTTP 410: Gone"),
    "a redirect to a file": (b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n", "HTTP 302"),
}


def _says(data: bytes) -> tuple[str, Callable[[], None]]:
    """(URL, what ends it) of a server that says these bytes to whoever asks, and closes."""
    listening = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while True:
            try:
                peer, _ = listening.accept()
            except OSError:
                return
            with peer:
                peer.recv(65536)
                peer.sendall(data)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()

    def end() -> None:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)

    return f"http://127.0.0.1:{listening.getsockname()[1]}/f", end


@pytest.mark.parametrize("name", _BROKEN)
def test_a_broken_server(name: str, plain: PlainMinion) -> None:
    said, told = _BROKEN[name]
    (plain.root / "f").write_text("old")
    url, end = _says(said)
    try:
        entry = plain.state("file.managed", name="/f", source=url, skip_verify=True)
    finally:
        end()
    assert entry["result"] is False
    assert url in entry["comment"]
    assert told in entry["comment"]
    assert (plain.root / "f").read_text() == "old"
    left = [path for path in (plain.directory / "cache").rglob("*") if path.is_file()]
    assert left == [], "half of a file is kept"


def test_redirects_end(web: Web, plain: PlainMinion) -> None:
    args = {"name": "/f", "skip_verify": True}
    told = plain.state("file.managed", **args, source=f"{web.url}/loop")
    assert told["result"] is False
    assert f"{web.url}/loop: HTTP 302" in told["comment"]
    assert plain.state("file.managed", **args, source=f"{web.url}/here")["result"] is True


def test_a_server_that_drips_is_left(tmp_path: Path) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def drip() -> None:
        peer, _ = listening.accept()
        with peer:
            peer.recv(65536)
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            try:
                while not over.wait(0.02):
                    peer.sendall(b"x")
            except OSError:
                return

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/f"
        with pytest.raises(CommandError, match="takes too long"):
            downloads.fetch(url, tmp_path / "f", deadline=0.2)
    finally:
        over.set()
        thread.join(10)
        listening.close()
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_silent_is_left(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/f"
        with pytest.raises(CommandError, match=r"no answer within 0\.2 seconds|timed out"):
            downloads.fetch(url, tmp_path / "f", timeout=0.2)
    assert list(tmp_path.iterdir()) == []


#: State, arguments (URL stands for the server), what /f holds then; it held "old\n".
_TAKE: dict[str, tuple[str, dict[str, Any], str]] = {
    "append": ("file.append", {"source": "URL/f"}, "old\nfrom afar\n"),
    "append with a digest": ("file.append", {"source": "URL/f", "source_hash": SHA256}, "old\nfrom afar\n"),
    "append several": (
        "file.append",
        {"sources": ["URL/f", "URL/more"], "source_hashes": [SHA256]},
        "old\nfrom afar\nmore\n",
    ),
    "append the second": ("file.append", {"sources": [["URL/none", "URL/f"]]}, "old\nfrom afar\n"),
    "prepend": ("file.prepend", {"source": "URL/f", "source_hash": f"sha256={SHA256}"}, "from afar\nold\n"),
    "blockreplace": (
        "file.blockreplace",
        {"source": "URL/f", "marker_start": "# a", "marker_end": "# z", "append_if_not_found": True, "backup": False},
        "old\n# a\nfrom afar\n# z\n",
    ),
}


def _placed(value: Any, url: str) -> Any:
    if isinstance(value, list):
        return [_placed(each, url) for each in value]
    return value.replace("URL", url) if isinstance(value, str) else value


@pytest.mark.parametrize("name", _TAKE)
def test_a_text_from_a_server(name: str, web: Web, plain: PlainMinion) -> None:
    state, args, holds = _TAKE[name]
    (plain.root / "f").write_text("old\n")
    given = {"name": "/f"} | {key: _placed(value, web.url) for key, value in args.items()}
    assert plain.state(state, test=True, **given)["result"] is None
    assert (plain.root / "f").read_text() == "old\n"
    assert plain.state(state, **given)["result"] is True
    assert (plain.root / "f").read_text() == holds
    assert plain.state(state, **given)["changes"] == {}


@pytest.mark.parametrize("state", ["file.append", "file.prepend", "file.blockreplace"])
def test_a_text_that_is_another_is_not_taken(state: str, web: Web, plain: PlainMinion) -> None:
    (plain.root / "f").write_text("old\n")
    told = plain.state(state, name="/f", source=f"{web.url}/f", source_hash="1" * 64)
    assert told["result"] is False
    assert "does not match actual checksum" in told["comment"]
    gone = plain.state(state, name="/f", source=f"{web.url}/none")
    assert f"{web.url}/none: HTTP 404" in gone["comment"]
    assert (plain.root / "f").read_text() == "old\n"


def test_a_cache_without_room_is_named(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "cache/f"

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(downloads, "_stream", full)
    with pytest.raises(CommandError, match=f"{web.url}/f: {place.parent}: No space left on device"):
        downloads.fetch(f"{web.url}/f", place)
    assert list(place.parent.iterdir()) == []
