"""Keys: who gets which, what is kept, what a broken one leads to."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
import zmq

from masterstore.access import ROLES, digest
from saltern.kit.config.master import ConfigError
from saltern.kit.keys.events_key import load_event_macs
from saltern.kit.keys.keygen import main, make_keys, make_redis_login
from saltern.kit.keys.master_keys import MasterKeys
from saltern.kit.links.sockets import NAMES, LinkKeys
from saltwire.keys import PrivateKey


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.fixture
def keys(role_keys: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(role_keys, tmp_path / "keys"))


def test_every_name_gets_its_own_secret_and_knows_all_publics(role_keys: Path) -> None:
    loaded = {name: LinkKeys.load(role_keys / name) for name in NAMES}
    assert len({keys.secret for keys in loaded.values()}) == len(NAMES)
    for keys in loaded.values():
        assert keys.known == {name: (other.public,) for name, other in loaded.items()}


def test_only_roles_that_speak_to_minions_get_the_masters_key(role_keys: Path) -> None:
    assert {path.parent.name for path in role_keys.rglob("master.*")} == {"publisher", "mworker"}
    one, two = MasterKeys.load(role_keys / "publisher"), MasterKeys.load(role_keys / "mworker")
    assert one.private.to_pem() == two.private.to_pem()
    assert one.secret == two.secret
    assert (role_keys / "mworker" / "master.pub").read_text().strip() == one.private.public.pem


def test_roles_that_keep_or_obey_events_share_a_key(role_keys: Path) -> None:
    assert {path.parent.name for path in role_keys.rglob("events.*")} == {"mworker", "maintenance", "reactor"}
    assert len({path.read_bytes() for path in role_keys.rglob("events.key")}) == 1
    assert (role_keys / "reactor" / "events.key").stat().st_size == 32


@pytest.mark.parametrize("lost", ["mworker", "maintenance", "reactor"])
def test_a_role_that_lost_the_key_of_events_gets_it_again(keys: Path, lost: str) -> None:
    before = contents(keys)
    (keys / lost / "events.key").unlink()
    assert make_keys(keys) == [keys / lost / "events.key"]
    assert contents(keys) == before


def test_the_key_of_events_is_replaced_and_the_one_before_kept(keys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (keys / "reactor" / "events.key").read_bytes()
    assert main(["--out", str(keys), "--new-events-key"]) == 0
    assert {path.read_bytes() for path in keys.rglob("events.key.old")} == {before}
    (new,) = {path.read_bytes() for path in keys.rglob("events.key")}
    assert new != before
    assert make_keys(keys) == []
    (keys / "reactor" / "events.key.old").unlink()
    assert make_keys(keys) == [keys / "reactor" / "events.key.old"]
    assert main(["--out", str(keys), "--new-events-key"]) == 0
    assert {path.read_bytes() for path in keys.rglob("events.key.old")} == {new}


def test_a_malformed_key_of_events_is_named(keys: Path) -> None:
    (keys / "reactor" / "events.key").write_bytes(b"short")
    with pytest.raises(ConfigError, match=r"reactor/events\.key: must hold 32 bytes, holds 5"):
        load_event_macs(keys / "reactor")


def test_nobody_else_can_read_them(role_keys: Path) -> None:
    for path in role_keys.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
    assert not list(role_keys.rglob(".*")), "a temporary file was left"


def test_what_is_there_is_kept(keys: Path) -> None:
    before = contents(keys)
    assert make_keys(keys) == []
    assert contents(keys) == before


@pytest.mark.parametrize("lost", ["publisher", "mworker"])
def test_a_lost_directory_is_filled_again_and_the_master_stays_the_same(keys: Path, lost: str) -> None:
    before = contents(keys)
    shutil.rmtree(keys / lost)
    made = make_keys(keys)
    after = contents(keys)
    assert after[f"{lost}/master.pem"] == before["publisher/master.pem"]
    assert after[f"{lost}/master.secret"] == before["publisher/master.secret"]
    # Its own CurveZMQ key is a new one, which all others learn.
    assert all(LinkKeys.load(keys / name).known[lost] == (LinkKeys.load(keys / lost).public,) for name in NAMES)
    assert {path.parts[-3] for path in made if path.name == f"{lost}.pub"} == set(NAMES)


def test_of_two_that_make_keys_at_once_the_first_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicas of a master that start together with one empty volume."""
    generate, pair = PrivateKey.generate, zmq.curve_keypair
    monkeypatch.setattr(PrivateKey, "generate", lambda bits: (another(), generate(bits))[1])
    monkeypatch.setattr(zmq, "curve_keypair", lambda: (another(), pair())[1])
    found: list[dict[str, bytes]] = []

    def another() -> None:
        """Somebody makes all keys, just when a key of ours is made."""
        monkeypatch.setattr(PrivateKey, "generate", generate)
        monkeypatch.setattr(zmq, "curve_keypair", pair)
        make_keys(tmp_path)
        found.append(contents(tmp_path))

    make_keys(tmp_path)
    assert found == [contents(tmp_path)]
    shutil.rmtree(tmp_path / "publisher")
    shutil.rmtree(tmp_path / "mworker")
    monkeypatch.setattr(PrivateKey, "generate", lambda bits: (another(), generate(bits))[1])
    make_keys(tmp_path)
    assert len(found) == 2
    assert found[1] == contents(tmp_path)
    assert not list(tmp_path.rglob(".*")), "a temporary file was left"


def test_two_masters_are_one_too_many(keys: Path) -> None:
    (keys / "mworker" / "master.secret").write_bytes(os.urandom(32))
    with pytest.raises(ConfigError, match=r"publisher/master\.secret and .*mworker/master\.secret differ"):
        make_keys(keys)


@pytest.mark.parametrize("name", ["reactor/curve.secret", "publisher/master.pem"])
def test_a_broken_key_is_named_and_stays(keys: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for copy in keys.rglob(Path(name).name) if name.endswith("pem") else [keys / name]:
        copy.write_bytes(b"broken")
    assert main(["--out", str(keys)]) == 1
    assert f"saltern keygen: {keys / name}: not a" in capsys.readouterr().err
    assert (keys / name).read_bytes() == b"broken"


def test_the_command_tells_what_it_made(tmp_path: Path, keys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--out", str(keys)]) == 0
    assert capsys.readouterr().out == f"all keys are in {keys} already\n"
    shutil.rmtree(keys / "api")
    assert main(["--out", str(keys)]) == 0
    assert f"made {keys / 'api' / 'curve.secret'}\n" in capsys.readouterr().out


def test_a_directory_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["--out", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err.startswith(f"saltern keygen: {tmp_path / 'file'}")


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        (["--owner", "salt:salt"], "argument --owner: must be UID:GID in numbers, not 'salt:salt'"),
        (["--keysize", "100"], "argument --keysize: must be 2048 to 16384 bits, not 100"),
        (["--keysize", "large"], "argument --keysize"),
    ],
)
def test_arguments_that_mean_nothing(
    argument: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path / "keys"), *argument])
    assert says in capsys.readouterr().err
    assert not (tmp_path / "keys").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")
def test_an_owner_is_given_everything(keys: Path) -> None:
    (keys / "publisher" / "master.pem").unlink()
    assert main(["--out", str(keys), "--owner", "1000", "--redis-host", "redis", "--redis-tls"]) == 0
    found = {path: (path.stat().st_uid, path.stat().st_gid) for path in (keys, *keys.rglob("*"))}
    assert len(found) > 100
    assert set(found.values()) == {(1000, 1000)}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")
def test_a_new_key_of_root_belongs_to_the_owner_of_its_directory(keys: Path) -> None:
    for path in (keys, *keys.rglob("*")):
        os.chown(path, 1000, 1000)
    assert make_keys(keys, operators=["ann"])
    assert {path.stat().st_uid for path in keys.rglob("*")} == {1000}


def test_an_operator_is_known_to_the_servers_and_knows_nobody_else(keys: Path) -> None:
    before = contents(keys)
    made = {str(path.relative_to(keys)) for path in make_keys(keys, operators=["ann"])}
    servers = ("reqserver", "eventpublisher")
    assert made == {
        "ann/curve.secret",
        *(f"ann/known/{name}.pub" for name in servers),
        *(f"{name}/known/ann.pub" for name in servers),
    }
    assert {name: content for name, content in contents(keys).items() if name in before} == before
    ann = LinkKeys.load(keys / "ann")
    assert {LinkKeys.load(keys / name).known["ann"] for name in servers} == {(ann.public,)}
    assert make_keys(keys, operators=["ann"]) == []


@pytest.mark.parametrize("name", ["Ann.Smith", "ann-2", "A", "ops_team.de"])
def test_an_operators_name_may_have_dots_and_capitals(name: str, keys: Path) -> None:
    assert main(["--out", str(keys), "--operator", name]) == 0
    own = LinkKeys.load(keys / name)
    assert LinkKeys.load(keys / "reqserver").known[name] == (own.public,)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "x", "--operator", "CLI"], "'CLI' cannot be an operator"),
        (["--out", "x", "--operator", "ann."], "'ann.' cannot be an operator"),
        (["--out", "x", "--operator", ".ann"], "'.ann' cannot be an operator"),
        (["--out", "x", "--operator", "mworker"], "'mworker' cannot be an operator"),
        (["--out", "x", "--operator", "../x"], "'../x' cannot be an operator"),
        (["--out", "x", "--operator", ""], "'' cannot be an operator"),
        (["--in-cluster", "--operator", "ann"], "--operator goes with --out"),
    ],
)
def test_who_cannot_be_an_operator(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(words)
    assert said in capsys.readouterr().err


def test_redis_gets_a_user_for_each_role_once(keys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--out", str(keys), "--redis-host", "redis"]) == 0
    users = keys / "redis" / "users.acl"
    assert f"made {users}\n" in capsys.readouterr().out
    for role in ROLES:
        password = (
            (keys / role / "redis.url")
            .read_text()
            .strip()
            .removeprefix(f"redis://{role}:")
            .removesuffix("@redis:6379/0")
        )
        assert re.fullmatch("[0-9a-f]{64}", password)
        assert f"user {role} on {digest(password)} " in users.read_text()
        assert password not in users.read_text()
    assert (keys / "redis-operator" / "redis.url").read_text().startswith("redis://operator:")
    assert not (keys / "redis" / "url").exists()
    assert not (keys / "cli" / "redis.url").exists()
    before = contents(keys)
    assert main(["--out", str(keys), "--redis-host", "redis"]) == 0
    assert contents(keys) == before


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("r:7000", "@r:7000/0"),
        ("redis+sentinel://a,b/mymaster/0", "@a,b/mymaster/0"),
        ("redis+cluster://a,b:7000", "@a,b:7000"),
        ("unix:///run/redis.sock", "@/run/redis.sock"),
    ],
)
def test_where_redis_is(tmp_path: Path, host: str, url: str) -> None:
    make_redis_login(tmp_path, host)
    assert (tmp_path / "mworker" / "redis.url").read_text().strip().endswith(url)
    tags = "~{salt}:jobs " in (tmp_path / "redis" / "users.acl").read_text()
    assert tags == ("+cluster" in host)


def test_one_password_for_all_roles_stays(tmp_path: Path) -> None:
    """As earlier versions made it: roles get copies, Redis the same user as before."""
    (tmp_path / "redis").mkdir()
    (tmp_path / "redis" / "url").write_text("redis://:old@redis:6379/0")
    made = make_redis_login(tmp_path, "redis")
    assert {path.relative_to(tmp_path).as_posix() for path in made} == {
        "redis/users.acl",
        *(f"{role}/redis.url" for role in ROLES),
    }
    assert all((tmp_path / role / "redis.url").read_text().strip() == "redis://:old@redis:6379/0" for role in ROLES)
    assert f"user default on {digest('old')} ~* &* +@all\n" in (tmp_path / "redis" / "users.acl").read_text()


def test_only_the_owner_reads_the_passwords_of_redis_and_redis_reads_the_hashes(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        make_redis_login(tmp_path, "redis")
    finally:
        os.umask(old)
    for name in (*ROLES, "redis-operator"):
        assert (tmp_path / name / "redis.url").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "redis" / "users.acl").stat().st_mode & 0o777 == 0o644


def test_a_lost_file_of_users_is_made_from_the_same_password(tmp_path: Path) -> None:
    make_redis_login(tmp_path, "redis")
    before = contents(tmp_path)
    (tmp_path / "redis" / "users.acl").unlink()
    assert make_redis_login(tmp_path, "elsewhere") == [tmp_path / "redis" / "users.acl"]
    assert contents(tmp_path) == before


def test_a_url_without_a_password_is_named(tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir()
    (tmp_path / "redis" / "url").write_text("redis://redis:6379/0")
    with pytest.raises(ConfigError, match=r"redis/url: no URL of Redis with a password"):
        make_redis_login(tmp_path, "redis")
