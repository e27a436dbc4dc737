"""A stock master's configuration and keys, here and back: what is written, what is said of each option, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from saltern.entry import main
from saltern.kit.config.master import load_master
from saltern.moving.settings import fate_of, is_salts
from saltwire.keys import PrivateKey
from saltwire.pack import packb
from tests.conftest import Oracle

MASTER = """\
# a comment
interface: 127.0.0.1
worker_threads: 8
file_roots:
  base:
    - /srv/salt
keep_jobs: 12
svnfs_remotes: [https://example.org/states]
no_such_option: 5
timeout: soon
transport: tcp
job_cache: true
redis.host: elsewhere
out.table.separate_rows: false
include: more/*.yaml
"""

REPORT = """\
Carries over:
  {etc}/master:2: interface
  {etc}/master:4: file_roots
  {etc}/master:7: keep_jobs: as keep_jobs_seconds
  {etc}/master:9: no_such_option: a key of your own
  {etc}/master:12: job_cache
  {etc}/master:13: redis.host
  {etc}/master:14: out.table.separate_rows
  {etc}/master:16: cachedir
  {etc}/more/tree.yaml:1: file_roots
  {etc}/master.d/late.conf:1: interface
Not needed here:
  {etc}/master:3: worker_threads: roles are processes of their own: start more of mworker
  {etc}/master:15: include: what it names is part of what is imported
Not supported:
  {etc}/master:8: svnfs_remotes: check the repository out and name the directory in file_roots
  {etc}/master:10: timeout: option 'timeout' must be a whole number, not 'soon'
  {etc}/master:11: transport: minions are spoken to over ZeroMQ alone
Added:
  id: salt.example.org_master: the stock master's own id, for which orchestrations compile pillar
"""


@pytest.fixture(scope="module")
def private() -> PrivateKey:
    return PrivateKey.generate()


@pytest.fixture
def stock(tmp_path: Path, private: PrivateKey) -> Path:
    """The configuration directory of a stock master."""
    etc = tmp_path / "salt"
    pki = etc / "pki" / "master"
    (pki / "minions").mkdir(parents=True)
    (pki / "minions" / "web1").write_text(private.public.pem)
    (pki / "master.pem").write_bytes(private.to_pem())
    (pki / "master.pub").write_text(private.public.pem)
    (etc / "master").write_text(MASTER)
    for name, content in (
        ("more/tree.yaml", "file_roots: {dev: [/srv/dev]}"),
        ("master.d/late.conf", "interface: '::'"),
    ):
        (etc / name).parent.mkdir()
        (etc / name).write_text(content)
    return etc


@pytest.fixture
def bring(stock: Path, tmp_path: Path) -> Callable[..., int]:
    def run(*more: str) -> int:
        keys, out = str(tmp_path / "keys"), str(tmp_path / "etc")
        return main(["import", "--config", str(stock), "--keys", keys, "--out", out, *more])

    return run


def test_import(
    bring: Callable[..., int], stock: Path, tmp_path: Path, private: PrivateKey, capsys: pytest.CaptureFixture[str]
) -> None:
    (stock / "minion_id").write_text("salt.example.org\n")
    cache = tmp_path / "cache"
    (cache / "grains").mkdir(parents=True)
    (cache / "grains" / "web1.p").write_bytes(packb({"id": "web1"}))
    with (stock / "master").open("a") as file:
        file.write(f"cachedir: {cache}\n")
    report = REPORT.replace("{etc}", str(stock))
    assert bring("--check") == 1
    assert capsys.readouterr() == (report, "")
    assert not (tmp_path / "keys").exists()
    assert not (tmp_path / "etc").exists()

    assert bring() == 0
    said = capsys.readouterr().out
    assert said.startswith(report)
    assert said.endswith(
        f"written {tmp_path}/etc/master\nwritten 81 files below {tmp_path}/keys: the keys of the roles\n\n"
        f"1 keys of minions are in {stock}/pki/master. When the roles run:\n  salt-key --import {stock}/pki/master\n"
        f"\nGrains, pillar and mine of 1 minions are in {cache}. When the keys are imported:\n  saltern import --data {cache}\n"
    )
    for role in ("publisher", "mworker"):
        secret = tmp_path / "keys" / role / "master.pem"
        assert secret.read_bytes() == private.to_pem()
        assert secret.stat().st_mode & 0o777 == 0o600
    options = load_master(str(tmp_path / "etc"), env={})
    assert options.file_roots == {"base": ["/srv/salt"], "dev": ["/srv/dev"]}
    assert options.id == "salt.example.org_master"
    assert (options.interface, options.keep_jobs_seconds, options.timeout) == ("::", 43200, 5)
    assert options.module_settings == {"redis.host": "elsewhere", "no_such_option": 5}
    assert options.out_table == {"separate_rows": False}

    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert bring() == 0
    assert "Everything was there already.\n" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_node_groups_that_cannot_be_parsed_are_told_and_left_out(
    bring: Callable[..., int], stock: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = {
        "web": "G@os:Debian and (web*",
        "db": "L@db1,db2",
        "both": "N@db or N@web",
        "numbers": 5,
        "ranges": "R@%web",
        "through": "N@more",
    }
    (stock / "master").write_text(yaml.safe_dump({"interface": "127.0.0.1", "nodegroups": groups}, sort_keys=False))
    (stock / "master.d" / "late.conf").write_text("nodegroups: {more: [web1, web2]}")
    assert bring("--check") == 1
    said = capsys.readouterr().out
    assert said.partition("Not supported:\n")[2].partition("Added:\n")[0].splitlines() == [
        f"  {stock}/master:3: nodegroups: the group 'web': a closing parenthesis is missing in 'G@os:Debian and ( web*'",
        f"  {stock}/master:5: nodegroups: the group 'both': a closing parenthesis is missing in 'G@os:Debian and ( web*'",
        f"  {stock}/master:6: nodegroups: the group 'numbers': the node group 'numbers' must be text or a list, not 5",
    ]
    assert bring() == 0
    kept = load_master(str(tmp_path / "etc"), env={}).nodegroups
    assert kept == {"db": "L@db1,db2", "ranges": "R@%web", "through": "N@more", "more": ["web1", "web2"]}


def test_back_again(bring: Callable[..., int], stock: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sign = PrivateKey.generate()
    pki = stock / "pki" / "master"
    (pki / "master_sign.pem").write_bytes(sign.to_pem())
    (pki / "master_sign.pub").write_text(sign.public.pem)
    (pki / "master_pubkey_signature").write_text("c2lnbmF0dXJl\n")
    with (stock / "master").open("a") as file:
        file.write("master_sign_pubkey: true\n")
    assert bring() == 0
    assert not (tmp_path / "keys" / "publisher" / "master_sign.pem").exists()
    (tmp_path / "etc" / "master.d").mkdir()
    (tmp_path / "etc" / "master.d" / "ours.conf").write_text("redis_url: redis://r/0\nmodule_settings: {a.b: 1}\n")
    capsys.readouterr()
    back = tmp_path / "back"
    words = ["export", "--config", str(tmp_path / "etc"), "--keys", str(tmp_path / "keys"), "--out", str(back)]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert f"{tmp_path}/etc/master.d/ours.conf:1: redis_url: a stock master has no such option\n" in said
    again = back / "pki" / "master"
    assert {path.name: path.read_bytes().strip() for path in again.iterdir()} == {
        path.name: path.read_bytes().strip() for path in pki.iterdir() if path.is_file()
    }
    assert (again / "master.pem").stat().st_mode & 0o777 == 0o400
    config = yaml.safe_load((back / "master").read_text())
    assert config["file_roots"] == {"base": ["/srv/salt"], "dev": ["/srv/dev"]}
    assert (config["a.b"], config["redis.host"], config["master_sign_pubkey"]) == (1, "elsewhere", True)
    assert "redis_url" not in config
    assert main(words) == 0
    (again / "master.pem").unlink()
    (again / "master.pem").write_bytes(sign.to_pem())
    assert main(words) == 1
    assert "exists with other content" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spoil", "code", "said"),
    [
        (lambda etc, pki: (etc / "master").unlink(), 64, "/master: does not exist; name the directory of the master's"),
        (lambda etc, pki: (etc / "master").write_text("a: [\n"), 78, "/master: not valid YAML"),
        (lambda etc, pki: (etc / "master").write_text("[a]\n"), 78, "must hold `option: value` lines, not a list"),
        (lambda etc, pki: (etc / "more" / "tree.yaml").unlink(), 78, "/master:15: include: no file is more/*.yaml"),
        (
            lambda etc, pki: (pki / "master.pem").unlink(),
            1,
            "master.pem: does not exist; name the master's key directory",
        ),
        (lambda etc, pki: (pki / "master.pem").write_text("x"), 1, "master.pem: not a private key in PEM"),
        (lambda etc, pki: (pki / "master.pub").write_text("x"), 1, "master.pub: not a public key in PEM"),
        (
            lambda etc, pki: (pki / "master.pub").write_text(PrivateKey.generate().public.pem),
            1,
            "master.pub: does not belong to",
        ),
    ],
)
def test_what_cannot_be_imported_writes_nothing(
    spoil: Callable[[Path, Path], Any],
    code: int,
    said: str,
    bring: Callable[..., int],
    stock: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spoil(stock, stock / "pki" / "master")
    assert bring() == code
    assert said in capsys.readouterr().err
    assert not (tmp_path / "keys").exists()
    assert not (tmp_path / "etc").exists()


def test_keys_of_a_copied_directory(
    bring: Callable[..., int], stock: Path, tmp_path: Path, private: PrivateKey
) -> None:
    """Salt 3008 names the pair by the master's id, and has absolute links to it: a copy's lead nowhere."""
    pki = stock / "pki" / "master"
    for end in ("pem", "pub"):
        (pki / f"master.{end}").rename(pki / f"salt.example.{end}")
        (pki / f"master.{end}").symlink_to(f"/gone/pki/master/salt.example.{end}")
    assert bring() == 0
    assert (tmp_path / "keys" / "mworker" / "master.pem").read_bytes() == private.to_pem()


def test_what_is_there_is_not_overwritten(
    bring: Callable[..., int], stock: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "keys" / "mworker" / "master.pem"
    other.parent.mkdir(parents=True)
    other.write_bytes(PrivateKey.generate().to_pem())
    assert bring() == 1
    assert "is the key of another master" in capsys.readouterr().err
    other.unlink()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "master").write_text("id: mine\n")
    assert bring() == 1
    assert "exists with other content; name another directory with --out" in capsys.readouterr().err
    assert list((tmp_path / "keys").rglob("*.pem")) == []


@pytest.mark.parametrize(
    ("name", "value", "own"),
    [
        (
            "ext_pillar",
            [{"cmd_yaml": "x"}, {"reclass": {}}, {"mysql": {}}],
            "reclass, mysql; to be yours, in pillar_dirs",
        ),
        ("ext_pillar", [{"git": []}, {"stack": "x"}], ""),
        ("master_tops", {"ext_nodes": "x", "cobbler": {}}, "cobbler; to be yours, in top_dirs"),
        ("fileserver_backend", ["roots", "-git", "hgfs"], "hgfs; to be yours, in fileserver_dirs"),
        ("event_return", "mysql,mine", "mysql, mine; to be yours, in returner_dirs"),
        ("master_job_cache", "mysql", "mysql; to be yours, in returner_dirs"),
        ("ext_job_cache", "redis", ""),
    ],
)
def test_modules_that_are_not_built_in_are_named(name: str, value: Any, own: str) -> None:
    fate = fate_of(name, value)
    assert (fate.kind, fate.here) == ("carries", {name: value})
    assert fate.why == (f"not built in: {own} or extension_modules" if own else "")


@pytest.mark.oracle
def test_every_option_of_salt_has_a_fate(oracle: Oracle) -> None:
    """As it stands in Salt's defaults: what is said of it is said on purpose, and nothing carries over that Salt does not know."""
    code = (
        "import json, salt.config as c; "
        "print(json.dumps([dict(c.DEFAULT_MASTER_OPTS), sorted(c.VALID_OPTS)], default=lambda value: None))"
    )
    defaults, known = json.loads(oracle.run("python", "-c", code))
    said = {name: fate_of(name, value) for name, value in defaults.items()}
    assert {
        name
        for name, fate in said.items()
        if fate.kind == "carries" and not set(fate.here) & (set(defaults) | {"keep_jobs_seconds"})
    } == set()
    assert {name for name, fate in said.items() if fate.why == "a key of your own"} == set()
    for name in ("aes_rotation_interval", "control_acl", "redis_url", "reqserver_host", "worker_silence"):
        assert name not in known
        assert not is_salts(name)


@pytest.mark.parametrize("command", ["import", "export"])
def test_a_configuration_that_cannot_be_looked_at_is_named(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / ("x" * 300)
    assert main([command, "--config", str(config), "--keys", str(tmp_path / "k"), "--out", str(tmp_path / "o")]) == 1
    assert capsys.readouterr().err == f"ERROR: {config}/master: cannot be read: File name too long\n"
