"""Attack: a hostile tree of files reads or writes outside of its root, through links that are there or that are exchanged
while a file is opened (finding 38.5).

Each way out is tried through each command of the master that reads a tree, and through masterless minions, pillar files,
SLS files and wheel functions, with ``fileserver_followsymlinks: false``.
"""

from __future__ import annotations

import ast
import ctypes
import errno
import hashlib
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest

from saltern.mworker.commands import files as served
from saltern.mworker.commands import roots
from saltern.mworker.commands.received_files import FileRefused, store
from saltern.mworker.worker_context import WorkerContext
from statecore.host import beneath
from statecore.host.beneath import LeadsOutside, Links
from statecore.model.errors import CommandError, SlsError
from statecore.pillar import compile_pillar
from statecore.pillar.sls import PillarFiles
from statecore.render import SlsTree
from statecore.sources import extension_modules
from statecore.sources.fileserver import FileServer
from statecore.sources.fileserver.minionfs import MinionFiles
from statecore.sources.gitrepos.tree import read_tree
from statecore.sources.local_tree import LocalFiles
from statecore.sources.tree_roots import TreeRoot

SECRET = "secret-of-the-master: 7f3a"


class Place(NamedTuple):
    """A tree, and a file of the master beside it."""

    tree: Path
    secret: Path

    @property
    def opts(self) -> dict[str, Any]:
        return {
            "file_roots": {"base": [str(self.tree)]},
            "pillar_roots": {"base": [str(self.tree)]},
            "fileserver_followsymlinks": False,
        }


@pytest.fixture
def place(tmp_path: Path) -> Place:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    (tree / "a/b").mkdir(parents=True)
    (tree / "a/b/file.sls").write_text("own: data\n")
    (tree / "top.sls").write_text("base: {'*': [a.b.file]}\n")
    (outside / "empty").mkdir(parents=True)
    (outside / "secret.sls").write_text(SECRET + "\n")
    (tmp_path / "tree2").symlink_to(outside)
    return Place(tree, outside / "secret.sls")


def _link(name: str, target: str) -> Callable[[Place], None]:
    def made(place: Place) -> None:
        path = place.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target.replace("OUT", str(place.secret.parent)).replace("TREE", str(place.tree)))

    return made


def _links(*rows: tuple[str, str]) -> Callable[[Place], None]:
    def made(place: Place) -> None:
        for name, target in rows:
            _link(name, target)(place)

    return made


def _nothing(place: Place) -> None:
    """The request alone is the attack."""


#: What the tree holds, and the path that is asked for.
WAYS_OUT: dict[str, tuple[Callable[[Place], None], str]] = {
    "a link to the file": (_link("x.sls", "../outside/secret.sls"), "x.sls"),
    "an absolute link to the file": (_link("x.sls", "OUT/secret.sls"), "x.sls"),
    "a link in the first directory": (_link("x", "../outside"), "x/secret.sls"),
    "an absolute link in the first directory": (_link("x", "OUT"), "x/secret.sls"),
    "a link in the second directory": (_link("a/x", "../../outside"), "a/x/secret.sls"),
    "a link in the third directory": (_link("a/b/x", "../../../outside"), "a/b/x/secret.sls"),
    "an absolute link in the third directory": (_link("a/b/x", "OUT"), "a/b/x/secret.sls"),
    "a link deep in a directory": (_link("a/b/x.sls", "../../../outside/secret.sls"), "a/b/x.sls"),
    "a link to a link": (_links(("x.sls", "y"), ("y", "../outside/secret.sls")), "x.sls"),
    "a link through a link": (_links(("x.sls", "y/secret.sls"), ("y", "../outside")), "x.sls"),
    "a link to the directory above": (_link("x", ".."), "x/outside/secret.sls"),
    "an absolute link to the directory above": (_link("x", "TREE/.."), "x/outside/secret.sls"),
    "a link into the tree and out again": (_link("x.sls", "a/b/../../../outside/secret.sls"), "x.sls"),
    "an absolute link into the tree and out again": (_link("x.sls", "TREE/a/../../outside/secret.sls"), "x.sls"),
    "a directory whose name begins like the tree's": (_link("x", "TREE2"), "x/secret.sls"),
    "slashes and dots": (_link("x.sls", ".//.././/outside/./secret.sls"), "x.sls"),
    "the root of this process": (_link("x", "/proc/self/root"), "xOUT/secret.sls"),
    "the root of this thread": (_link("x", "/proc/thread-self/root"), "xOUT/secret.sls"),
    "the directory of this process": (_link("x", "/proc/self/cwd"), "xOUT/secret.sls"),
    "the root directory": (_link("x", "/"), "xOUT/secret.sls"),
    "the parent in the request": (_nothing, "../outside/secret.sls"),
    "the parent behind a directory in the request": (_nothing, "a/../../outside/secret.sls"),
    "the parent behind a link in the request": (_link("x", "a/b"), "x/../../../outside/secret.sls"),
    "an absolute request": (_nothing, "OUT/secret.sls"),
    "two slashes": (_nothing, "/OUT/secret.sls"),
    "a null byte": (_link("x", "../outside/secret.sls"), "x\0.sls"),
}


def _context(files: object) -> WorkerContext:
    log = SimpleNamespace(debug=lambda *_: None, warning=lambda *_: None)
    return cast(
        "WorkerContext", SimpleNamespace(files=files, options=SimpleNamespace(file_buffer_size=262144), log=log)
    )


def _server(place: Place) -> FileServer:
    return FileServer({"roots": LocalFiles.of(place.opts)})


def _command(command: Callable[..., object]) -> Callable[[Place, str], object]:
    def asked(place: Place, path: str) -> object:
        load = {"path": path, "saltenv": "base", "loc": 0}
        return command(_context(_server(place)), "web1", load)

    return asked


def _listed(command: Callable[..., object]) -> Callable[[Place, str], object]:
    """Ask for the whole list, and for what lies below the path."""

    def asked(place: Place, path: str) -> object:
        context = _context(_server(place))
        top = path.rpartition("/")[0]
        found = [command(context, "web1", {"saltenv": "base", "prefix": prefix}) for prefix in ("", path, f"{top}/")]
        texts = [str(name) for names in found for name in cast("list[str]", names)]
        # A list shows the names of links, and nothing behind them.
        return [name for name in texts if "secret" in name or name.endswith("empty")]

    return asked


def _pillar(place: Place, path: str) -> object:
    reference = path.removesuffix(".sls").replace("/", ".")
    (place.tree / "top.sls").write_text(f"base: {{'*': [{reference!r}]}}\n")
    return compile_pillar(
        PillarFiles(place.opts), minion_id="web1", grains={}, opts=place.opts, functions={"test.echo": str}
    )


def _sls_tree(opts: Mapping[str, Any]) -> SlsTree:
    return SlsTree(LocalFiles.of(opts), opts={"id": "web1", **opts}, grains={}, pillar={}, functions={"test.echo": str})


def _top_file(place: Place, path: str) -> object:
    opts = {**place.opts, "state_top": path}
    try:
        return _sls_tree(opts).top()
    except SlsError as error:
        return str(error)


def _template(place: Place, path: str) -> object:
    opts = place.opts
    try:
        return _sls_tree(opts).templates.render(f"{{% include {path!r} %}}", "jinja", {}, saltenv="base")
    except SlsError as error:
        return str(error)


def _file(place: Place, path: str) -> object:
    found = LocalFiles.of(place.opts).fetch(path)
    return None if found is None else found.read_bytes()


#: Who reads a tree -> function of (place, path) that returns all that the reader answers.
READERS: dict[str, Callable[[Place, str], object]] = {
    "_serve_file": _command(served.serve),
    "_file_hash": _command(served.file_hash),
    "_file_hash_and_stat": _command(served.file_hash_and_stat),
    "_file_find": _command(served.find),
    "_file_list": _listed(served.file_list),
    "_dir_list": _listed(served.dir_list),
    "_file_list_emptydirs": _listed(served.empty_dirs),
    "a masterless minion": _file,
    "a pillar file": _pillar,
    "a top file": _top_file,
    "a template": _template,
    "wheel find": lambda place, path: [*roots.find({"base": [str(place.tree)]}, path)],
    "wheel read": lambda place, path: [*roots.read({"base": [str(place.tree)]}, path)],
    "wheel list_env": lambda place, path: roots.list_env({"base": [str(place.tree)]}),
}


def _shows(place: Place, answer: object) -> list[str]:
    """Return what of the secret an answer shows."""
    content = place.secret.read_bytes()
    status = place.secret.stat()
    marks = {"its text": SECRET, "its digest": hashlib.sha256(content).hexdigest(), "its inode": f"{status.st_ino},"}
    text = repr(answer)
    return [name for name, mark in marks.items() if mark in text or (name == "its text" and "7f3a" in text)]


@pytest.fixture(params=["openat2", "openat"])
def opener(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kernel's call, and the walk of kernels and containers that do not have it."""
    if request.param == "openat":
        monkeypatch.setattr(beneath, "_system_call", lambda: lambda top, path, how: -errno.ENOSYS)
    return str(request.param)


#: An absolute path in a template is a file of the host, as in Salt.
_OF_THE_HOST = {("an absolute request", "a template"), ("two slashes", "a template")}


@pytest.mark.parametrize(
    ("way", "reader"), [(way, reader) for way in WAYS_OUT for reader in READERS if (way, reader) not in _OF_THE_HOST]
)
def test_nothing_outside_of_a_tree_is_shown(place: Place, way: str, reader: str) -> None:
    build, path = WAYS_OUT[way]
    build(place)
    path = path.replace("OUT", str(place.secret.parent))
    answer = READERS[reader](place, path)
    assert _shows(place, answer) == []
    if reader.endswith(("list", "dirs")):
        assert answer == []


@pytest.mark.parametrize("way", WAYS_OUT)
def test_nothing_outside_is_shown_without_openat2(place: Place, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beneath, "_system_call", lambda: lambda top, path, how: -errno.EPERM)
    build, path = WAYS_OUT[way]
    build(place)
    path = path.replace("OUT", str(place.secret.parent))
    for name, reader in READERS.items():
        assert (way, name) in _OF_THE_HOST or _shows(place, reader(place, path)) == []


@pytest.mark.parametrize("way", WAYS_OUT)
def test_nothing_outside_of_a_tree_is_written(place: Place, way: str) -> None:
    build, path = WAYS_OUT[way]
    build(place)
    before = sorted(each.name for each in place.secret.parent.iterdir())
    path = path.replace("OUT", str(place.secret.parent))
    with suppress(ValueError):
        roots.write({"base": [str(place.tree)]}, "forged", path)
    assert place.secret.read_text().strip() == SECRET
    assert sorted(each.name for each in place.secret.parent.iterdir()) == before


# ---------------------------------------------------------------------------------------------- files that are no files

_SPECIAL: dict[str, Callable[[Path], object]] = {
    "a FIFO": os.mkfifo,
    "a socket": lambda path: _socket(path),
    "a directory": lambda path: path.mkdir(),
    "a link to a FIFO": lambda path: (os.mkfifo(path.with_name("fifo")), path.symlink_to("fifo")),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to a terminal": lambda path: path.symlink_to("/dev/tty"),
}


def _socket(path: Path) -> None:
    made = socket.socket(socket.AF_UNIX)
    there = os.open(path.parent, os.O_PATH)
    try:
        # The path of a socket has at most 108 bytes.
        made.bind(f"/proc/self/fd/{there}/{path.name}")
    finally:
        os.close(there)
        made.close()


@pytest.mark.parametrize("reader", [name for name in READERS if "list" not in name])
@pytest.mark.parametrize("kind", _SPECIAL)
@pytest.mark.parametrize("follow", [True, False], ids=["followed", "not followed"])
def test_a_reader_waits_for_no_special_file(place: Place, kind: str, reader: str, follow: bool) -> None:
    _SPECIAL[kind](place.tree / "x.sls")
    opts = {**place.opts, "fileserver_followsymlinks": follow}
    done: list[object] = []
    own = type("Own", (Place,), {"opts": opts})(*place)
    thread = threading.Thread(target=lambda: done.append(READERS[reader](own, "x.sls")), daemon=True)
    thread.start()
    thread.join(10)
    assert done, f"{reader} waits for {kind}"
    assert "x.sls" not in [name for name in LocalFiles.of(opts).paths() if "list" in reader]


@pytest.mark.parametrize("follow", [True, False], ids=["followed", "not followed"])
def test_a_fifo_that_takes_the_place_of_a_file_holds_no_worker(place: Place, follow: bool, opener: str) -> None:
    files = LocalFiles.of({**place.opts, "fileserver_followsymlinks": follow})
    found = files.fetch("a/b/file.sls")
    assert found is not None
    (place.tree / "a/b/file.sls").unlink()
    os.mkfifo(place.tree / "a/b/file.sls")
    done: list[object] = []

    def read() -> None:
        try:
            done.append(found.read_bytes())
        except OSError as error:
            done.append(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(10)
    assert done, "the open waits for a writer of the FIFO"
    assert isinstance(done[0], beneath.NoRegularFile)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
@pytest.mark.parametrize("follow", [True, False], ids=["followed", "not followed"])
def test_a_device_is_not_served(place: Place, follow: bool) -> None:
    try:
        os.mknod(place.tree / "zero", 0o020666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("no device can be made here")
    files = LocalFiles.of({**place.opts, "fileserver_followsymlinks": follow})
    assert files.fetch("zero") is None
    assert "zero" not in files.paths()


# ------------------------------------------------------------------------------------- the link comes after the check


def _to_link(path: Path, target: Path) -> None:
    path.rename(path.with_name("before"))
    path.symlink_to(target)


#: What is exchanged after the file was found: (component below the tree, target outside).
EXCHANGED: dict[str, tuple[str, str]] = {
    "the file": ("a/b/file.sls", "secret.sls"),
    "its directory": ("a/b", "."),
    "the first directory": ("a", "."),
    "the root": ("", "."),
}


def _exchange(place: Place, what: str) -> None:
    component, target = EXCHANGED[what]
    outside = place.secret.parent
    # The same relative path leads to the secret from each of the components.
    (outside / "b").mkdir()
    (outside / "b/file.sls").write_text(SECRET)
    (outside / "file.sls").write_text(SECRET)
    (outside / "a").symlink_to(".")
    _to_link(place.tree / component if component else place.tree, outside / target)


@pytest.mark.parametrize("what", [name for name in EXCHANGED if name != "the root"])
@pytest.mark.parametrize("use", ["read_bytes", "read_text", "open", "stat"])
def test_a_path_that_was_found_leads_out_no_later(place: Place, what: str, use: str, opener: str) -> None:
    found = LocalFiles.of(place.opts).fetch("a/b/file.sls")
    assert found is not None
    _exchange(place, what)
    with pytest.raises((LeadsOutside, OSError)):
        getattr(found, use)()


class _Exchanging(FileServer):
    """A file server in whose tree a link takes the place of a file just after it was found."""

    def __init__(self, place: Place, what: str) -> None:
        super().__init__({"roots": LocalFiles.of(place.opts)})
        self._place, self._what = place, what

    def fetch(self, path: str, saltenv: str = "base") -> Path | None:
        found = super().fetch(path, saltenv)
        _exchange(self._place, self._what)
        return found


@pytest.mark.parametrize("what", [name for name in EXCHANGED if name != "the root"])
def test_a_chunk_is_of_the_file_that_was_found(place: Place, what: str, opener: str) -> None:
    load = {"path": "a/b/file.sls", "saltenv": "base", "loc": 0}
    answer = served.serve(_context(_Exchanging(place, what)), "web1", load)
    assert _shows(place, answer) == []
    assert answer == {"data": "", "dest": ""} or not answer["dest"]


def test_functions_of_os_do_not_take_a_path_of_a_tree(place: Place) -> None:
    found = LocalFiles.of(place.opts).fetch("a/b/file.sls")
    assert found is not None
    with pytest.raises(TypeError, match="use its methods"):
        os.open(found, os.O_RDONLY)
    with pytest.raises(ValueError, match="only read"):
        found.open("w")


def _renamed(first: str, second: str) -> None:
    """Exchange two names in one step (renameat2 with RENAME_EXCHANGE)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, first.encode(), -100, second.encode(), 2) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


@contextmanager
def _exchanged_all_the_time(first: Path, second: Path) -> Iterator[None]:
    """Exchange two names without a pause while the block runs."""
    try:
        _renamed(str(first), str(second))
        _renamed(str(first), str(second))
    except OSError:
        pytest.skip("this file system cannot exchange two names")
    stop = threading.Event()

    def exchange() -> None:
        while not stop.is_set():
            _renamed(str(first), str(second))

    thread = threading.Thread(target=exchange, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)


#: Number of requests while two names are exchanged. The attack got in with one of 300.
_FETCHES = 1500


@pytest.mark.parametrize("component", ["file", "directory"])
@pytest.mark.parametrize("reader", ["_serve_file", "_file_hash", "_file_hash_and_stat", "a masterless minion"])
def test_none_of_thousands_of_requests_gets_a_file_of_the_master(
    place: Place, reader: str, component: str, opener: str
) -> None:
    own = place.tree / ("a/b/file.sls" if component == "file" else "a")
    other = place.tree / "other"
    (place.secret.parent / "b").mkdir()
    (place.secret.parent / "b/file.sls").write_text(SECRET + "\n")
    other.symlink_to(place.secret if component == "file" else place.secret.parent)
    files = _server(place)
    context = _context(files)
    commands = {
        "_serve_file": served.serve,
        "_file_hash": served.file_hash,
        "_file_hash_and_stat": served.file_hash_and_stat,
    }
    load = {"path": "a/b/file.sls", "saltenv": "base", "loc": 0}
    leaked = answered = 0

    def once() -> object:
        if reader in commands:
            return commands[reader](context, "web1", load)
        found = files.fetch("a/b/file.sls")
        if found is None:
            return None
        try:
            return found.read_bytes()
        except OSError:
            return None

    with _exchanged_all_the_time(own, other):
        for _ in range(_FETCHES):
            answer = once()
            leaked += bool(_shows(place, answer)) or bool(
                hashlib.sha256(f"{SECRET}\n".encode()).hexdigest() in repr(answer)
            )
            answered += bool(answer)
    assert leaked == 0
    assert answered > 0


@pytest.mark.parametrize("lists", ["paths", "dirs", "empty_dirs"])
def test_no_list_shows_names_from_outside(place: Place, lists: str, opener: str) -> None:
    (place.tree / "other").symlink_to(place.secret.parent)
    with _exchanged_all_the_time(place.tree / "a", place.tree / "other"):
        for _ in range(_FETCHES // 10):
            found = getattr(LocalFiles.of(place.opts), lists)()
            assert [name for name in found if "secret" in name or "empty" in name] == []


# -------------------------------------------------------------------------------------------------- names of saltenvs

#: (directory of the option, name of the saltenv, what lies there).
ENVS: dict[str, tuple[str, str, Callable[[Place], None]]] = {
    "a link out": ("TREE/__env__", "x", _link("x", "../outside")),
    "an absolute link out": ("TREE/__env__", "x", _link("x", "OUT")),
    "a link to a link": ("TREE/__env__", "x", _links(("x", "y"), ("y", "../outside"))),
    "a link to the directory above": ("TREE/__env__/outside", "x", _link("x", "..")),
    "a link in a part of the name": ("TREE/env-__env__", "x", _link("env-x", "../outside")),
    "a link below the name": ("TREE/__env__/salt", "x", _link("x/salt", "../../outside")),
    "the root of this process": ("TREE/__env__OUT", "x", _link("x", "/proc/self/root")),
    "the parent": ("TREE/__env__", "..", _nothing),
    "the parent of a part": ("TREE/a/__env__", "../../outside", _nothing),
    "an absolute name": ("TREE/__env__", "OUT", _nothing),
    "an empty name": ("TREE/a/../../outside/__env__", "", _nothing),
    "a null byte": ("TREE/__env__", "x\0", _link("x", "../outside")),
    "the placeholder twice": ("TREE/__env__/__env__", "x", _link("x/x", "../../outside")),
}


@pytest.mark.parametrize("reader", ["fetch", "hash", "stat", "paths", "dirs", "empty_dirs", "pillar"])
@pytest.mark.parametrize("way", ENVS)
def test_the_name_of_a_saltenv_leads_nowhere(place: Place, way: str, reader: str, opener: str) -> None:
    directory, env, build = ENVS[way]
    build(place)
    names = {"TREE": str(place.tree), "OUT": str(place.secret.parent)}
    for word, text in names.items():
        directory, env = directory.replace(word, text), env.replace(word, text)
    opts = {"file_roots": {"__env__": [directory]}, "pillar_roots": {"__env__": [directory]}}
    opts["fileserver_followsymlinks"] = False  # type: ignore[assignment]
    files = PillarFiles(opts, pillarenv=env) if reader == "pillar" else LocalFiles.of(opts)
    verb = "fetch" if reader == "pillar" else reader
    answer = getattr(files, verb)("secret.sls", env) if verb in ("fetch", "hash", "stat") else getattr(files, verb)(env)
    assert answer is None or answer == []


@pytest.mark.ordinary
def test_the_name_of_a_saltenv_is_a_directory(place: Place, opener: str) -> None:
    (place.tree / "link").symlink_to("a")
    for directory, env in (("__env__", "a"), ("a/__env__/.", "b"), ("__env__/b", "a")):
        for follow in (True, False):
            opts = {"file_roots": {"__env__": [f"{place.tree}/{directory}"]}, "fileserver_followsymlinks": follow}
            files = LocalFiles.of(opts)
            path = "b/file.sls" if directory == "__env__" else "file.sls"
            assert files.paths(env) == [path]
            found = files.fetch(path, env)
            assert found is not None
            assert found.read_text() == "own: data\n"
    # Followed links are Salt's default.
    files = LocalFiles.of({"file_roots": {"__env__": [f"{place.tree}/__env__"]}})
    assert files.paths("link") == ["b/file.sls"]


def test_names_of_saltenvs_fill_no_memory(place: Place) -> None:
    files = LocalFiles.of({"file_roots": {"__env__": [f"{place.tree}/__env__"]}})
    pushed = MinionFiles(place.tree)
    for number in range(200):
        files.paths(f"unknown{number}")
        pushed.fetch(f"unknown{number}/x")
    assert not files._listings
    assert not pushed._minions


# ---------------------------------------------------------------------------- what is followed stays as it is under Salt


@pytest.mark.ordinary
def test_followed_links_lead_outside_as_under_salt(place: Place, opener: str) -> None:
    (place.tree / "x").symlink_to("../outside")
    (place.tree / "y.sls").symlink_to(place.secret)
    files = LocalFiles.of({**place.opts, "fileserver_followsymlinks": True})
    for path in ("x/secret.sls", "y.sls"):
        found = files.fetch(path)
        assert found is not None
        assert found.read_text().strip() == SECRET
        assert path in files.paths()


@pytest.mark.ordinary
@pytest.mark.parametrize("target", ["a/b/file.sls", "./a/../a/b/file.sls", "TREE/a/b/file.sls"])
def test_links_inside_of_a_tree_are_followed(place: Place, target: str, opener: str) -> None:
    _link("x.sls", target)(place)
    files = LocalFiles.of(place.opts)
    found = files.fetch("x.sls")
    assert found is not None
    assert found.read_text() == "own: data\n"
    assert "x.sls" in files.paths()


@pytest.mark.ordinary
@pytest.mark.parametrize("follow", [True, False], ids=["followed", "not followed"])
def test_the_configured_directory_may_be_a_link(place: Place, follow: bool, opener: str) -> None:
    current = place.tree.with_name("current")
    current.symlink_to("tree")
    (place.tree / "x.sls").symlink_to(place.tree / "a/b/file.sls")
    files = LocalFiles({"base": [current]}, follow_links=follow)
    for path in ("a/b/file.sls", "x.sls"):
        found = files.fetch(path)
        assert found is not None
        assert found.read_text() == "own: data\n"
        assert path in files.paths()


@pytest.mark.ordinary
@pytest.mark.parametrize("follow", [True, False], ids=["followed", "not followed"])
def test_the_configured_directory_may_be_behind_a_magic_link(place: Place, follow: bool, opener: str) -> None:
    # A minion that shares the host's processes reaches the host's files so.
    files = LocalFiles({"base": [f"/proc/self/root{place.tree}"]}, follow_links=follow)
    found = files.fetch("a/b/file.sls")
    assert found is not None
    assert found.read_text() == "own: data\n"
    assert "a/b/file.sls" in files.paths()


@pytest.mark.parametrize("link", ["/proc/self/root", "/proc/self/cwd", "/proc/self/exe", "/proc/self/fd/0"])
def test_magic_links_are_not_followed_even_if_links_are(place: Place, link: str) -> None:
    (place.tree / "x").symlink_to(link)
    files = LocalFiles.of({**place.opts, "fileserver_followsymlinks": True})
    for path in ("x", f"x{place.secret}"):
        found = files.fetch(path)
        assert found is None
    assert "x" not in files.paths()


# ------------------------------------------------------------------------------------- directories that the master fills

#: Links and files below the directory of minions; {} stands for the directory outside.
PUSHED: dict[str, str] = {
    "the minion's directory is a link": "web1",
    "its directory of files is a link": "web1/files",
    "a directory is a link": "web1/files/etc",
    "a deeper directory is a link": "web1/files/etc/deep",
    "the file is a link": "web1/files/etc/deep/x",
}


@pytest.mark.parametrize("loc", [0, 1])
@pytest.mark.parametrize("absolute", [True, False], ids=["absolute", "relative"])
@pytest.mark.parametrize("way", PUSHED)
def test_a_pushed_file_follows_no_link_outside(tmp_path: Path, way: str, absolute: bool, loc: int, opener: str) -> None:
    outside = tmp_path / "outside"
    for name in ("x", "deep/x", "etc/deep/x", "files/etc/deep/x"):
        (outside / name).parent.mkdir(parents=True, exist_ok=True)
        (outside / name).write_text("own")
    link = tmp_path / "minions" / PUSHED[way]
    link.parent.mkdir(parents=True)
    inner = {"web1": "", "web1/files": "files", "web1/files/etc": "files/etc", "web1/files/etc/deep": "files/etc/deep"}
    target = outside / inner.get(PUSHED[way], "files/etc/deep/x")
    link.symlink_to(target if absolute else os.path.relpath(target, link.parent))
    with pytest.raises((FileRefused, OSError)):
        store(TreeRoot(str(tmp_path / "minions"), "web1/files"), ["etc", "deep", "x"], b"forged", loc)
    assert {path.read_text() for path in outside.rglob("*") if path.is_file()} == {"own"}
    assert MinionFiles(tmp_path / "minions").fetch("web1/etc/deep/x") is None
    assert MinionFiles(tmp_path / "minions").paths() == []


@pytest.mark.parametrize("loc", [0, 3])
def test_a_pushed_file_waits_for_no_fifo(tmp_path: Path, loc: int, opener: str) -> None:
    (tmp_path / "web1/files").mkdir(parents=True)
    os.mkfifo(tmp_path / "web1/files/x")
    with pytest.raises(FileRefused):
        store(TreeRoot(str(tmp_path), "web1/files"), ["x"], b"forged", loc)


def test_no_pushed_file_leaves_while_a_directory_is_exchanged(tmp_path: Path, opener: str) -> None:
    root = TreeRoot(str(tmp_path), "web1/files")
    store(root, ["etc", "x"], b"own", 0)
    (tmp_path / "outside").mkdir()
    (tmp_path / "web1/files/other").symlink_to(tmp_path / "outside")
    with _exchanged_all_the_time(tmp_path / "web1/files/etc", tmp_path / "web1/files/other"):
        for _ in range(_FETCHES // 3):
            with suppress(FileRefused, OSError):
                store(root, ["etc", "x"], b"forged", 0)
    assert list((tmp_path / "outside").iterdir()) == []


class _Listing(LocalFiles):
    """A tree that lists names of its own choice, as a user's file server backend may, and has content for each."""

    def __init__(self, place: Path, names: list[str]) -> None:
        super().__init__({})
        self._place, self._names = place, names

    def paths(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        return [f"{prefix}{name}" for name in self._names]

    def fetch(self, path: str, saltenv: str = "base") -> Path:
        return self._place


@pytest.mark.parametrize(
    "name", ["../outside/x.py", "../x.py", "a/../../x.py", "link/x.py", "link/new/x.py", "/x.py", "deep/../../../x.py"]
)
def test_synchronised_modules_stay_in_their_directory(tmp_path: Path, name: str) -> None:
    source = tmp_path / "source"
    source.write_text("forged")
    (tmp_path / "outside").mkdir()
    (tmp_path / "ext/modules").mkdir(parents=True)
    (tmp_path / "ext/modules/link").symlink_to(tmp_path / "outside")
    with suppress(CommandError):
        extension_modules.sync(_Listing(source, [name]), tmp_path / "ext", "modules", ["base"], {})
    assert list((tmp_path / "outside").iterdir()) == []
    assert not [path for path in tmp_path.rglob("x.py") if tmp_path / "ext/modules" not in path.parents]


@pytest.mark.parametrize("name", ["..", "../x", "a/../../x", "./x", ".", "a//x", ""])
@pytest.mark.parametrize("kind", ["blob", "tree"])
def test_a_commit_has_no_names_that_lead_outside(name: str, kind: str) -> None:
    line = f"100644 {kind} {'0' * 40}\t{name}\0".encode()
    good = f"100644 {kind} {'0' * 40}\tgood\0".encode()
    files, dirs = read_tree(line + good)
    assert {*files, *dirs} == {"good"}


def test_a_link_of_a_tree_reads_no_file_as_root_of_a_wheel_function(place: Place) -> None:
    answers: Mapping[str, object] = {
        name: roots.FUNCTIONS[name]({"base": [str(place.tree)]}, path)
        for name in ("find", "read")
        for path in ("a/b/../../../outside/secret.sls",)
    }
    assert not any(answers.values())


# ------------------------------------------------------------------------------------------------- the class, as a check

#: Modules that read or write trees of others. They have no opener but ``beneath``, ``rooted_path`` and ``tree_roots``.
_TREE_MODULES = (
    *("libs/statecore/sources/local_tree.py", "libs/statecore/sources/extension_modules.py"),
    *("libs/statecore/sources/fileserver/minionfs.py", "libs/statecore/sources/tree_roots.py"),
    *("libs/statecore/pillar/sls.py", "libs/statecore/render/tree.py"),
    *(f"services/saltern/mworker/commands/{name}.py" for name in ("files", "roots", "received_files")),
)

#: Calls that open or look at a path by its name.
_BY_NAME = {
    "open",
    *(
        f"os.{name}"
        for name in ("open", "stat", "lstat", "walk", "listdir", "scandir", "readlink", "mkdir", "makedirs")
    ),
    *(f"os.path.{name}" for name in ("exists", "isfile", "isdir", "islink", "realpath", "getsize", "getmtime")),
    *(f"shutil.{name}" for name in ("copy", "copyfile", "copytree", "rmtree", "move")),
}

#: (module, text of the call) -> why it does not open a file of a tree by name.
_NOT_A_TREE: Mapping[tuple[str, str], str] = {
    ("local_tree.py", "os.stat(path)"): "stamps of a listing decide only if the listing is made again",
    ("local_tree.py", "os.path.realpath(self._path)"): "says which links are shown where links are followed",
    ("local_tree.py", "os.path.realpath(path)"): "says which links are shown where links are followed",
    ("local_tree.py", "os.scandir(descriptor)"): "a descriptor",
    ("received_files.py", "os.scandir(descriptor)"): "a descriptor",
    ("tree_roots.py", "open(descriptor, mode, buffering, encoding and io.text_encoding(encoding), errors, newline)"): (
        "a descriptor"
    ),
    ("tree_roots.py", "os.open(self.top, beneath.DIRECTORY)"): "the directory that the operator configured",
    ("tree_roots.py", "os.path.realpath(own)"): "the operator's own name of the root, for links that name it",
}


def test_trees_have_one_opener() -> None:
    root = Path(__file__).parents[2]
    found = {
        (Path(module).name, ast.unparse(node))
        for module in _TREE_MODULES
        for node in ast.walk(ast.parse((root / module).read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _BY_NAME
    }
    assert found == set(_NOT_A_TREE)


@pytest.mark.ordinary
@pytest.mark.parametrize("links", [Links.REFUSED, Links.BENEATH])
def test_a_wheel_function_writes_inside(place: Place, links: Links) -> None:
    if links is Links.BENEATH:
        (place.tree / "current").symlink_to("a")
    path = "a/new/x.sls" if links is Links.REFUSED else "current/new/x.sls"
    assert roots.write({"base": [str(place.tree)]}, "new", path).startswith("Wrote data")
    assert (place.tree / "a/new/x.sls").read_text() == "new"
    assert roots.read({"base": [str(place.tree)]}, path) == [{str(place.tree / path): "new"}]
