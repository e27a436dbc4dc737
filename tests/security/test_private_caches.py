"""Finding 38.11: an ordinary user of a managed host, or of the master's host, reads caches, spools, backups and records.

A state may write a secret with mode 0600; its source lies in the cache. Each writer is run with the umasks that daemons
have, and everything that it leaves is looked at. ``test_private_minions.py`` has a whole fleet.
"""

from __future__ import annotations

import ast
import http.server
import json
import logging
import os
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from saltern.kit.config.master import MasterOptions
from saltern.kit.config.minion_options import MinionOptions
from saltern.kit.process import logs
from saltern.kit.process.own_directories import make_private
from saltern.kit.trees.updates import roots_changes
from saltern.minion.duties.leadership import Leadership
from saltern.minion.ipc.control import ControlSocket
from saltern.minion.jobs.journal import Journal
from saltern.minion.jobs.spool import Spool
from saltern.minion.master.identity import Identity
from saltern.minion.master.master_ports import RemoteFiles, request_refresh
from saltern.mworker.commands import received_files
from statecore.host.content import backups, data_files, private_files
from statecore.loader.compat.cache import Cache
from statecore.runtime.state_runs.running_jobs import ProcDirectory
from statecore.sources import downloads
from statecore.sources.gitrepos import git
from statecore.system.minion_bus import Subscription

ROOT = Path(__file__).resolve().parents[2]

#: Umasks of daemons: none, a private group's, the usual one.
UMASKS = (0o000, 0o002, 0o022)

JID = "20260101000000000001"

SECRET = b"password of a database\n"


def readable_by_others(top: Path) -> dict[str, str]:
    """Return {path: mode} of everything below a directory, and of the directory, that others than the owner may use.

    Python makes ``__pycache__`` itself, in a directory that is closed.
    """
    found = {path: path.lstat() for path in (top, *top.rglob("*")) if path.name != "__pycache__"}
    return {
        str(path.relative_to(top)): oct(status.st_mode)
        for path, status in found.items()
        if not stat.S_ISLNK(status.st_mode) and status.st_mode & 0o077
    }


@pytest.fixture(params=UMASKS, ids=lambda mask: f"umask {mask:03o}")
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def top(tmp_path: Path, umask: int) -> Path:
    """The cache directory, which does not exist yet."""
    return tmp_path / "cache"


class _Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("ETag", '"1"')
        self.send_header("Set-Cookie", "session=secret; Max-Age=3600")
        self.send_header("Content-Length", str(len(SECRET)))
        self.end_headers()
        self.wfile.write(SECRET)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Files(RemoteFiles):
    """The files of a master that answers without a connection."""

    def __init__(self, top: Path) -> None:
        options = MinionOptions(id="web1", cachedir=str(top))
        super().__init__(options, None, lambda: None)  # type: ignore[arg-type]

    def ask(self, load: Mapping[str, object], *, raw: bool = False, once: bool = False) -> object:
        if load["cmd"] == "_file_hash":
            return {"hash_type": "md5", "hsum": "8f6a3cd4a9a2cd3fe9c4ee4f5b2f1cd2"}
        return {"data": b"" if load["loc"] else SECRET, "dest": "secret"}


def _salt_files(top: Path) -> None:
    # The digest never fits: the file stays after the last attempt.
    with pytest.raises(Exception, match="changes on the master"):
        _Files(top).fetch("deep/in/the/tree/secret")


def _journal(top: Path) -> None:
    journal = Journal(top, 10)
    journal.receive({"jid": JID, "fun": "cmd.run", "arg": [SECRET.decode()]})
    journal.keep_asked_until(5)
    journal._seen.add(JID)


def _proc(top: Path) -> None:
    with ProcDirectory(top / "proc").record({"jid": JID, "fun": "cmd.run"}):
        assert readable_by_others(top) == {}


def _received(top: Path) -> None:
    private_files.top(top)
    directory = received_files.directory_of(str(top), "web1")
    received_files.store(directory, ["etc", "shadow"], SECRET, 0, 1 << 20)


def _backup(top: Path) -> None:
    source = top.parent / "open"
    source.write_bytes(SECRET)
    source.chmod(0o644)
    backups.back_up(source, top / "file_backup")


def _log(top: Path) -> None:
    top.mkdir(mode=0o700)
    handler = logs._file_handler(MinionOptions(log_file=str(top / "minion")))
    handler.emit(logging.makeLogRecord({"msg": "started"}))
    handler.close()


def _rotated_log(top: Path) -> None:
    top.mkdir(mode=0o700)
    options = MinionOptions(log_file=str(top / "minion"), log_rotate_max_bytes=10, log_rotate_backup_count=2)
    handler = logs._file_handler(options)
    for _ in range(3):
        handler.emit(logging.makeLogRecord({"msg": "a line that is longer"}))
    handler.close()
    assert len(list(top.iterdir())) == 3


def _control(top: Path) -> None:
    ControlSocket(top).close()


def _leader(top: Path) -> None:
    leadership = Leadership(MinionOptions(id="m", cachedir=str(top), schedule_file=str(top / "s")), shared=True)
    leadership.claim()
    leadership.close()


def _roots(top: Path) -> None:
    tree = top.parent / "srv"
    tree.mkdir()
    (tree / "a.sls").write_text("a")
    roots_changes(MasterOptions(cachedir=str(top), file_roots={"base": [str(tree)]}))


def _askpass(top: Path) -> None:
    git._askpass(top / "gitfs")


def _git(top: Path) -> None:
    private_files.directory(top)
    git.run_git(["init", "-q", str(top / "mirror")], dict(os.environ))


#: Writer of ours -> call that lets it write below a directory.
WRITERS: Mapping[str, Callable[[Path], object]] = {
    "files of the master": _salt_files,
    "spool": lambda top: Spool(top / "spool").put({"jid": JID, "return": SECRET.decode()}),
    "journal": _journal,
    "running jobs": _proc,
    "refresh requests": lambda top: request_refresh([top / "state"], "pillar"),
    "stored data": lambda top: data_files.store(top / "minion_jobs" / JID / "return.p", {"a": 1}),
    "backups": _backup,
    "received files": _received,
    "key pair": lambda top: Identity.load("web1", top, 2048).trust("key"),
    "log file": _log,
    "rotated log files": _rotated_log,
    "control socket": _control,
    "leader's lock": _leader,
    "tree's times": _roots,
    "git's helper": _askpass,
    "git's mirror": _git,
    "bank of users' modules": lambda top: Cache({"cachedir": str(top)}).store("bank/deep", "key", {"a": 1}),
    "subscription": lambda top: Subscription(top / "bus").close(),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_others_read_nothing_of_a_writer(writer: str, top: Path) -> None:
    WRITERS[writer](top)
    assert top.is_dir()
    assert readable_by_others(top) == {}


def test_others_read_no_download(top: Path, site: str) -> None:
    place = downloads.cached_at(f"{site}/a/secret", top, "base")
    downloads.fetch(f"{site}/a/secret", place, use_etag=True)
    assert place.read_bytes() == SECRET
    assert readable_by_others(top) == {}


STATES = """\
salt source:
  file.managed:
    - name: {out}/from-tree
    - source: salt://secret
    - backup: minion
    - mode: '0604'
http source:
  file.managed:
    - name: {out}/from-site
    - source: {site}/secret
    - skip_verify: true
kept:
  file.cached:
    - name: {site}/kept
    - skip_verify: true
script:
  cmd.script:
    - source: salt://script.sh
archive:
  archive.extracted:
    - name: {out}/archive
    - source: {site_zip}
    - skip_verify: true
    - enforce_toplevel: false
made by a command:
  cmd.run:
    - name: touch {out}/of-command
own module:
  module.run:
    - own.made: []
"""


@pytest.fixture(scope="module", params=UMASKS, ids=lambda mask: f"umask {mask:03o}")
def ran(request: pytest.FixtureRequest, site: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a host after a whole run without a master."""
    base = tmp_path_factory.mktemp("host")
    tree, out = base / "tree", base / "out"
    for path in (tree / "_modules", out, base / "etc"):
        path.mkdir(parents=True)
    (tree / "secret").write_bytes(SECRET)
    (tree / "_modules" / "own.py").write_text("def made():\n    return 'made'\n")
    (tree / "script.sh").write_text(f"#!/bin/sh\nstat -c %a $0 >{out}/mode-of-script\n")
    with zipfile.ZipFile(base / "a.zip", "w") as archive:
        archive.writestr("inside", SECRET)
    (out / "from-tree").write_text("before")
    (tree / "all.sls").write_text(STATES.format(out=out, site=site, site_zip=base / "a.zip"))
    (base / "etc" / "minion").write_text(
        json.dumps(
            {
                "id": "web1",
                "file_client": "local",
                "root_dir": str(base),
                "cachedir": str(base / "var" / "cache" / "minion"),
                "pki_dir": str(base / "etc" / "pki"),
                "log_file": str(base / "var" / "log" / "minion"),
                "log_level_logfile": "info",
                "file_roots": {"base": [str(tree)]},
                "cache_jobs": True,
            }
        )
    )

    def call(*words: str) -> str:
        before = os.umask(request.param)
        try:
            done = subprocess.run(
                [
                    Path(sys.executable).with_name("salt-call"),
                    "-c",
                    str(base / "etc"),
                    "--local",
                    "--out",
                    "json",
                    *words,
                ],
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        finally:
            os.umask(before)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    call("saltutil.sync_all")
    call("cp.cache_local_file", str(tree / "secret"))
    call("state.apply", "all")
    call("http.query", f"{site}/x", "cookies=True", "persist_session=True")
    call("--return", "local_cache", "test.ping")
    call("mount.write_mount_cache", "/mnt", "/dev/x", "True", "True", "none")
    return base


#: What a run leaves in the cache.
LEFT = (
    "localfiles/**/secret",
    "extrn_files/**/secret",
    "extrn_files/**/kept",
    "file_backup/**/from-tree_*",
    "extmods/modules/own.py",
)


@pytest.mark.parametrize("pattern", LEFT)
def test_others_read_no_copy_of_a_run(pattern: str, ran: Path) -> None:
    cache = ran / "var" / "cache" / "minion"
    found = list(cache.glob(pattern))
    assert found, readable_by_others(cache)
    for path in found:
        assert path.stat().st_mode & 0o777 == 0o600
        for above in path.relative_to(cache).parents:
            assert (cache / above).stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("place", ["var/cache/minion", "var/log/minion"])
def test_others_read_nothing_after_a_run(place: str, ran: Path) -> None:
    path = ran / place
    assert (readable_by_others(path) if path.is_dir() else path.stat().st_mode & 0o077) in ({}, 0)


def test_a_script_of_a_run_is_for_its_user(ran: Path) -> None:
    assert (ran / "out" / "mode-of-script").read_text() == "700\n"


@pytest.mark.ordinary
def test_what_states_and_commands_make_follows_the_umask(ran: Path) -> None:
    mask = 0o777 & ~(ran / "out" / "of-command").stat().st_mode | 0o111
    assert mask & 0o666 in UMASKS
    assert (ran / "out" / "from-site").stat().st_mode & 0o777 == 0o666 & ~mask
    assert (ran / "out" / "from-tree").stat().st_mode & 0o777 == 0o604


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A cache as an earlier version left it."""
    cache = tmp_path / "old"
    for name in ("files/base/deep/secret", "file_backup/etc/shadow", "spool/a.p", "minion"):
        path = cache / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(SECRET)
        path.chmod(0o644)
    for path in (cache, *cache.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    return cache


def _options(cache: Path) -> MinionOptions:
    return MinionOptions(id="web1", cachedir=str(cache), log_file="")


def test_an_upgrade_closes_an_old_cache(old: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_private(_options(old), str(old), logging.getLogger("test"))
    assert readable_by_others(old) == {".": "0o40750"}
    assert "11 files and directories of an earlier version" in caplog.text


@pytest.mark.parametrize("name", ["minion.pem", "minion_master.pub", "sub/key"])
def test_an_upgrade_closes_an_old_directory_of_keys(name: str, old: Path) -> None:
    pki = old.parent / "pki"
    (pki / name).parent.mkdir(parents=True)
    (pki / name).write_bytes(SECRET)
    for path in (pki, *pki.rglob("*")):
        path.chmod(0o755)
    make_private(_options(old), str(old), logging.getLogger("test"), (str(pki),))
    assert not [path for path in pki.rglob("*") if path.stat().st_mode & 0o007]


@pytest.mark.parametrize("bits", [0o666, 0o644, 0o640, 0o604])
def test_an_upgrade_closes_an_old_log(bits: int, old: Path) -> None:
    log = old.parent / "log"
    log.write_text("secret")
    log.chmod(bits)
    options = MinionOptions(id="web1", cachedir=str(old), log_file=str(log))
    make_private(options, str(old), logging.getLogger("test"))
    # An administrator's group keeps its right.
    assert log.stat().st_mode & 0o777 == bits & 0o660


def _hard_link(victim: Path, place: Path) -> None:
    place.hardlink_to(victim)


def _link(victim: Path, place: Path) -> None:
    place.symlink_to(victim)


def _linked_directory(victim: Path, place: Path) -> None:
    place.symlink_to(victim.parent)


@pytest.mark.parametrize("plant", [_hard_link, _link, _linked_directory])
@pytest.mark.parametrize("folder", [".", "files/base", "spool"])
def test_an_upgrade_changes_nothing_outside(folder: str, plant: Callable[[Path, Path], None], old: Path) -> None:
    victim = old.parent / "outside" / "passwd"
    victim.parent.mkdir(mode=0o755)
    victim.write_text("root:x:0:0")
    victim.chmod(0o644)
    plant(victim, old / folder / "planted")
    private_files.close(old)
    assert victim.stat().st_mode & 0o777 == 0o644
    assert victim.parent.stat().st_mode & 0o777 == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")
def test_an_upgrade_leaves_files_of_other_users(old: Path) -> None:
    path = old / "files" / "base" / "deep" / "secret"
    os.chown(path, 54321, 54321)
    private_files.close(old)
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.ordinary
def test_a_closed_cache_is_walked_once(old: Path) -> None:
    make_private(_options(old), str(old), logging.getLogger("test"))
    late = old / "of-a-user's-module"
    late.write_text("")
    late.chmod(0o644)
    make_private(_options(old), str(old), logging.getLogger("test"))
    assert late.stat().st_mode & 0o777 == 0o644


@pytest.mark.ordinary
def test_directories_above_the_cache_are_for_all(tmp_path: Path) -> None:
    """A master that runs as another user has its cache beside the minion's."""
    private_files.top(tmp_path / "var" / "cache" / "salt" / "minion")
    assert (tmp_path / "var" / "cache" / "salt").stat().st_mode & 0o055 == 0o055
    assert (tmp_path / "var" / "cache" / "salt" / "minion").stat().st_mode & 0o777 == 0o700


#: Module -> why it gives modes of a private file or directory itself, and not through ``private_files``.
_OWN_MODES = {
    "libs/statecore/host/content/private_files.py": "the maker",
    "libs/statecore/host/content/guarded_tree.py": "files in another user's directory",
    "libs/statecore/host/content/managed_file.py": "the new content of a file of the host, until it has its mode",
    "libs/statecore/host/beneath.py": "the default of the opener",
    "libs/statecore/loader/compat/utils/atomicfile.py": "Salt's function for users' modules",
    "libs/statecore/loader/compat/utils/files.py": "Salt's function for users' modules",
    "libs/statecore/builtin/modules/file/devices.py": "a fifo or device that a state makes",
    "services/saltern/cli/key_files.py": "a key of mode 0400, as Salt's",
}

_PRIVATE = frozenset({0o600, 0o700, 0o400})

#: Calls that give a mode to what they make.
_MAKERS = frozenset({"open", "mkdir", "makedirs", "touch", "write", "writer", "create", "fchmod", "make_directories"})


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for folder in ("libs", "services"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if ".venv" not in path.parts:
                yield str(path.relative_to(ROOT)), ast.parse(path.read_text("utf-8"))


@pytest.mark.ordinary
def test_private_files_have_one_maker() -> None:
    found = {
        f"{name}:{node.lineno}"
        for name, module in _modules()
        if name not in _OWN_MODES
        for node in ast.walk(module)
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) in _MAKERS
        and any(
            isinstance(word, ast.Constant) and type(word.value) is int and word.value in _PRIVATE
            for word in (*node.args, *(each.value for each in node.keywords))
        )
    }
    assert found == set()


#: Modules that keep something in a cache, spool, journal or log.
_KEEPERS = (
    "libs/statecore/host/content/backups.py",
    "libs/statecore/host/content/data_files.py",
    "libs/statecore/loader/compat/cache.py",
    "libs/statecore/runtime/state_runs/running_jobs.py",
    "libs/statecore/runtime/state_runs/state_queue.py",
    "libs/statecore/sources/downloads.py",
    "libs/statecore/sources/extension_modules.py",
    "libs/statecore/sources/fileserver/users.py",
    "libs/statecore/sources/gitrepos/git.py",
    "libs/statecore/sources/gitrepos/mirror.py",
    "libs/statecore/builtin/returners/local_cache.py",
    "services/saltern/kit/trees/updates.py",
    "services/saltern/minion/jobs/journal.py",
    "services/saltern/minion/jobs/spool.py",
    "services/saltern/minion/master/away_flag.py",
    "services/saltern/minion/master/identity.py",
    "services/saltern/minion/master/master_ports.py",
)


@pytest.mark.ordinary
@pytest.mark.parametrize("name", _KEEPERS)
def test_keepers_write_through_the_maker_alone(name: str) -> None:
    """No function that makes a file or directory by the umask."""
    module = ast.parse((ROOT / name).read_text("utf-8"))
    by_umask = {"mkdir", "makedirs", "write_text", "write_bytes"}
    calls = [node.func for node in ast.walk(module) if isinstance(node, ast.Call)]
    assert [call.attr for call in calls if isinstance(call, ast.Attribute) and call.attr in by_umask] == []
    assert "atomic_file" not in {
        alias.name for node in ast.walk(module) if isinstance(node, ast.ImportFrom) for alias in node.names
    }


@pytest.mark.ordinary
def test_nobody_sets_the_umask_for_files() -> None:
    """A umask is the whole process's: what another thread makes at that moment would get it."""
    setters = {
        name
        for name, module in _modules()
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "umask"
    }
    assert setters == {
        # A state's own option `umask`.
        "libs/statecore/engine/call.py",
        # The child of a command.
        "libs/statecore/host/host.py",
        # Asks for the umask.
        "libs/statecore/host/content/managed_file.py",
        # Salt's functions for users' modules.
        "libs/statecore/loader/compat/utils/files.py",
        "libs/statecore/loader/compat/utils/user.py",
        # A process in the background, and Redis, begin with their own.
        "services/saltern/kit/process/daemon.py",
        "services/saltern/master/own_redis.py",
        # The mode of a socket follows from the umask alone.
        "services/saltern/minion/ipc/control.py",
    }
