"""The files that a lab starts from: what roles and minions read from them, and who may read them."""

from __future__ import annotations

import dataclasses
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from saltern.kit.config.master import load_master
from saltern.kit.config.minion_options import load_minion
from saltern.lab import files
from saltern.lab.plan import PORTS, Paths, Settings
from saltern.lab.redis_server import find_redis_server, redis_url
from statecore.host.host import Host
from statecore.runtime.runtime import gather_grains

#: As unpleasant as a checkout's path can be.
AWKWARD = "a b%(here)s;c #d 'e\" ü"


@pytest.fixture
def chosen(tmp_path: Path) -> Settings:
    tree = tmp_path / AWKWARD / "tree"
    (tree / "salt").mkdir(parents=True)
    return Settings(tree, ("web1", "web2"), 2, {name: row.default + 20_000 for name, row in PORTS.items()})


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / AWKWARD / ".lab")


@pytest.fixture
def redis(chosen: Settings, paths: Paths) -> str:
    """The operators' URL of Redis."""
    return files.write_all(chosen, paths, find_redis_server(), Path("/venv/bin"))


def test_the_master_reads_its_options(chosen: Settings, paths: Paths, redis: str) -> None:
    options = load_master(str(paths.etc), env={})
    assert (options.interface, options.internal_interface) == ("127.0.0.1", "127.0.0.1")
    assert (options.publish_port, options.ret_port, options.workers_port) == (24505, 24506, 24516)
    assert options.redis_url == redis_url(36379)
    assert options.file_roots == {"base": [str(chosen.tree / "salt")]}
    assert options.reactor == []
    assert options.log_level == "info"


def test_log_level_of_a_lab_s_master_is_the_operator_s(paths: Paths, redis: str) -> None:
    more = paths.etc / "master.d"
    more.mkdir()
    (more / "own.conf").write_text("log_level: error\n", "utf-8")
    assert load_master(str(paths.etc), env={}).log_level == "error"


def test_reactions_are_those_that_the_tree_has(chosen: Settings, paths: Paths) -> None:
    (chosen.tree / "reactor").mkdir()
    (chosen.tree / "reactor" / "refresh.sls").touch()
    assert files.master_options(chosen, paths)["reactor"] == [
        {"site/refresh": [str(chosen.tree / "reactor" / "refresh.sls")]}
    ]


@pytest.mark.usefixtures("redis")
def test_each_minion_reads_its_own_options(paths: Paths) -> None:
    first, second = (load_minion(str(paths.etc_of(name)), env={}) for name in ("web1", "web2"))
    assert (first.id, second.id) == ("web1", "web2")
    assert (first.master, first.master_port, first.publish_port) == ("127.0.0.1", 24506, 24505)
    assert first.host_root == str(paths.host_of("web1"))
    assert not {first.pki_dir, first.cachedir, first.host_root} & {second.pki_dir, second.cachedir, second.host_root}
    # salt-call, with .lab/env sourced, is the first.
    called = load_minion(str(paths.etc), env={})
    ours = {item.name for item in dataclasses.fields(first) if getattr(called, item.name) != getattr(first, item.name)}
    # These are beside the file that was read.
    assert ours == {"gpg_keydir", "schedule_file", "beacons_file", "conf_file"}


@pytest.mark.usefixtures("redis")
def test_hosts_differ_in_what_grains_are_read_from(paths: Paths) -> None:
    grains = [
        gather_grains(Host(paths.host_of(name)), {"id": name, "host_root": str(paths.host_of(name))})
        for name in ("web1", "web2")
    ]
    assert [one["host"] for one in grains] == ["web1", "web2"]
    assert [one["osfinger"] for one in grains] == ["Debian-12", "Ubuntu-24.04"]
    assert [one["userland"] for one in grains] == ["none", "none"]


def test_a_second_writing_keeps_keys_password_and_what_states_changed(
    chosen: Settings, paths: Paths, redis: str
) -> None:
    keys = {path: path.read_bytes() for path in (paths.etc / "keys").rglob("*") if path.is_file()}
    hostname = paths.host_of("web1") / "etc" / "hostname"
    hostname.write_text("changed\n")
    (paths.etc / "master").write_text("timeout: 99\n")
    moved = replace(chosen, ports={**chosen.ports, "ret_port": 5000})
    program = paths.root / "other-redis"
    program.symlink_to(find_redis_server())
    assert files.write_all(moved, paths, program, Path("/venv/bin")) == redis
    assert {path: path.read_bytes() for path in keys} == keys
    assert hostname.read_text() == "changed\n"
    assert load_master(str(paths.etc), env={}).ret_port == 5000
    assert (paths.run / "redis-server").readlink() == program


@pytest.mark.usefixtures("redis")
def test_nobody_else_gets_in(paths: Paths) -> None:
    assert paths.root.stat().st_mode & 0o077 == 0
    logins = [paths.etc / "keys" / name / "redis.url" for name in ("mworker", "redis-operator")]
    for path in (paths.env, *logins, paths.etc / "master", paths.etc / "redis.conf"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_env_is_read_by_a_shell(chosen: Settings, paths: Paths, redis: str) -> None:
    names = ("SALT_CONFIG_DIR", "SALTERN_PUBLISH_PORT", "SALTERN_RET_PORT", "SALTERN_REDIS_URL", "PATH")
    script = f'. "$1"; printf "%s\\n" {" ".join(f"${{{name}}}" for name in names)}'.replace("${", '"${').replace(
        "}", '}"'
    )
    done = subprocess.run(
        ["/bin/sh", "-ec", script, "sh", str(paths.env)],
        env={"PATH": "/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    assert done.stdout.splitlines() == [str(paths.etc), "24505", "24506", redis, "/venv/bin:/bin"]
