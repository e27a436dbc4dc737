"""Finding 38.12: the roles' user plants links, hard links and fifos in the directory of keys, and root makes keys there.

``salt-master --make-keys`` runs as root before each start, ``saltern keygen`` and ``saltern rotate`` when an operator types
them. The directory belongs to the roles' user. Root must not read, write or give away what the user's file names.
"""

from __future__ import annotations

import ast
import contextlib
import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from saltern.kit.config.master import ConfigError, MasterOptions
from saltern.kit.keys import keygen, secrets
from saltern.kit.process import run_as
from saltern.master import own_keys
from saltern.rotate.key_files import KeyFiles, RotationError
from saltern.rotate.link_keys import rotate_link_key

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")

ROOT = Path(__file__).resolve().parents[2]

#: The roles' user, by number: no account is needed.
ROLES = 54321

#: What only root reads.
SECRET = b"root:$y$j9T$secret-of-root-alone-0:19000:0:99999:7:::\n"

#: Seconds after which a call that waits for a fifo has failed.
_DEADLINE = 10


class Hangs(Exception):
    """Raised when a call waits for a planted file."""


@pytest.fixture(autouse=True)
def deadline() -> Iterator[None]:
    def late(signum: int, frame: FrameType | None) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(_DEADLINE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """All keys, the roles' user's."""
    directory = tmp_path / "keys"
    keygen.make_keys(directory)
    keygen.make_redis_tls(directory, ["redis"])
    keygen.make_redis_login(directory, "redis")
    for path in (directory, *directory.rglob("*")):
        os.chown(path, ROLES, ROLES)
    return directory


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file of root in a directory of root."""
    path = tmp_path / "etc" / "shadow"
    path.parent.mkdir()
    path.write_bytes(SECRET)
    path.chmod(0o600)
    return path


def _link(place: Path, victim: Path) -> None:
    place.symlink_to(victim)


def _hard_link(place: Path, victim: Path) -> None:
    place.hardlink_to(victim)


def _fifo(place: Path, victim: Path) -> None:
    os.mkfifo(place)


def _dangling(place: Path, victim: Path) -> None:
    place.symlink_to(victim.with_name("cron.d"))


PLANTS = {"link": _link, "hard link": _hard_link, "fifo": _fifo, "dangling link": _dangling}

#: Files that root reads, or copies to other roles, when it makes missing keys.
FILES = (
    "mworker/events.key",
    "reactor/events.key.old",
    "publisher/master.secret",
    "publisher/master.pem",
    "cli/curve.secret",
    "reqserver/known/cli.pub",
    "redis/url",
    "redis/users.acl",
    "redis/tls/authority.key",
)


def _make(keys: Path) -> None:
    keygen.make_keys(keys, owner=(ROLES, ROLES))
    keygen.make_redis_tls(keys, ["redis"], owner=(ROLES, ROLES))
    keygen.make_redis_login(keys, "redis", owner=(ROLES, ROLES))


def _before_each_start(keys: Path) -> None:
    own_keys.complete(MasterOptions(user="salt"), str(keys.parent))


def assert_kept(victim: Path, keys: Path) -> None:
    """Root's file is as it was, the roles' user has no copy of it, and nothing new is beside it."""
    found = victim.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (0, 0, 0o600)
    assert victim.read_bytes() == SECRET
    assert [path.name for path in victim.parent.iterdir()] == [victim.name]
    for path in keys.rglob("*"):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_ino != found.st_ino:
            assert SECRET.strip() not in path.read_bytes(), f"{path} is a copy of root's file"


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    """The account of the option ``user``."""
    entry = run_as.passwd_entry("root")
    named = type(entry)(("salt", "x", ROLES, ROLES, "", "/", "/bin/false"))
    monkeypatch.setattr(own_keys, "passwd_entry", lambda user: named)


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("name", FILES)
def test_root_makes_keys_beside_a_planted_file(name: str, plant: str, keys: Path, victim: Path) -> None:
    place = keys / name
    if place.name in ("events.key", "master.secret"):
        # Without the other roles' copies, root copies the file that is left.
        for copy in keys.glob(f"*/{place.name}"):
            copy.unlink()
    place.unlink(missing_ok=True)
    PLANTS[plant](place, victim)
    with contextlib.suppress(ConfigError, OSError):
        _make(keys)
    assert_kept(victim, keys)


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.usefixtures("account")
def test_the_start_of_the_service_gives_no_planted_file_away(plant: str, keys: Path, victim: Path) -> None:
    """A new name, which no role reads, and a missing key, which root makes."""
    PLANTS[plant](keys / "mworker" / "notes", victim)
    (keys / "api" / "curve.secret").unlink()
    with contextlib.suppress(ConfigError, OSError):
        _before_each_start(keys)
    assert_kept(victim, keys)


@pytest.mark.parametrize("folder", ["mworker", "reqserver/known", "redis", "redis/tls"])
def test_a_directory_of_keys_is_a_link_to_a_directory_of_root(folder: str, keys: Path, victim: Path) -> None:
    (keys / folder).rename(keys.with_name("moved"))
    (keys / folder).symlink_to(victim.parent)
    with contextlib.suppress(ConfigError, OSError):
        _make(keys)
    assert victim.parent.stat().st_uid == 0
    assert_kept(victim, keys.with_name("moved"))


def test_the_directory_of_all_keys_is_a_link_in_a_directory_of_the_user(tmp_path: Path, victim: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, ROLES, ROLES)
    (home / "keys").symlink_to(victim.parent)
    with pytest.raises(OSError, match="symbolic link"):
        keygen.make_keys(home / "keys", owner=(ROLES, ROLES))
    assert_kept(victim, tmp_path / "none")


@pytest.mark.parametrize("plant", ["link", "hard link", "fifo"])
@pytest.mark.parametrize("name", ["mworker/events.key", "cli/curve.secret", "reqserver/planted"])
def test_printed_secrets_hold_no_planted_file(name: str, plant: str, keys: Path, victim: Path) -> None:
    """``saltern keygen --secrets`` prints the directory for the cluster."""
    (keys / name).unlink(missing_ok=True)
    PLANTS[plant](keys / name, victim)
    printed: dict[str, secrets.Data] = {}
    with contextlib.suppress(OSError):
        printed = secrets.of_directory(keys)
    assert SECRET not in [content for data in printed.values() for content in data.values()]


@pytest.mark.parametrize("plant", ["link", "hard link", "fifo"])
@pytest.mark.parametrize("name", ["cli/curve.next", "cli/curve.secret", "mworker/known/cli.pub"])
def test_a_rotation_reads_and_writes_no_planted_file(name: str, plant: str, keys: Path, victim: Path) -> None:
    (keys / name).unlink(missing_ok=True)
    PLANTS[plant](keys / name, victim)
    with contextlib.suppress(OSError, RotationError):
        rotate_link_key(KeyFiles(keys, 0.0, sleep=lambda seconds: None), "cli")
    assert_kept(victim, keys)


def test_a_rotation_writes_into_no_linked_directory(keys: Path, victim: Path) -> None:
    (keys / "cli" / "curve.next").unlink(missing_ok=True)
    (keys / "cli").rename(keys.with_name("moved"))
    (keys / "cli").symlink_to(victim.parent)
    with pytest.raises(OSError, match="symbolic link"):
        KeyFiles(keys, 0.0).write("cli/curve.next", b"key")
    assert_kept(victim, keys)


#: Calls that follow a link at their path, and give away, read or write what it names.
_BY_PATH = frozenset({"chown", "read_bytes", "read_text", "write_bytes", "write_text", "open", "mkdir", "unlink"})

#: Module, and the calls in it that touch no directory of another user.
_OF_KEYS = {
    "services/saltern/kit/keys/keygen.py": set(),
    "services/saltern/kit/keys/secrets.py": set(),
    "services/saltern/master/own_keys.py": set(),
    "services/saltern/rotate/key_files.py": set(),
    "services/saltern/rotate/link_keys.py": set(),
    "services/saltern/rotate/master_key.py": set(),
    "services/saltern/rotate/redis_login.py": set(),
    "services/saltern/rotate/redis_tls.py": set(),
    "services/saltern/moving/keys.py": set(),
    "services/saltern/moving/files.py": set(),
    "services/saltern/moving/minion_data.py": set(),
    # The trial of a new configuration, in a temporary directory of the command.
    "services/saltern/moving/main.py": {"write_text"},
}


@pytest.mark.ordinary
@pytest.mark.parametrize("module", _OF_KEYS)
def test_keys_are_read_and_written_by_the_guarded_tree_alone(module: str) -> None:
    called = {
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        for node in ast.walk(ast.parse((ROOT / module).read_text("utf-8")))
        if isinstance(node, ast.Call)
    }
    assert called & _BY_PATH == _OF_KEYS[module]


@pytest.mark.ordinary
def test_services_give_files_away_by_descriptors_alone() -> None:
    calls = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "services").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("chown", "lchown")
    }
    assert calls == set()


@pytest.mark.ordinary
@pytest.mark.usefixtures("account")
def test_keys_that_root_brought_become_the_users(tmp_path: Path) -> None:
    directory = tmp_path / "keys"
    keygen.make_keys(directory)
    assert {path.stat().st_uid for path in directory.rglob("*")} == {0}
    _before_each_start(directory)
    assert {path.stat().st_uid for path in (directory, *directory.rglob("*"))} == {ROLES}


@pytest.mark.ordinary
def test_links_of_root_are_followed(tmp_path: Path) -> None:
    """An operator keeps the keys of a role on another disk."""
    directory, disk = tmp_path / "keys", tmp_path / "disk"
    disk.mkdir()
    directory.mkdir()
    (directory / "mworker").symlink_to(disk)
    keygen.make_keys(directory)
    assert (disk / "master.pem").is_file()


def test_a_file_in_the_users_directory_is_not_given_away(keys: Path) -> None:
    """The user moved a file of root into a directory of keys: a log that root wrote into another directory of the user."""
    moved = keys / "mworker" / "log"
    moved.write_bytes(SECRET)
    moved.chmod(0o600)
    keygen.make_keys(keys, owner=(ROLES, ROLES))
    assert moved.stat().st_uid == 0
