"""archive.extracted beyond the played cases: servers, lists, signatures, archives that change, runs that are killed."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from statecore.system.hostfiles import archives
from tests.statecore.conftest import PlainMinion
from tests.statecore.loopback_server import Web, serve


def _tar(files: Mapping[str, str]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            member.mode = 0o644
            tar.addfile(member, io.BytesIO(text.encode()))
    return made.getvalue()


ONE = _tar({"a/x": "one\n", "a/y": "y\n"})
TWO = _tar({"a/x": "two\n", "a/y": "y\n"})


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve() as running:
        running.answers["/a.tar.gz"] = (200, {}, ONE)
        running.answers["/SUMS"] = (200, {}, f"{_sha(ONE)}  a.tar.gz\n".encode())
        yield running


#: Arguments (URL stands for the server), what is told where it fails.
_ASKED: dict[str, tuple[Mapping[str, Any], str]] = {
    "digest": ({"source": "URL/a.tar.gz", "source_hash": f"sha256={_sha(ONE)}"}, ""),
    "file of digests": ({"source": "URL/a.tar.gz", "source_hash": "URL/SUMS"}, ""),
    "no digest wanted": ({"source": "URL/a.tar.gz", "skip_verify": True}, ""),
    "mark": ({"source": "URL/a.tar.gz", "use_etag": True}, ""),
    "the second": ({"source": ["URL/none", "salt://none", "URL/a.tar.gz"], "skip_verify": True}, ""),
    "with its own digest": ({"source": [{"URL/a.tar.gz": _sha(ONE)}]}, ""),
    "with a question": ({"source": "URL/a.tar.gz?v=1", "skip_verify": True}, ""),
    "without a copy": ({"source": "URL/a.tar.gz", "skip_verify": True, "keep_source": False}, ""),
    "no digest": ({"source": "URL/a.tar.gz"}, "please set source_hash or set skip_verify"),
    "wrong digest": (
        {"source": "URL/a.tar.gz", "source_hash": "1" * 64},
        f"URL/a.tar.gz does not match the desired source_hash {'1' * 64}",
    ),
    "not there": (
        {"source": "URL/none.tar", "skip_verify": True},
        "Failed to cache URL/none.tar: URL/none.tar: HTTP 404",
    ),
    "none of them": (
        {"source": ["URL/none.tar", "salt://none.tar"], "skip_verify": True},
        "Source file salt://none.tar not found in saltenv 'base'",
    ),
    "nobody signed": (
        {"source": "URL/a.tar.gz", "skip_verify": True, "signature": "salt://a.sig"},
        "Failed verifying the source file's signature: Detached signature file salt://a.sig not found",
    ),
    "another kind": ({"source": "s3://a/b.tar", "skip_verify": True}, "not supported: the source s3://a/b.tar"),
    "list_options": (
        {"source": "URL/a.tar.gz", "skip_verify": True, "list_options": "x"},
        "not supported: list_options",
    ),
    "two of a kind": (
        {"source": "URL/a.tar.gz", "skip_verify": True, "skip_files_list_verify": True},
        'Only one of "skip_files_list_verify" and "skip_verify"',
    ),
}


def _placed(value: Any, url: str) -> Any:
    if isinstance(value, list):
        return [_placed(each, url) for each in value]
    if isinstance(value, dict):
        return {_placed(key, url): _placed(each, url) for key, each in value.items()}
    return value.replace("URL", url) if isinstance(value, str) else value


@pytest.mark.parametrize("name", _ASKED)
def test_an_archive_of_a_server(name: str, web: Web, plain: PlainMinion) -> None:
    args, says = _ASKED[name]
    given = {"name": "/srv/z"} | {key: _placed(value, web.url) for key, value in args.items()}
    would = plain.state("archive.extracted", test=True, **given)
    assert not (plain.root / "srv").exists()
    told = plain.state("archive.extracted", **given)
    if says:
        assert (would["result"], told["result"]) == (False, False)
        assert _placed(says, web.url) in told["comment"]
        return
    assert (would["result"], told["result"]) == (None, True), told["comment"]
    assert (plain.root / "srv/z/a/x").read_text() == "one\n"
    kept = [path.name for path in (plain.directory / "cache").rglob("a.tar.gz*") if path.is_file()]
    assert bool(kept) is args.get("keep_source", True)
    assert plain.state("archive.extracted", **given)["changes"] == {}


def test_an_archive_that_changed(plain: PlainMinion) -> None:
    archive = plain.tree / "a.tar.gz"
    archive.write_bytes(ONE)
    args = {"name": "/z", "source": "salt://a.tar.gz", "source_hash_update": True, "if_missing": "/z/a"}
    assert plain.state("archive.extracted", **args, source_hash=_sha(ONE))["result"] is True
    assert plain.state("archive.extracted", **args, source_hash=_sha(ONE))["changes"] == {}
    archive.write_bytes(TWO)
    would = plain.state("archive.extracted", **args, source_hash=_sha(TWO), test=True)
    assert would["result"] is None
    assert would["comment"].endswith(", due to source_hash update")
    assert (plain.root / "z/a/x").read_text() == "one\n"
    told = plain.state("archive.extracted", **args, source_hash=_sha(TWO))
    assert told["comment"].endswith(", due to source_hash update")
    assert (plain.root / "z/a/x").read_text() == "two\n"
    assert plain.state("archive.extracted", **args, source_hash=_sha(TWO))["changes"] == {}


def test_an_archive_that_is_known_is_not_looked_into(plain: PlainMinion) -> None:
    (plain.tree / "a.tar.gz").write_bytes(ONE)
    args = {"name": "/z", "source": "salt://a.tar.gz", "source_hash": _sha(ONE), "skip_files_list_verify": True}
    assert plain.state("archive.extracted", **args)["result"] is True
    (plain.root / "z/a/x").unlink()
    told = plain.state("archive.extracted", **args)
    assert told["comment"].endswith("Extraction is not needed")
    assert not (plain.root / "z/a/x").exists()
    # Into another directory it was never taken.
    assert plain.state("archive.extracted", **args | {"name": "/other"})["changes"]["extracted_files"]


def test_an_update_that_fails_is_tried_again(plain: PlainMinion, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = plain.tree / "a.tar.gz"
    archive.write_bytes(ONE)
    args = {"name": "/z", "source": "salt://a.tar.gz", "source_hash_update": True}
    plain.state("archive.extracted", **args, source_hash=_sha(ONE))
    archive.write_bytes(TWO)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", "/z/a/x")

    with monkeypatch.context() as patched:
        patched.setattr("shutil.copyfileobj", full)
        told = plain.state("archive.extracted", **args, source_hash=_sha(TWO))
    assert told["result"] is False
    assert "No space left on device" in told["comment"]
    assert sorted(path.name for path in (plain.root / "z/a").iterdir()) == ["x", "y"]
    assert (plain.root / "z/a/x").read_text() == "one\n"
    assert plain.state("archive.extracted", **args, source_hash=_sha(TWO))["result"] is True
    assert (plain.root / "z/a/x").read_text() == "two\n"


#: Takes out an archive, and is killed in the midst of a file.
_KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from statecore.system.hostfiles import archives

def half(source, made, *_):
    made.write(source.read(2))
    made.flush()
    os.kill(os.getpid(), signal.SIGKILL)

shutil.copyfileobj = half
archives.extract(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
"""


@pytest.mark.parametrize("form", ["tar", "zip"])
def test_a_run_that_is_killed_leaves_no_half_of_a_file(form: str, tmp_path: Path) -> None:
    archive, target = tmp_path / f"a.{form}", tmp_path / "z"
    target.mkdir()
    if form == "tar":
        archive.write_bytes(_tar({"x": "whole\n"}))
    else:
        with zipfile.ZipFile(archive, "w") as made:
            made.writestr("x", "whole\n")
    done = subprocess.run([sys.executable, "-c", _KILLED, archive, form, target], env=dict(os.environ), timeout=30)
    assert done.returncode == -9
    assert not (target / "x").exists()
    archives.extract(archive, form, target)
    assert (target / "x").read_text() == "whole\n"


def test_two_names_of_a_file_are_taken_out_over_themselves(tmp_path: Path) -> None:
    archive, target = tmp_path / "a.tar", tmp_path / "z"
    target.mkdir()
    with tarfile.open(archive, "w") as tar:
        member = tarfile.TarInfo("x")
        member.size = 2
        tar.addfile(member, io.BytesIO(b"x\n"))
        link = tarfile.TarInfo("y")
        link.type, link.linkname = tarfile.LNKTYPE, "x"
        tar.addfile(link)
    for _ in range(2):
        archives.extract(archive, "tar", target)
        assert sorted(path.name for path in target.iterdir()) == ["x", "y"]
        assert (target / "x").samefile(target / "y")
