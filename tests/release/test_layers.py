"""Layers of images, normalised: what two builds of the same content may differ in does not reach the bytes."""

from __future__ import annotations

import importlib.util
import io
import marshal
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from release.layers import byte_code_without_time, normalise, shadow_of_day

EPOCH = 1_700_000_000

#: A row of a test layer: name, kind, content or target, mtime.
Row = tuple[str, bytes, str, float]

REG, DIR, LINK, SYM = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE


def layer(*rows: Row, prefix: str = "", **fields: object) -> io.BytesIO:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:", format=tarfile.PAX_FORMAT) as archive:
        for name, kind, text, mtime in rows:
            info = tarfile.TarInfo(prefix + name)
            info.type, info.mtime, info.mode = kind, mtime, 0o755 if kind == DIR else 0o640
            for field, value in fields.items():
                setattr(info, field, value)
            if kind == REG:
                info.size = len(text.encode())
            elif kind == LINK:
                info.linkname = prefix + text
            else:
                info.linkname = text
            archive.addfile(info, io.BytesIO(text.encode()))
    made.seek(0)
    return made


def normalised(source: io.BytesIO) -> bytes:
    target = io.BytesIO()
    normalise(source, target, EPOCH)
    return target.getvalue()


def listed(data: bytes) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return archive.getmembers()


A: Row = ("a", DIR, "", 5)
B: Row = ("a/b", REG, "text", 6)
C: Row = ("a.c", SYM, "a/b", 7)

#: What two builds differ in -> the second build's layer.
SAME = {
    "order": layer(C, B, A),
    "./ before names": layer(A, B, C, prefix="./"),
    "names of owners": layer(A, B, C, uname="root", gname="root"),
    "parts of seconds": layer(("a", DIR, "", 5.25), B, C),
    "access times": layer(A, B, C, pax_headers={"atime": "99.5", "LIBARCHIVE.creationtime": "3"}),
    "a log": layer(A, B, C, ("var/log/dpkg.log", REG, "today", 8)),
    "a cache": layer(A, B, C, ("var/cache/ldconfig/aux-cache", REG, "x", 8)),
    "a copy of passwd": layer(A, B, C, ("etc/passwd-", REG, "x", 8)),
}


@pytest.mark.parametrize("what", SAME)
def test_two_builds_of_the_same_content_are_equal(what: str) -> None:
    assert normalised(SAME[what]) == normalised(layer(A, B, C))


#: What makes a layer another one.
OTHER = {
    "content": layer(A, ("a/b", REG, "texT", 6), C),
    "a time before the release": layer(A, ("a/b", REG, "text", 9), C),
    "a link": layer(A, B, ("a.c", SYM, "a", 7)),
    "an owner": layer(A, B, C, uid=7),
    "a capability": layer(A, B, C, pax_headers={"SCHILY.xattr.security.capability": "x"}),
    "a whiteout": layer(A, B, C, (".wh.d", REG, "", 7)),
    "a file of the same name elsewhere": layer(A, B, C, ("srv/var/log/a", REG, "", 7)),
}


@pytest.mark.parametrize("what", OTHER)
def test_what_a_container_can_see_stays(what: str) -> None:
    assert normalised(OTHER[what]) != normalised(layer(A, B, C))


def test_no_time_is_after_the_release() -> None:
    infos = listed(normalised(layer(A, ("a/b", REG, "text", EPOCH + 9.5))))
    assert [(info.name, info.mtime) for info in infos] == [("a", 5), ("a/b", EPOCH)]


def test_normalising_twice_changes_nothing() -> None:
    once = normalised(layer(C, B, A))
    assert normalised(io.BytesIO(once)) == once


def test_hard_links_follow_the_first_name_whatever_the_order() -> None:
    first = normalised(layer(("x", REG, "one", 1), ("b", LINK, "x", 1), ("a", LINK, "x", 1)))
    assert first == normalised(layer(("a", REG, "one", 1), ("b", LINK, "a", 1), ("x", LINK, "a", 1)))
    assert [(info.name, info.type, info.linkname) for info in listed(first)] == [
        ("a", REG, ""),
        ("b", LINK, "a"),
        ("x", LINK, "a"),
    ]


def test_a_link_to_a_file_that_is_left_out_keeps_the_content() -> None:
    made = normalised(layer(("tmp/x", REG, "one", 1), ("z", LINK, "tmp/x", 1)))
    with tarfile.open(fileobj=io.BytesIO(made)) as archive:
        file = archive.extractfile("z")
        assert file is not None
        assert (archive.getnames(), file.read()) == (["z"], b"one")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"root:*:20000:0:99999:7:::\n", b"root:*:19675:0:99999:7:::\n"),
        (b"root:*:19000:0:99999:7:::\na:!:20000::::::\n", b"root:*:19000:0:99999:7:::\na:!:19675::::::\n"),
        (b"a:!::0:99999:7:::\n", b"a:!::0:99999:7:::\n"),
    ],
)
def test_no_password_is_younger_than_the_release(text: bytes, expected: bytes) -> None:
    assert shadow_of_day(text, EPOCH // 86400) == expected


def byte_code(tmp_path: Path, mtime: int) -> bytes:
    code = marshal.dumps(compile("A = 1\n", "m.py", "exec"))
    return importlib.util.MAGIC_NUMBER + struct.pack("<III", 0, mtime, 6) + code


def test_byte_code_of_another_time_is_the_same_and_is_used(tmp_path: Path) -> None:
    first, second = (byte_code_without_time(byte_code(tmp_path, mtime), b"A = 1\n") for mtime in (1, 2))
    assert first == second
    assert byte_code_without_time(first, None) == first
    # Python loads it, though the source has another time and even another text: nobody checks the hash.
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / f"m.{sys.implementation.cache_tag}.pyc").write_bytes(first)
    (tmp_path / "m.py").write_text("A = 2\n")
    words = [sys.executable, "-B", "-c", "import m; print(m.A)"]
    done = subprocess.run(
        words, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"


def test_byte_code_in_a_layer_finds_its_source(tmp_path: Path) -> None:
    code = byte_code(tmp_path, 1).decode("latin-1")
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:") as archive:
        for name, content in (("l/m.py", b"A = 1\n"), ("l/__pycache__/m.cpython-311.pyc", code.encode("latin-1"))):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    made.seek(0)
    with tarfile.open(fileobj=io.BytesIO(normalised(made))) as archive:
        file = archive.extractfile("l/__pycache__/m.cpython-311.pyc")
        assert file is not None
        assert file.read()[4:16] == struct.pack("<I", 1) + importlib.util.source_hash(b"A = 1\n")
