"""Finding 38.12: root imports a directory that a stranger filled, or exports into one, and talks to a master that lies.

``saltern import``, ``saltern export`` and ``salt-key --import``/``--export`` read names and files that others chose. They
must write nothing outside of the directories that the operator named, read nothing outside, wait for no fifo, and write
all or nothing.
"""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest
import yaml

from saltern.cli.key_files import read_keys, write_keys
from saltern.entry import main
from saltern.kit.command.command_line import CommandError
from saltern.kit.config.master import ConfigError, load_master
from saltern.kit.keys.keygen import make_keys
from saltern.moving import minion_data
from saltwire.keys import PrivateKey
from saltwire.pack import packb

#: What only root reads; also a valid configuration file, so that YAML is no defence.
MARK = "s3cret-of-root-alone"
SECRET = f"root_password: {MARK}\n"

#: Another user, by number.
STRANGER = 54321

_DEADLINE = 10


class Hangs(Exception):
    """Raised when a command waits for a planted file."""


@pytest.fixture(autouse=True)
def deadline() -> Iterator[None]:
    def late(signum: int, frame: FrameType | None) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(_DEADLINE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def pair() -> PrivateKey:
    return PrivateKey.generate()


@pytest.fixture
def stock(tmp_path: Path, pair: PrivateKey) -> Path:
    """The configuration directory of a stock master, as a stranger hands it over."""
    etc = tmp_path / "given" / "etc" / "salt"
    pki = etc / "pki" / "master"
    pki.mkdir(parents=True)
    for name in ("master", "master_sign"):
        (pki / f"{name}.pem").write_bytes(pair.to_pem())
        (pki / f"{name}.pub").write_text(pair.public.pem)
    (pki / "master_pubkey_signature").write_text("c2lnbmF0dXJl\n")
    (etc / "master").write_text("keep_jobs: 12\ninclude: more.conf\n")
    (etc / "more.conf").write_text("worker_threads: 2\n")
    (etc / "master.d").mkdir()
    (etc / "master.d" / "a.conf").write_text("interface: 127.0.0.1\n")
    (etc / "minion_id").write_text("salt.example.org\n")
    return etc


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "root" / "secrets.yaml"
    path.parent.mkdir()
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


def bring(stock: Path, *more: str) -> int:
    base = stock.parents[2]
    words = ["--config", str(stock), "--keys", str(base / "new" / "keys"), "--out", str(base / "new" / "etc")]
    return main(["import", *words, *more])


def tree(base: Path, *without: str) -> set[str]:
    """The names of all files below a directory, but for those below the directories ``without``."""
    names = {str(path.relative_to(base)) for path in base.rglob("*")}
    return {name for name in names if not name.startswith(without)}


def assert_nothing_is_written(base: Path) -> None:
    assert not (base / "new").exists()


@pytest.mark.parametrize("option", ["master_pubkey_signature", "master_sign_key_name"])
@pytest.mark.parametrize(
    "name",
    [
        "../../../cron.d/x",
        "../x",
        "sub/x",
        "./x",
        "../master/x",
        "x/../../x",
        "{base}/elsewhere/x",
        "../../../../new/etc/master.d/x",
    ],
)
def test_a_name_of_the_configuration_leads_nowhere(
    option: str, name: str, stock: Path, pair: PrivateKey, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pki, name = stock / "pki" / "master", name.format(base=tmp_path)
    (pki / "sub").mkdir()
    (pki / "x").mkdir()
    ending = ".pem" if option == "master_sign_key_name" else ""
    place = Path(os.path.normpath(pki / f"{name}{ending}"))
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.is_dir():
        place.write_bytes(pair.to_pem() if ending else b"* * * * * root id\n")
    with (stock / "master").open("a") as file:
        file.write(f"{option}: {name}\n")
    before = tree(tmp_path)
    assert bring(stock) == 1
    assert "no file name" in capsys.readouterr().err
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/b", "..", "a\nb", "x" * 300])
@pytest.mark.parametrize("option", ["master_pubkey_signature", "master_sign_key_name"])
def test_roles_accept_no_such_name(option: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "master").write_text(yaml.safe_dump({option: name}))
    with pytest.raises(ConfigError, match="must name a file of the key directory"):
        load_master(str(tmp_path), env={})


#: Files of the stranger that are read.
READ = (
    "master",
    "master.d/a.conf",
    "more.conf",
    "minion_id",
    "pki/master/master.pem",
    "pki/master/master.pub",
    "pki/master/master_sign.pem",
    "pki/master/master_sign.pub",
    "pki/master/master_pubkey_signature",
)


@pytest.mark.parametrize("name", READ)
def test_a_link_to_a_file_of_root_is_not_read(name: str, stock: Path, victim: Path, tmp_path: Path) -> None:
    (stock / name).unlink()
    (stock / name).symlink_to(victim)
    assert bring(stock) != 0
    assert_nothing_is_written(tmp_path)


@pytest.mark.parametrize("name", READ)
def test_a_fifo_is_named_and_not_waited_for(
    name: str, stock: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (stock / name).unlink()
    os.mkfifo(stock / name)
    assert bring(stock) != 0
    said = capsys.readouterr().err
    assert str(stock / name) in said
    assert "fifo" in said or "does not exist" in said
    assert_nothing_is_written(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
@pytest.mark.parametrize("name", READ)
def test_a_device_is_not_opened(name: str, stock: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A device without a driver: opening it fails in another way than refusing it."""
    (stock / name).unlink()
    os.mknod(stock / name, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    assert bring(stock) != 0
    said = capsys.readouterr().err
    assert "character device" in said or "does not exist" in said
    assert_nothing_is_written(tmp_path)


@pytest.mark.parametrize("name", ["pki", "pki/master", "master.d"])
def test_a_linked_directory_is_not_entered(name: str, stock: Path, victim: Path, tmp_path: Path) -> None:
    moved = victim.parent / "moved"
    (stock / name).rename(moved)
    (stock / name).symlink_to(moved)
    if name == "master.d":
        (moved / "b.conf").write_text(SECRET)
    else:
        # The stranger's own keys beside root's file of the name.
        pki = moved if name == "pki/master" else moved / "master"
        (pki / "master_pubkey_signature").write_text(SECRET)
    bring(stock)
    for path in (tmp_path / "new").rglob("*"):
        assert path.is_dir() or MARK.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    "pattern", ["{victim}", "../../../root/*.yaml", "{folder}/*", "master.d/../../../../root/*.yaml"]
)
def test_an_include_reads_nothing_outside(
    pattern: str, stock: Path, victim: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = pattern.format(victim=victim, folder=victim.parent)
    (stock / "master").write_text(f"include: {named}\n")
    assert bring(stock) != 0
    assert "outside" in capsys.readouterr().err
    assert_nothing_is_written(tmp_path)


def test_a_file_without_an_end_is_not_read(stock: Path, tmp_path: Path) -> None:
    with (stock / "master.d" / "a.conf").open("wb") as file:
        file.truncate(10 * 1024**4)
    assert bring(stock) != 0
    assert_nothing_is_written(tmp_path)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_others_do_not_read_what_is_written(mask: int, stock: Path, tmp_path: Path) -> None:
    (stock / "master").write_text("redis.password: hidden\n")
    before = os.umask(mask)
    try:
        assert bring(stock) == 0
    finally:
        os.umask(before)
    new = tmp_path / "new"
    assert (new / "etc" / "master").stat().st_mode & 0o777 == 0o640
    files = [path for path in (new / "keys").rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


@pytest.mark.parametrize("name", ["api/curve.secret", "reactor/curve.secret", "publisher/master.secret"])
def test_keys_that_cannot_be_completed_change_nothing(name: str, stock: Path, tmp_path: Path) -> None:
    """A key of the roles is broken: the stock master's key must not be half brought."""
    keys = tmp_path / "new" / "keys"
    for role in ("api", "reactor", "publisher", "mworker"):
        (keys / role).mkdir(parents=True)
    (keys / "mworker" / "master.secret").write_bytes(bytes(32))
    (keys / name).write_bytes(b"broken")
    before = tree(tmp_path)
    assert bring(stock) == 1
    assert tree(tmp_path) == before


PACKED = ("grains/web1.p", "pillar/web1.p", "mine/web1.p", "minions/web1/data.p", "minions/web1/mine.p")


@pytest.mark.parametrize("name", PACKED)
def test_data_of_minions_comes_from_no_link(name: str, victim: Path, tmp_path: Path) -> None:
    cache = tmp_path / "given" / "cache"
    victim.write_bytes(packb({"grains": {"secret": MARK}, "secret": MARK}))
    (cache / name).parent.mkdir(parents=True)
    (cache / name).symlink_to(victim)
    found = minion_data.read(cache)
    assert MARK not in str(found.minions)
    assert list(found.faults) == [str(cache / name)]


@pytest.mark.parametrize("name", PACKED)
def test_data_of_minions_waits_for_no_fifo(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(parents=True)
    os.mkfifo(tmp_path / name)
    assert "fifo" in minion_data.read(tmp_path).faults[str(tmp_path / name)]


@pytest.mark.parametrize("minion", ["../../cron.d/x", "{base}/cron.d/x", "..", "a/b", "", "a\nb"])
def test_an_export_writes_no_minion_outside(minion: str, tmp_path: Path) -> None:
    """A master that lies names minions whose ids are paths."""
    minion = minion.format(base=tmp_path)
    with pytest.raises(CommandError, match="no minion id"):
        minion_data.write(tmp_path / "a" / "cache", {minion: {"mine": {"x": 1}, "grains": {"x": 1}}})
    with pytest.raises(CommandError, match="no minion id"):
        write_keys(tmp_path / "a" / "pki", {"minions": {minion: "key"}})
    assert tree(tmp_path, "a/pki", "a/cache") <= {"a"}
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("part", ["../../x", "{base}/x", "minions", "..", "a/b"])
def test_an_export_writes_no_other_data(part: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="known are"):
        minion_data.write(tmp_path / "a" / "cache", {"web1": {part.format(base=tmp_path): {"x": 1}}})
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", ["minions", "minions_pre", "minions_rejected", "minions_denied"])
def test_the_import_of_keys_waits_for_no_fifo(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / name / "web1")
    assert read_keys(tmp_path).passed == {str(tmp_path / name / "web1"): "is a fifo, not a regular file"}


@pytest.fixture
def foreign(tmp_path: Path, stock: Path, pair: PrivateKey) -> Path:
    """The directory of all keys, the roles' user's, of a master that is to be exported."""
    keys = tmp_path / "roles" / "keys"
    make_keys(keys)
    for role in ("publisher", "mworker"):
        (keys / role / "master.pem").write_bytes(pair.to_pem())
        (keys / role / "master.pub").write_text(pair.public.pem + "\n")
    for path in (keys, *keys.rglob("*")):
        os.chown(path, STRANGER, STRANGER)
    (tmp_path / "roles" / "etc").mkdir()
    (tmp_path / "roles" / "etc" / "master").write_text("keep_jobs_seconds: 3600\n")
    return keys


def export(keys: Path, out: Path) -> int:
    return main(["export", "--config", str(keys.parent / "etc"), "--keys", str(keys), "--out", str(out)])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")
@pytest.mark.parametrize("plant", ["link", "hard link", "fifo"])
@pytest.mark.parametrize("name", ["master_pubkey_signature", "master.pub", "master_sign.pem"])
def test_an_export_reads_no_planted_key(name: str, plant: str, foreign: Path, victim: Path, tmp_path: Path) -> None:
    place = foreign / "mworker" / name
    place.unlink(missing_ok=True)
    make: dict[str, Callable[[], None]] = {
        "link": lambda: place.symlink_to(victim),
        "hard link": lambda: place.hardlink_to(victim),
        "fifo": lambda: os.mkfifo(place),
    }
    make[plant]()
    assert export(foreign, tmp_path / "back") == 1
    assert not (tmp_path / "back").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")
@pytest.mark.parametrize("name", ["pki", "pki/master"])
def test_an_export_writes_into_no_linked_directory(name: str, foreign: Path, victim: Path, tmp_path: Path) -> None:
    """The directory that is exported to is the stock master's user's."""
    place = tmp_path / "back" / name
    place.parent.mkdir(parents=True)
    place.symlink_to(victim.parent)
    for path in (tmp_path / "back", place.parent):
        os.chown(path, STRANGER, STRANGER)
    assert export(foreign, tmp_path / "back") == 1
    assert [path.name for path in victim.parent.iterdir()] == [victim.name]


@pytest.mark.ordinary
def test_an_operator_may_trust_the_links(stock: Path, victim: Path, tmp_path: Path) -> None:
    (stock / "master.d" / "a.conf").unlink()
    (stock / "master.d" / "a.conf").symlink_to(victim)
    (stock / "master").write_text(f"include: {victim}\n")
    assert bring(stock, "--outside") == 0
    assert MARK in (tmp_path / "new" / "etc" / "master").read_text()


@pytest.mark.ordinary
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")
def test_the_roles_group_reads_the_configuration(stock: Path, tmp_path: Path) -> None:
    assert bring(stock, "--owner", f"{STRANGER}:{STRANGER}") == 0
    found = (tmp_path / "new" / "etc" / "master").stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (0, STRANGER, 0o640)
    assert {path.stat().st_uid for path in (tmp_path / "new" / "keys").rglob("*")} == {STRANGER}
