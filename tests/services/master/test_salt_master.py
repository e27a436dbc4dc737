"""``salt-master`` and ``salt-minion`` as programs of a machine: stock's command line, one configuration, a Redis of its own."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from saltern.kit.config.master import ConfigError, load_master, load_whole_master
from saltern.kit.keys.keygen import make_keys
from saltern.master import own_keys, own_redis
from saltwire.keys import PrivateKey
from tests.ports import free_ports

BIN = Path(sys.executable).parent
PORTS = ("publish_port", "ret_port", "control_port", "event_pull_port", "event_pub_port", "workers_port", "health_port")
#: Seconds until a process has done something.
SOON = 60.0


@dataclass(frozen=True)
class Host:
    """A host with a configuration of a master and a minion, all of whose files are below one directory."""

    root: Path
    ports: dict[str, int]

    @property
    def etc(self) -> Path:
        return self.root / "etc" / "salt"

    def configure(self, **options: object) -> None:
        self.etc.mkdir(parents=True, exist_ok=True)
        common = {"root_dir": str(self.root), "log_level": "info"}
        master = {**common, **self.ports, "worker_threads": 2, **options}
        minion = {**common, "id": "web1", "master": "127.0.0.1", "acceptance_wait_time": 1}
        minion |= {"master_port": self.ports["ret_port"], "publish_port": self.ports["publish_port"]}
        (self.etc / "master").write_text(yaml.safe_dump(master))
        (self.etc / "minion").write_text(yaml.safe_dump(minion))

    def words(self, program: str, *words: str) -> list[str]:
        code = f"import sys; sys.argv[0] = {program!r}; from saltern.start import {program.replace('-', '_')} as run; run()"
        return [str(BIN / "python"), "-c", code, *words]

    def run(self, program: str, *words: str, expect: int = 0) -> str:
        env = {name: value for name, value in os.environ.items() if not name.startswith("SALT")}
        done = subprocess.run(
            self.words(program, *words, "-c", str(self.etc)),
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SOON,
            check=False,
        )
        assert done.returncode == expect, done.stdout + self.logs()
        return done.stdout

    def pid_of(self, program: str) -> int:
        try:
            return int((self.root / f"var/run/{program}.pid").read_text())
        except (OSError, ValueError):
            return 0

    def logs(self) -> str:
        return "".join(path.read_text()[-3000:] for path in (self.root / "var/log/salt").glob("*"))

    def end(self, program: str) -> None:
        if pid := self.pid_of(program):
            os.kill(pid, signal.SIGTERM)
            until(lambda: not Path(f"/proc/{pid}").exists(), f"{program} ends")

    def probe(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["health_port"], timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError as error:
            return 0, str(error)
        finally:
            connection.close()


def until(condition, what: str):
    deadline = time.monotonic() + SOON
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {SOON:g} s: {what}"
        time.sleep(0.1)
    return value


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    one = Host(tmp_path, dict(zip(PORTS, free_ports(len(PORTS)), strict=True)))
    one.configure()
    yield one
    for program in ("salt-minion", "salt-master"):
        one.end(program)


@pytest.mark.roles
@pytest.mark.redis
def test_a_master_and_a_minion_in_the_background(host: Host) -> None:
    host.run("salt-master", "-d")
    ready = until(lambda: host.probe("/readyz")[0] == 200, "all roles are ready")
    assert ready, host.logs()
    host.run("salt-minion", "-d")
    until(lambda: "web1" in host.run("salt-key", "-l", "un"), "the key waits")
    host.run("salt-key", "-yA")
    assert "True" in until(lambda: _answer(host), "the minion answers")
    # What was asked of the master is in its own Redis, which other tools find without an option.
    assert "0 faults" in host.run("saltern", "store", "check")
    assert load_master(str(host.etc)).redis_url == f"unix://{host.root}/var/lib/saltern/redis/redis.sock"
    assert (host.root / "var/lib/saltern/redis").stat().st_mode & 0o777 == 0o700
    # Each role's metrics are on one port; a role that is killed is replaced.
    processes = {
        line.split('process="')[1].split('"')[0]
        for line in host.probe("/metrics")[1].splitlines()
        if "process=" in line
    }
    assert {"master", "publisher", "reqserver", "mworker", "mworker-1", "mworker-2"} <= processes
    os.kill(_role(host, "publisher"), signal.SIGKILL)
    until(lambda: "publisher" in host.logs() and host.probe("/readyz")[0] == 200, "the publisher is back")
    assert "True" in until(lambda: _answer(host), "the minion answers again")
    # A reload replaces every role, and not Redis.
    redis, before = _role(host, "redis"), _role(host, "reqserver")
    os.kill(host.pid_of("salt-master"), signal.SIGHUP)
    until(lambda: "all processes are replaced" in host.logs(), "the reload")
    assert (_role(host, "redis"), _role(host, "reqserver") == before) == (redis, False)
    # An end leaves no process and no socket, and keeps what the master remembers.
    pids = [_role(host, "redis"), _role(host, "reqserver"), host.pid_of("salt-master")]
    host.end("salt-master")
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
    assert not (host.root / "var/run/salt-master.pid").exists()
    assert not (host.root / "var/lib/saltern/redis/redis.sock").exists()
    host.run("salt-master", "-d")
    until(lambda: host.probe("/readyz")[0] == 200, "all roles are ready again")
    assert "web1" in host.run("salt-key", "-l", "acc")


def _answer(host: Host) -> str:
    done = subprocess.run(
        host.words("salt", "-c", str(host.etc), "web1", "test.ping"),
        capture_output=True,
        text=True,
        timeout=SOON,
        check=False,
    )
    return done.stdout if done.returncode == 0 else ""


def _role(host: Host, name: str) -> int:
    """Process id of a child of the master by its name in /proc. Redis may be Valkey where both are installed."""
    names = ("redis", "valkey") if name == "redis" else (name,)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")
            command = fields[0].partition("(")[2]
            if int(fields[2].split()[1]) == host.pid_of("salt-master") and command.startswith(names):
                return int(entry.name)
        except (OSError, IndexError):
            continue
    raise AssertionError(f"{name} does not run")


WRONG = [
    ({"health_port": "x"}, 78, "health_port"),
    ({"key_dir": "/etc/keys"}, 78, "salt-master runs all roles"),
    ({"user": "nobody-of-this-name"}, 78, "there is no user 'nobody-of-this-name'"),
    ({"redis_dir": "/x" * 60}, 78, "longer than 107 bytes"),
    ({"redis_dir": "/proc/redis"}, 78, "redis_dir: "),
]


@pytest.mark.roles
@pytest.mark.parametrize(("options", "code", "said"), WRONG)
def test_what_it_cannot_start_with_is_said(host: Host, options: dict[str, object], code: int, said: str) -> None:
    make_keys(host.etc / "keys")
    host.configure(**{"root_dir": "/", "log_file": str(host.root / "log"), **options})
    assert said in host.run("salt-master", expect=code)


@pytest.mark.parametrize("program", ["salt-master", "salt-minion"])
def test_a_wrong_configuration_is_said_before_the_background(host: Host, program: str) -> None:
    for name in ("master", "minion"):
        (host.etc / name).write_text("log_level: 5\nhealth_port: x\n")
    assert "health_port" in host.run(program, "-d", expect=78)
    assert "there are no arguments" in host.run(program, "now", expect=64)


def test_only_minions_come_from_elsewhere_unless_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "master").write_text("worker_threads: 3\n")
    whole = load_whole_master(str(tmp_path), env={})
    assert (whole.interface, whole.internal_interface, whole.worker_processes, whole.redis_url) == (
        "0.0.0.0",
        "127.0.0.1",
        3,
        "",
    )
    (tmp_path / "master").write_text("internal_interface: 0.0.0.0\nworker_processes: 1\nredis_url: redis://r/0\n")
    said = load_whole_master(str(tmp_path), env={})
    assert (said.internal_interface, said.worker_processes, said.redis_url) == ("0.0.0.0", 1, "redis://r/0")


def test_a_stock_masters_key_is_kept(tmp_path: Path) -> None:
    key = PrivateKey.generate(2048)
    (tmp_path / "pki").mkdir()
    (tmp_path / "pki/master.pem").write_bytes(key.to_pem())
    (tmp_path / "master").write_text(f"pki_dir: {tmp_path}/pki\n")
    options = load_whole_master(str(tmp_path), env={})
    own_keys.complete(options, str(tmp_path))
    for role in ("publisher", "mworker"):
        found = PrivateKey.from_pem((tmp_path / "keys" / role / "master.pem").read_bytes())
        assert found.public.pem == key.public.pem
    assert (tmp_path / "keys/cli/curve.secret").exists()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    own_keys.complete(options, str(tmp_path))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_without_a_program_redis_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "master").write_text(f"root_dir: {tmp_path}\n")
    options = load_whole_master(str(tmp_path), env={})
    monkeypatch.setattr("saltern.master.own_redis.find_program", lambda: None)
    with pytest.raises(ConfigError, match="install Debian's `redis-server`, or set redis_url"):
        own_redis.prepared(options, tmp_path / "keys")
    monkeypatch.setattr("saltern.master.own_redis.find_program", lambda: Path(shutil.which("true") or ""))
    assert own_redis.prepared(options, tmp_path / "keys")
    assert "unixsocket redis.sock" in (tmp_path / "var/lib/saltern/redis/redis.conf").read_text()
