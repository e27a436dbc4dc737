"""A master taken apart: Redis, the six roles and some minions, each a process of its own on loopback.

Every port was free a moment ago, every minion manages a plain directory tree, and nothing outlives ``Lab.close``. What a
process says is in ``<root>/log/<name>``; ``Lab.logs`` shows the ends of it, for the report of a failed test.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml

from saltern.kit.config.master import MasterOptions, load_master
from saltern.kit.keys.keygen import make_keys
from saltern.kit.keys.redis_logins import USERS_FILE, complete_logins
from saltern.kit.process.redis_server import version_of
from saltern.lab.files import make_host
from statecore.host.content.guarded_tree import GuardedTree
from tests.conftest import await_port, redis_program
from tests.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]

#: In the order of their start, which does not matter to them.
ROLES = ("eventpublisher", "reqserver", "mworker", "publisher", "reactor", "maintenance")

#: Programs of the commands and roles: those of the interpreter that runs the tests.
BIN = Path(sys.executable).parent

PORTS = ("publish_port", "ret_port", "control_port", "event_pull_port", "event_pub_port", "workers_port")

#: Seconds for a process to become ready on a busy machine.
STARTUP = 60.0

#: Seconds that one command of an operator may take.
COMMAND = 90.0

#: Seconds for something to happen in the background.
SOON = 45.0

#: A module as users write them for Salt: its job is held by files of the test, so that roles can be killed in the middle.
HELD_MODULE = '''\
"""Holds a job until the test lets it go."""

import os
import time


def wait(directory, seconds=300):
    """True once DIRECTORY/go is there; says DIRECTORY/started-<minion> before."""
    with open(os.path.join(directory, "started-" + __opts__["id"]), "w"):
        pass
    deadline = time.monotonic() + seconds
    while not os.path.exists(os.path.join(directory, "go")):
        if time.monotonic() > deadline:
            raise RuntimeError("nobody let go")
        time.sleep(0.02)
    return True
'''


def until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """The first true value of ``condition``. Fails the test at the deadline, naming ``what``."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not (value := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"{what}: not within {seconds:g} seconds")
        pause.wait(0.02)
    return value


@dataclass
class Answer:
    """What a command said, and how it ended."""

    command: str
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """stdout as JSON."""
        try:
            return json.loads(self.out)
        except ValueError:
            pytest.fail(f"not JSON: {self}")

    def __str__(self) -> str:
        return f"{self.command}: exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


@dataclass
class Lab:
    """One master with its minions. ``start_all`` starts what ``close`` ends."""

    root: Path
    minions: tuple[str, ...] = ("web1", "web2")
    #: Options of the master beside ports, addresses and trees.
    options: Mapping[str, Any] = field(default_factory=dict)
    workers: int = 1
    #: Numbers of reqservers and event publishers. The second one has the address 127.0.0.2 for links, and shares minions' port.
    reqservers: int = 1
    eventpublishers: int = 1
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    #: Texts that no log may contain, beside the private keys: tokens, passwords, secrets of pillar.
    secrets: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        names = [*PORTS, "redis", *ROLES, *self._replicas(), *self.minions]
        self.port = dict(zip(names, self.free_ports(len(names)), strict=True))
        self.tree = self.root / "srv"
        self.etc = self.root / "etc"
        shutil.copytree(ROOT / "examples" / "srv", self.tree)
        (self.tree / "salt" / "_modules").mkdir()
        (self.tree / "salt" / "_modules" / "held.py").write_text(HELD_MODULE)
        for directory in ("etc", "log", "redis"):
            (self.root / directory).mkdir()
        master = {
            "cachedir": str(self.root / "master-cache"),
            "extension_modules": str(self.root / "master-extmods"),
            "file_roots": {"base": [str(self.tree / "salt")]},
            "pillar_roots": {"base": [str(self.tree / "pillar")]},
            "interface": "127.0.0.1",
            "internal_interface": "127.0.0.1",
            "redis_url": f"redis://127.0.0.1:{self.port['redis']}/0",
            "log_level": "info",
            "auto_accept": True,
            "worker_silence": 2,
            "reactor": [{"site/refresh": [str(self.tree / "reactor" / "refresh.sls")]}],
            **{name: self.port[name] for name in PORTS},
            **self._several(),
            **self.options,
        }
        (self.etc / "master").write_text(yaml.safe_dump(master))
        make_keys(self.etc / "keys")
        self._make_redis_users()
        for index, minion in enumerate(self.minions):
            self._make_minion(minion, index)

    def _make_redis_users(self) -> None:
        """A user of Redis for each role, as everywhere. Tests themselves use the user ``default``, who may do everything here."""
        program = redis_program()
        tree = GuardedTree(self.etc / "keys")
        complete_logins(tree, f"redis://127.0.0.1:{self.port['redis']}/0", version_of(program))
        tests = tree.read(USERS_FILE).replace(
            b"user default off resetpass ~* &* +@all", b"user default on nopass ~* &* +@all"
        )
        assert b"user default on nopass" in tests
        (self.root / "users.acl").write_bytes(tests)

    def refused_commands(self) -> list[str]:
        """What Redis refused to roles, because their users may not do it; [] if it does not run."""
        with contextlib.suppress(redis.RedisError), redis.Redis(port=self.port["redis"], socket_timeout=5) as client:
            return sorted(
                {
                    f"{row['username']}: {row['reason']} {row['object']} ({row['context']})"
                    for row in client.acl_log()
                    # A wrong password is no missing right: tests give one.
                    if row["reason"] != "auth"
                }
            )
        return []

    def free_ports(self, count: int) -> list[int]:
        """Ports for what this lab starts."""
        return free_ports(count)

    def _replicas(self) -> list[str]:
        """Names of roles that there are a second time; ``port`` has a port for each."""
        several = {"mworker": self.workers, "reqserver": self.reqservers, "eventpublisher": self.eventpublishers}
        return [f"{role}{number}" for role, count in several.items() for number in range(2, count + 1)]

    def _several(self) -> dict[str, Any]:
        """Options of a master with several reqservers or event publishers."""
        counts = {"reqserver": self.reqservers, "eventpublisher": self.eventpublishers}
        hosts = {
            f"{role}_host": [_host(number) for number in range(1, count + 1)]
            for role, count in counts.items()
            if count > 1  # the last release knows no list
        }
        return {**hosts, **({"ret_port_shared": True} if self.reqservers > 1 else {})}

    @property
    def roles(self) -> tuple[str, ...]:
        """Names of the master's processes."""
        return (*ROLES, *self._replicas())

    def _make_minion(self, minion: str, index: int) -> None:
        make_host(self.host(minion), minion, index)
        directory = self.root / "minions" / minion
        directory.mkdir(parents=True)
        options = {
            "id": minion,
            "master": "127.0.0.1",
            "master_port": self.port["ret_port"],
            "pki_dir": str(directory / "pki"),
            "cachedir": str(directory / "cache"),
            "host_root": str(self.host(minion)),
            "log_level": "info",
            # A test waits for what an operator would hardly notice.
            "acceptance_wait_time": 1,
            "recon_default": 100,
            "recon_max": 400,
            "return_retry_timer": 1,
            "return_retry_timer_max": 2,
            "auth_timeout": 2,
        }
        (directory / "minion").write_text(yaml.safe_dump(options))

    def host(self, minion: str) -> Path:
        """Root of the host that a minion manages."""
        return self.root / "hosts" / minion

    def cache(self, minion: str) -> Path:
        """A minion's cache directory."""
        return self.root / "minions" / minion / "cache"

    @property
    def master_options(self) -> MasterOptions:
        """The master's options, as its roles read them."""
        return load_master(str(self.etc), env={})

    # ------------------------------------------------------------------------------------------------------------- processes

    def start_all(self, *names: str) -> None:
        """Redis and these roles and minions (default: all of them), ready."""
        wanted = names or (*self.roles, *self.minions)
        self.start_redis()
        for name in wanted:
            self.start(name)
        self.await_ready(*wanted)

    def start_redis(self) -> None:
        """Redis, with an append-only file: what it acknowledged survives it."""
        self.launch_redis()
        await_port(self.port["redis"], self.processes["redis"])

    def launch_redis(self) -> None:
        """The same, without waiting."""
        words = [redis_program(), "--port", str(self.port["redis"]), "--bind", "127.0.0.1"]
        words += ["--dir", str(self.root / "redis"), "--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        words += ["--aclfile", str(self.root / "users.acl")]
        self._launch("redis", words)

    def start(self, name: str) -> None:
        """Starts a role or a minion; ``await_ready`` waits for it."""
        role = "minion" if name in self.minions else name.rstrip("0123456789")
        directory = self.root / "minions" / name if role == "minion" else self.etc
        self._launch(name, [str(self.bin_of(name) / "saltern"), role, "-c", str(directory)])

    def _launch(self, name: str, words: Sequence[str]) -> None:
        number = re.fullmatch("(?:reqserver|eventpublisher)([0-9]+)", name)
        environment = self.environment_of(name) | {
            "SALTERN_HEALTH_PORT": str(self.port[name]),
            **({"SALTERN_INTERNAL_INTERFACE": _host(int(number[1]))} if number else {}),
            # A crash below Python is no silent death.
            "PYTHONFAULTHANDLER": "1",
        }
        with (self.root / "log" / name).open("ab") as log:
            self.processes[name] = subprocess.Popen(
                list(words), env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def environment(self) -> dict[str, str]:
        """Of every process of this lab; ``SALTERN_TEST_LAB`` tells them from all others of the machine."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SALTERN_", "SALT_"))}
        own = {"SALT_CONFIG_DIR": str(self.etc), "SALTERN_TEST_LAB": str(self.root), "TERM": "dumb"}
        return kept | own | {"PATH": f"{BIN}:{kept.get('PATH', '')}"}

    def environment_of(self, name: str) -> dict[str, str]:
        """Of one process, by its name; of an operator's commands as ``cli``."""
        return self.environment

    def bin_of(self, name: str) -> Path:
        """Where the commands of a process are, by the same names."""
        return BIN

    def kill(self, name: str, number: int = signal.SIGKILL) -> int:
        """Ends a process by a signal; returns its exit code. A minion's zygote and jobbers are not signalled."""
        process = self.processes.pop(name)
        assert process.poll() is None, f"{name} had ended by itself with {process.returncode}\n{self.logs()}"
        process.send_signal(number)
        return process.wait(STARTUP)

    def restart(self, name: str, number: int = signal.SIGKILL) -> None:
        """Kills and starts."""
        self.kill(name, number)
        if name == "redis":
            self.start_redis()
        else:
            self.start(name)

    def probe(self, name: str, path: str = "/readyz") -> tuple[int, str]:
        """(status, body) of a process's probe; status 0 when nothing answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port[name], timeout=5)
        with contextlib.closing(connection):
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, answer.read().decode().strip()
            except (OSError, http.client.HTTPException) as error:
                return 0, str(error)

    def await_ready(self, *names: str, seconds: float = STARTUP) -> None:
        """Waits until all of these are ready; says which is not, and why."""
        deadline = time.monotonic() + seconds
        pause = threading.Event()
        while True:
            answers = {name: self.probe(name) for name in names}
            waiting = {name: why for name, (status, why) in answers.items() if status != 200}
            if not waiting:
                return
            ended = [name for name in waiting if self.processes[name].poll() is not None]
            if ended or time.monotonic() > deadline:
                pytest.fail(f"ended: {ended}; not ready within {seconds:g} s: {waiting}\n{self.logs()}")
            pause.wait(0.05)

    def memory(self, name: str) -> int:
        """Resident bytes of a process."""
        status = Path(f"/proc/{self.processes[name].pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        return int(line.split()[1]) * 1024

    def metric(self, name: str, metric: str) -> float:
        """The sum of a metric over its labels."""
        lines = self.probe(name, "/metrics")[1].splitlines()
        return sum(
            float(line.rsplit(" ", 1)[1]) for line in lines if line.partition("{")[0].partition(" ")[0] == metric
        )

    def jobbers(self) -> list[str]:
        """JIDs that some minion says to run, by its proc files."""
        return [path.name for minion in self.minions for path in (self.cache(minion) / "proc").glob("[0-9]*")]

    def dead(self) -> dict[str, int]:
        """Processes that ended by themselves, with their exit codes."""
        return {name: code for name, one in self.processes.items() if (code := one.poll()) is not None}

    def close(self) -> None:
        """Ends everything that this lab started, forked jobbers included. Fails the test if a log contains a secret, or if Redis
        refused a command to a role's user.
        """
        refused = self.refused_commands()
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.processes.clear()
        until(lambda: not self._kill_leftovers(), STARTUP, "the lab's processes ended")
        assert refused == [], f"masterstore.access lacks a right of a role: {refused}"
        assert self.leaks() == []

    def leaks(self) -> list[str]:
        """Return a sentence for each secret that a log of this lab contains: private keys, and ``secrets``."""
        found = {secret: f"a secret of the test ({secret[:4]}...)" for secret in self.secrets}
        for path in self.root.rglob("*"):
            if path.is_file() and path.suffix in (".pem", ".secret", ".key"):
                # A file that holds a private key has mode 0600; words of this length are its parts.
                words = re.findall(r"[!-~]{30,}", path.read_text("latin-1")) if path.stat().st_mode & 0o077 == 0 else []
                found |= dict.fromkeys(words, f"a part of {path}")
        logs = {path: path.read_text(errors="replace") for path in (self.root / "log").iterdir() if path.is_file()}
        return [
            f"{log} contains {what}" for log, text in logs.items() for secret, what in found.items() if secret in text
        ]

    def _kill_leftovers(self) -> list[int]:
        mark = f"SALTERN_TEST_LAB={self.root}".encode()
        left = [pid for pid, marks in _environments() if mark in marks]
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left

    # -------------------------------------------------------------------------------------------------------------- commands

    def started(self, *words: str, **more: Any) -> subprocess.Popen[str]:
        """A command of an operator, in the background."""
        return subprocess.Popen(
            [str(self.bin_of("cli") / words[0]), *words[1:]],
            env=self.environment_of("cli"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **more,
        )

    def finished(self, running: subprocess.Popen[str], seconds: float = COMMAND) -> Answer:
        """Its answer. Fails the test when it takes too long."""
        try:
            out, err = running.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            running.kill()
            out, err = running.communicate()
            pytest.fail(f"not ended within {seconds:g} s: {Answer(str(running.args), running.returncode, out, err)}")
        return Answer(" ".join(map(str, running.args)), running.returncode, out, err)  # type: ignore[arg-type]

    def run(self, *words: str, seconds: float = COMMAND) -> Answer:
        """A command of an operator and its answer, whatever its exit code."""
        return self.finished(self.started(*words), seconds)

    def ok(self, *words: str, seconds: float = COMMAND) -> Answer:
        """The same; fails the test for an exit code other than 0."""
        answer = self.run(*words, seconds=seconds)
        assert answer.code == 0, str(answer)
        return answer

    def salt(self, *words: str) -> Any:
        """Returns by minion of a ``salt`` that must succeed."""
        return self.ok("salt", "--out", "json", "--static", *words).data

    def runner(self, *words: str) -> Any:
        """What a runner returned that must succeed."""
        return self.ok("salt-run", "--out", "json", *words).data

    def call(self, minion: str, *words: str) -> Answer:
        """salt-call beside a minion, with its keys and cache."""
        return self.run("salt-call", "-c", str(self.root / "minions" / minion), *words)

    def keys(self) -> dict[str, list[str]]:
        """Minion keys as salt-key lists them."""
        found: dict[str, list[str]] = self.ok("salt-key", "-L", "--out", "json").data
        return found

    def pings(self) -> None:
        """Every minion answers, and nothing has died meanwhile."""
        assert self.salt("*", "test.ping") == dict.fromkeys(self.minions, True)
        assert self.dead() == {}, self.logs()

    # ------------------------------------------------------------------------------------------------------------------ looks

    def redis(self) -> redis.Redis:
        """The lab's Redis, with text answers."""
        return redis.Redis(port=self.port["redis"], decode_responses=True)

    def log(self, name: str) -> str:
        """All that a process said."""
        path = self.root / "log" / name
        return path.read_text(errors="replace") if path.exists() else ""

    def logs(self, lines: int = 25) -> str:
        """The last words of everybody."""
        parts = [f"dead: {self.dead()}"]
        for path in sorted((self.root / "log").iterdir()):
            tail = path.read_text(errors="replace").splitlines()[-lines:]
            parts += [f"--- {path.name}", *tail]
        return "\n".join(parts)

    def tracebacks(self) -> list[str]:
        """Names of processes that said "Traceback" or crashed below Python."""
        names = [path.name for path in sorted((self.root / "log").iterdir())]
        return [name for name in names if "Traceback" in self.log(name) or "Fatal Python error" in self.log(name)]


def _host(number: int) -> str:
    """Return the address for links of the first, second ... of several processes of a role."""
    return f"127.0.0.{number}"


class Held:
    """A job on every minion that waits for a word of the test. The minions must have synced their modules."""

    _numbers = itertools.count()

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.directory = lab.root / f"held-{next(self._numbers)}"
        self.directory.mkdir()

    def words(self, target: str = "*") -> tuple[str, ...]:
        """What runs it as a function."""
        return (target, "held.wait", str(self.directory))

    def state_words(self, target: str = "*") -> tuple[str, ...]:
        """What applies the same as a state."""
        name = f"held{self.directory.name.rpartition('-')[2]}"
        text = f"hold:\n  module.run:\n    - held.wait:\n      - {self.directory}\n"
        (self.lab.tree / "salt" / f"{name}.sls").write_text(text)
        return (target, "state.apply", name)

    def await_started(self) -> None:
        """Waits until it runs on every minion."""

        def started() -> bool:
            return all((self.directory / f"started-{minion}").exists() for minion in self.lab.minions)

        until(started, SOON, "the held job runs on every minion")

    def publish(self) -> str:
        """The JID of a held job that runs."""
        said = self.lab.ok("salt", "--async", *self.words()).out
        found = re.fullmatch(r"Executed command with job ID: (\d{20})\n", said)
        assert found, said
        self.await_started()
        return found[1]

    def let_go(self) -> None:
        """It ends by itself."""
        (self.directory / "go").touch()


def _environments() -> Iterator[tuple[int, list[bytes]]]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # A process that has ended and waits for its parent has no environment.
            yield int(entry.name), (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
