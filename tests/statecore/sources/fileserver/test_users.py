"""Users' own backends: what they serve, and what becomes of one that fails. test_as_salt compares what they tell with Salt."""

from __future__ import annotations

import logging
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from statecore.runtime.runtime import load_user_backend
from statecore.sources.fileserver import FileServer, UnknownBackend
from statecore.sources.fileserver.users import BackendError, UserFiles
from tests.statecore.sources.fileserver.conftest import write

OWN = Path(__file__).parent / "own_backend.py"


@pytest.fixture
def opts(tmp_path: Path) -> dict[str, Any]:
    own = {"mine/base/top.sls": "mine", "mine/base/long": "abc" * 100, "mine/base/broken.sls": "x"}
    write(tmp_path, {**own, "roots/top.sls": "root"})
    (tmp_path / "dirs").mkdir()
    shutil.copy(OWN, tmp_path / "dirs" / "filed.py")
    (tmp_path / "cache").mkdir()
    return {
        "fileserver_backend": ["mine", "roots"],
        "fileserver_dirs": [str(tmp_path / "dirs")],
        "file_roots": {"base": [str(tmp_path / "roots")]},
        "cachedir": str(tmp_path / "cache"),
        "mine_root": str(tmp_path / "mine"),
        "file_buffer_size": 7,
        "hash_type": "sha256",
    }


def text(server: FileServer, path: str) -> str | None:
    found = server.fetch(path)
    return found.read_text() if found is not None else None


def test_what_it_serves_comes_by_its_own_functions(opts: dict[str, Any]) -> None:
    server = FileServer.of(opts, load_user_backend)
    assert text(server, "top.sls") == "MINE"
    assert text(server, "long") == "ABC" * 100
    assert [text(server, path) for path in ("nowhere", "/etc/passwd", "../base/long", "")] == [None] * 4
    first = server.fetch("long")
    assert first is not None
    assert server.fetch("long") == first, "the copy is kept while the digest is the same"
    (Path(opts["mine_root"]) / "base" / "long").write_text("new")
    assert text(server, "long") == "NEW"
    assert server.mode("top.sls") == (Path(opts["mine_root"]) / "base" / "top.sls").stat().st_mode & 0o7777


#: A backend whose first two readers are in the middle of one file at the same time, and read different contents of it.
_SLOW = """
import threading

together = threading.Barrier(2)
contents = iter((b"first", b"other"))
mine = threading.local()

def find_file(path, env):
    return {"path": path, "rel": path}

def serve_file(load, fnd):
    if load["loc"]:
        together.wait(60)
        return {"data": b"" if load["loc"] > 5 else b"!", "dest": fnd["rel"]}
    mine.content = next(contents)
    together.wait(60)
    return {"data": mine.content, "dest": fnd["rel"]}
"""


def test_two_that_fetch_a_file_at_once_get_it_whole(opts: dict[str, Any]) -> None:
    (Path(opts["fileserver_dirs"][0]) / "slow.py").write_text(_SLOW)
    backend = UserFiles("slow", opts, load_user_backend)
    assert backend.envs() == []
    with ThreadPoolExecutor(2) as pool:
        found = [each.result(60) for each in [pool.submit(backend.fetch, "a") for _ in range(2)]]
    assert found[0] is not None
    assert found[1] == found[0]
    assert found[0].read_text() in ("first!", "other!")
    assert [each.name for each in found[0].parent.iterdir()] == [found[0].name]


def test_what_it_raises_is_told_with_its_place_and_the_others_go_on(
    opts: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    (Path(opts["file_roots"]["base"][0]) / "broken.sls").write_text("whole")
    server = FileServer.of(opts, load_user_backend)
    assert text(server, "broken.sls") == "whole"
    place = f"{opts['fileserver_dirs'][0]}/filed.py:"
    assert "file server backend 'mine': file_hash failed: RuntimeError: cannot be read" in caplog.text
    assert f"({place}" in caplog.text
    shutil.rmtree(opts["mine_root"])
    assert server.envs() == ["base"]
    assert "mine': envs failed: FileNotFoundError" in caplog.text
    assert server.paths() == ["broken.sls", "top.sls"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("def __virtual__():\n    return False, 'no library'\n", "no library"),
        ("import nowhere\n", "No module named 'nowhere' (filed.py:1)"),
        ("def envs(:\n", "SyntaxError"),
    ],
)
def test_one_that_cannot_be_used_is_left_out(
    opts: dict[str, Any], content: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    (Path(opts["fileserver_dirs"][0]) / "filed.py").write_text(f"'mine'\n{content}".replace("'mine'\nimport", "import"))
    server = FileServer.of({**opts, "fileserver_backend": ["filed", "roots"]}, load_user_backend)
    assert text(server, "top.sls") == "root"
    assert text(server, "top.sls") == "root"
    assert "file server backend 'filed' is left out" in caplog.text
    assert said in caplog.text
    assert caplog.text.count("is left out") == 1


@pytest.mark.parametrize(
    "answer",
    [
        "def find_file(path, env):\n    return 5\n",
        "def file_list(load):\n    return 5\n\ndef envs():\n    return None\n",
    ],
)
def test_answers_of_a_wrong_form_count_as_nothing(
    opts: dict[str, Any], answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    (Path(opts["fileserver_dirs"][0]) / "filed.py").write_text(answer)
    server = FileServer.of({**opts, "fileserver_backend": ["filed", "roots"]}, load_user_backend)
    assert (server.envs(), server.paths(), text(server, "top.sls")) == (["base"], ["top.sls"], "root")
    assert "returned no" in caplog.text


def test_a_name_that_no_file_claims_is_refused(opts: dict[str, Any]) -> None:
    with pytest.raises(UnknownBackend, match=r"no file server backend 'minne'.*fileserver_dirs"):
        FileServer.of({**opts, "fileserver_backend": ["minne"]}, load_user_backend)


def test_some_of_the_backends(opts: dict[str, Any]) -> None:
    server = FileServer.of(opts, load_user_backend)
    assert list(server.only("mine").backends) == ["mine"]
    assert list(server.only("-mine").backends) == ["roots"]
    with pytest.raises(UnknownBackend, match="no file server backend 'other'"):
        server.only("other")


def test_what_is_done_with_it_as_a_whole(opts: dict[str, Any]) -> None:
    (backend,) = FileServer.of(opts, load_user_backend).users
    assert backend.update() is True
    assert (Path(opts["cachedir"]) / "mine-updated").read_text() == "updated\n"
    assert backend.lock("x*") == (["locked x*"], [])
    assert backend.clear_lock(None) == (["unlocked None update"], ["not all"])
    with pytest.raises(BackendError, match=r"clear_cache failed: OSError: no such cache \(.*filed.py:\d+\)"):
        backend.clear_cache()


@pytest.mark.parametrize("content", ["", "def init():\n    raise ValueError('bad')\n"])
def test_functions_that_are_not_there_do_nothing(opts: dict[str, Any], content: str) -> None:
    (Path(opts["fileserver_dirs"][0]) / "filed.py").write_text(content)
    backend = UserFiles("filed", opts, load_user_backend)
    assert (backend.envs(), backend.paths(), backend.symlinks()) == ([], [], {})
    assert (backend.hash("a"), backend.fetch("a"), backend.update()) == (None, None, False)
    assert (backend.lock(None), backend.clear_lock(None), backend.clear_cache()) == (([], []), ([], []), ([], []))


def test_it_is_loaded_when_it_is_asked_for_something(opts: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    del opts["mine_root"]
    caplog.set_level(logging.ERROR)
    server = FileServer.of(opts, load_user_backend)
    assert caplog.text == ""
    assert server.envs() == ["base"]
    assert "mine_root says no directory" in caplog.text
