"""``cp.push`` and ``cp.push_dir``: what is sent to the master, in which pieces and under which names."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def host(plain: Any) -> Any:
    """/etc has two files, a link and a directory; a chunk is four bytes."""
    plain.opts["file_buffer_size"] = 4
    plain.ports.answer = True
    etc = plain.root / "etc"
    (etc / "d").mkdir(parents=True)
    (etc / "a").write_bytes(b"123456")
    (etc / "d" / "b.conf").write_bytes(b"b")
    (etc / "empty").touch()
    (etc / "link").symlink_to("/etc/a")
    (etc / "out").symlink_to("../../../secret")
    (plain.directory / "secret").write_text("x")
    return plain


def sent(host: Any) -> list[tuple[str, int, bytes]]:
    assert {cmd for cmd, _ in host.ports.asked} <= {"_file_recv"}
    return [("/".join(fields["path"]), fields["loc"], fields["data"]) for _, fields in host.ports.asked]


A = [("etc/a", 0, b"1234"), ("etc/a", 4, b"56")]


@pytest.mark.parametrize(
    ("words", "named", "expected"),
    [
        (("/etc/a",), {}, A),
        (("/etc/empty",), {}, [("etc/empty", 0, b"")]),
        (("/etc/link",), {}, A),
        (("/etc/link",), {"keep_symlinks": True}, [("etc/link", 0, b"1234"), ("etc/link", 4, b"56")]),
        (("/etc/d/b.conf",), {"upload_path": "/x/y"}, [("x/y", 0, b"b")]),
    ],
)
def test_a_file(host: Any, words: tuple[str, ...], named: dict[str, Any], expected: Any) -> None:
    assert host.call("cp.push", *words, **named) is True
    assert sent(host) == expected


@pytest.mark.parametrize("path", ["/etc", "/nowhere", "etc/a", "/etc/../etc/a", "/etc/out"])
def test_what_is_no_file_of_the_host(host: Any, path: str) -> None:
    assert host.call("cp.push", path) is False
    assert host.call("cp.push", "/etc/a", upload_path="/x/../../y") is False
    assert sent(host) == []


def test_the_source_goes_once_it_is_there(host: Any) -> None:
    host.ports.masters["_file_recv"] = lambda fields: fields["loc"] == 0
    assert host.call("cp.push", "/etc/a", remove_source=True) is False
    assert (host.root / "etc/a").exists()
    host.ports.masters.clear()
    assert host.call("cp.push", "/etc/a", remove_source=True) is True
    assert not (host.root / "etc/a").exists()


@pytest.mark.parametrize(
    ("words", "named", "expected"),
    [
        (("/etc",), {"glob": "*.conf"}, [("etc/d/b.conf", 0, b"b")]),
        (("/etc/d",), {"upload_path": "/x"}, [("x/b.conf", 0, b"b")]),
        (("/etc/a",), {}, A),
    ],
)
def test_a_directory(host: Any, words: tuple[str, ...], named: dict[str, Any], expected: Any) -> None:
    assert host.call("cp.push_dir", *words, **named) is True
    assert sent(host) == expected


@pytest.mark.parametrize(
    ("path", "glob"), [("/etc", "*.none"), ("/nowhere", None), ("etc", None), ("/etc/../etc", None)]
)
def test_no_files(host: Any, path: str, glob: str | None) -> None:
    assert host.call("cp.push_dir", path, glob=glob) is False
    assert sent(host) == []
