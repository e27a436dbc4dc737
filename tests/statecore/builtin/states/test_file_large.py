"""Files larger than memory wants: streamed, never whole in memory; replaced whole or not at all, whatever ends the run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest

from statecore.host.content import diffs, managed_file
from statecore.host.content.managed_file import Attributes
from statecore.host.host import Host
from tests.statecore.conftest import PlainMinion

#: Bytes of the source, and by how many the process may grow over it: by less than half of it.
SIZE, GROWTH = 150 * 1024**2, 60 * 1024**2

#: Runs a state on a minion of its own; tells what came of it, and by how much the process has grown.
_RUN = """
import json, os, resource, sys
from pathlib import Path
from tests.statecore.conftest import PlainMinion
top, state, arguments = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
minion = PlainMinion(top)
for source, name in ((top.parent / "large", minion.tree / "large"), (top.parent / "large", minion.root / "large")):
    os.link(source, name)
minion.state("file.managed", name="/warm", contents="up")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
told = [minion.state(state, **arguments) for _ in range(2)]
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
print(json.dumps({"told": told, "grown": grown, "size": (minion.root / "place").stat().st_size}))
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "large"
    block = random.Random(1).randbytes(1024**2)
    with path.open("wb") as file:
        for _ in range(SIZE // len(block)):
            file.write(block)
    return path


@pytest.mark.parametrize(
    ("state", "arguments", "changes"),
    [
        ("file.managed", {"source": "salt://large"}, {"diff": "New file", "mode": "0644"}),
        ("file.managed", {"source": "/large", "mode": "0600", "show_changes": False}, {"diff": "New file"}),
        ("file.copy", {"source": "/large"}, {"/place": "/large"}),
    ],
)
def test_a_large_file_is_never_in_memory(
    large: Path,
    tmp_path_factory: pytest.TempPathFactory,
    state: str,
    arguments: dict[str, Any],
    changes: dict[str, Any],
) -> None:
    top = large.parent / f"{state}-{len(arguments)}-{arguments['source'].count('/')}"
    top.mkdir()
    argv = [sys.executable, "-c", _RUN, str(top), state, json.dumps(arguments | {"name": "/place"})]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["told"][0]["result"], told["told"][0]["changes"]) == (True, changes), told["told"][0]["comment"]
    assert (told["told"][1]["result"], told["told"][1]["changes"]) == (True, {})
    assert (told["size"], told["grown"] < GROWTH) == (SIZE, True), told["grown"]


def test_what_is_told_of_large_files(plain: PlainMinion, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed_file, "WHOLE", 10)
    plain.write("text", "0123456789\n" * 2)
    plain.write("binary", "\0" * 20)
    would = plain.state("file.managed", test=True, name="/f", source="salt://text")
    assert (would["result"], would["changes"]) == (None, {"newfile": "/f"})
    assert plain.state("file.managed", name="/f", source="salt://text")["changes"] == {
        "diff": "New file",
        "mode": "0644",
    }
    assert plain.state("file.managed", name="/f", source="salt://text")["changes"] == {}
    binary = plain.state("file.managed", name="/f", source="salt://binary")
    assert binary["changes"] == {"diff": "Replace text file with binary file"}
    assert (
        plain.state("file.managed", name="/f", contents="abc")["changes"]["diff"]
        == "Replace binary file with text file"
    )
    plain.state("file.managed", name="/f", source="salt://text")
    more = plain.write("more", "0123456789\n" * 3)
    told = plain.state("file.managed", name="/f", source="salt://more")
    assert told["changes"] == {"diff": "Replace text file of 22 bytes with one of 33 bytes"}
    assert (plain.root / "f").read_text() == more.read_text()
    hidden = plain.state("file.managed", name="/f", source="salt://text", show_changes=False)
    assert hidden["changes"] == {"diff": diffs.HIDDEN}


def test_text_is_told_from_binary_however_it_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffs, "_SNIFF", 3)
    monkeypatch.setattr(diffs, "_BLOCK", 2)
    texts = (b"plain", "äöü€".encode(), b"abc\xffdef")
    for data, binary in (*((text, False) for text in texts), ("ä".encode()[:1], True), (b"a\xff\xfe", True)):
        place = tmp_path / "f"
        place.write_bytes(data)
        assert diffs.is_binary(place) is binary is diffs.is_binary(data)


def _replaced_for_ever(host: Host, name: str) -> NoReturn:
    """Replaces a file by one of two contents, until it is killed."""
    while True:
        for letter in (b"a", b"b"):
            managed_file.replace(host, host.path(name), letter * 3_000_000, Attributes())


@pytest.mark.parametrize("mounted", [True, False])
def test_a_run_that_is_killed_leaves_the_old_file_or_the_new_one(tmp_path: Path, mounted: bool) -> None:
    root = tmp_path if mounted else Path("/")
    place = tmp_path / "f"
    place.write_bytes(b"a" * 3_000_000)
    host, name = Host(root), "/f" if mounted else str(place)
    moments = random.Random(3)
    for _ in range(12):
        process = os.fork()
        if process == 0:
            try:
                _replaced_for_ever(host, name)
            finally:
                os._exit(1)
        # The moment is the point: somewhere in the middle of what it does.
        time.sleep(moments.random() / 30)
        assert os.waitpid(process, os.WNOHANG) == (0, 0), "it has ended by itself"
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        data = place.read_bytes()
        assert (len(data), len(set(data))) == (3_000_000, 1)
    managed_file.replace(host, host.path(name), b"healed", Attributes())
    assert place.read_bytes() == b"healed"


@pytest.mark.parametrize("flag", [0, os.O_TMPFILE])
def test_files_are_replaced_where_the_file_system_knows_no_files_without_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: int
) -> None:
    opened = os.open

    def refused(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if flag and flags & flag == flag:
            raise OSError(95, "Operation not supported")
        return opened(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", refused)
    host = Host(tmp_path)
    for data in (b"1", b"2"):
        managed_file.replace(host, host.path("/f"), data, Attributes())
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("f", b"2")]


def test_all_of_a_new_file_is_shown_where_that_is_asked_for(plain: PlainMinion) -> None:
    asked: dict[str, Any] = {"name": "/f", "contents": "one", "new_file_diff": True}
    # As Salt 3008 tells it, in test mode too.
    diff = {"diff": "--- \n+++ \n@@ -0,0 +1 @@\n+one\n"}
    assert plain.state("file.managed", test=True, **asked)["changes"] == diff
    hidden = plain.state("file.managed", show_changes=False, test=True, **asked)
    assert hidden["changes"] == {"newfile": "/f"}
    assert plain.state("file.managed", **asked)["changes"] == diff
    assert plain.state("file.managed", **asked)["changes"] == {}
    (plain.root / "f").unlink()
    assert plain.state("file.managed", show_changes=False, **asked)["changes"] == {"diff": "New file"}
    plain.write("binary", "\0\1")
    assert (
        plain.state("file.managed", name="/b", source="salt://binary", new_file_diff=True)["changes"]["diff"]
        == "New file"
    )
