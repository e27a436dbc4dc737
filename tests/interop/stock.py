"""Unmodified Salt as processes: minions that join a lab, and masters that minions of ours join.

A stock minion manages this machine, for it knows no other host. So it runs in a mount namespace of its own: its /etc is a copy
in memory, and everything else that it could change is read-only there.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.roles.lab import BIN, COMMAND, STARTUP, Answer, Lab, free_ports, until

#: The releases that the project promises to work with; each is locked in tests/interop or, the newest, in tests/oracle.lock.
VERSIONS = ("3008.3", "3007.17", "3006.30")

#: $1 is a directory of the test's own; the rest is what runs in the namespace.
NAMESPACE = """\
set -e
mount --make-rprivate /
mkdir -p "$1/etc"
mount -t tmpfs tmpfs "$1/etc"
cp -a /etc/. "$1/etc/"
mount --bind "$1/etc" /etc
for directory in /var /root /srv /usr /home /opt /boot; do
    test -d "$directory" || continue
    mount --bind "$directory" "$directory"
    mount -o remount,bind,ro "$directory"
done
shift
exec "$@"
"""

#: Seconds for what takes a command of Salt, or several: each loads for seconds, and for ten times as long on a busy machine.
PATIENCE = 4 * STARTUP


def venv_of(version: str) -> Path:
    """The virtual environment of a release: the oracle's, or one of ``SALTERN_INTEROP``. Skips the test where it names none."""
    name = "SALTERN_ORACLE" if version == VERSIONS[0] else "SALTERN_INTEROP"
    directory = os.environ.get(name)
    if not directory:
        pytest.skip(f"{name} names no directory with salt=={version} (see `make interop`)")
    venv = Path(directory) if version == VERSIONS[0] else Path(directory) / version
    if not (venv / "bin" / "salt-minion").exists():
        pytest.fail(f"{venv} has no bin/salt-minion: run `make interop`")
    return venv


def need_namespace() -> None:
    """Skips the test where no mount namespace can be made."""
    if os.geteuid():
        pytest.skip("a mount namespace needs root")
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let root make a mount namespace")


@dataclass
class StockMinion:
    """An unmodified salt-minion beside a lab. ``end`` ends it with everything that it started."""

    id: str
    venv: Path
    lab: Lab
    #: Options beside addresses and directories.
    options: Mapping[str, Any] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def directory(self) -> Path:
        """Its configuration, and below ``root`` all that it writes."""
        return self.lab.root / self.id

    def words(self) -> list[str]:
        """Its command line."""
        return [str(self.venv / "bin" / "salt-minion"), "-c", str(self.directory)]

    def start(self) -> None:
        """Starts it; its key has to be accepted."""
        self.directory.mkdir(exist_ok=True)
        options = {
            "id": self.id,
            "master": "127.0.0.1",
            "master_port": self.lab.port["ret_port"],
            "publish_port": self.lab.port["publish_port"],
            "root_dir": str(self.directory / "root"),
            "pki_dir": str(self.directory / "root" / "pki"),
            # Below root_dir. The paths of sockets may not be long.
            "sock_dir": "/s",
            "acceptance_wait_time": 1,
            "recon_default": 100,
            "recon_max": 400,
            "return_retry_timer": 1,
            "return_retry_timer_max": 2,
            "log_level": "info",
            "log_file": str(self.directory / "log"),
            "user": "root",
            **self.options,
        }
        (self.directory / "minion").write_text(yaml.safe_dump(options))
        words = ["unshare", "-m", "sh", "-c", NAMESPACE, "namespace", str(self.directory), *self.words()]
        with (self.lab.root / "log" / self.id).open("ab") as log:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.lab.environment,
                start_new_session=True,
            )

    def processes(self) -> list[int]:
        """It and all that it started."""
        return [] if self._process is None else list(_of_session(self._process.pid))

    def end(self) -> None:
        """It takes its time to end by itself; nothing of it is needed any more, and its mounts go with it."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            self._process = None
            # A process that nobody has buried yet counts for it as one that runs: it would not start. Supervisors bury theirs.
            (self.directory / "root" / "var" / "run" / "salt-minion.pid").unlink(missing_ok=True)

    def ended(self) -> bool:
        """Whether it ended by itself."""
        return self._process is not None and self._process.poll() is not None


def _of_session(session: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                if int(fields[3]) == session:
                    yield int(entry.name)


@dataclass
class StockMaster:
    """An unmodified salt-master on loopback, with its own commands."""

    root: Path
    venv: Path
    options: Mapping[str, Any] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.publish_port, self.ret_port = free_ports(2)
        self.etc = self.root / "stock-etc"
        self.etc.mkdir()
        options = {
            "root_dir": str(self.root / "master"),
            "pki_dir": str(self.root / "master" / "pki"),
            "sock_dir": "/s",
            "user": "root",
            "interface": "127.0.0.1",
            "publish_port": self.publish_port,
            "ret_port": self.ret_port,
            "worker_threads": 3,
            "loop_interval": 1,
            "log_level": "info",
            "log_level_logfile": "info",
            **self.options,
        }
        (self.etc / "master").write_text(yaml.safe_dump(options))

    @property
    def environment(self) -> dict[str, str]:
        """Of its processes."""
        return os.environ | {"TERM": "dumb"}

    def start(self) -> None:
        """Starts it, listening."""
        with (self.root / "stock-master.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self.venv / "bin" / "salt-master"), "-c", str(self.etc)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment,
                start_new_session=True,
            )

    def end(self) -> None:
        """Ends the whole tree of its processes."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            self._process = None

    def run(self, *words: str, seconds: float = 2 * COMMAND) -> Answer:
        """One of its commands."""
        command = [str(self.venv / "bin" / words[0]), "-c", str(self.etc), *words[1:]]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=seconds, check=False
        )
        return Answer(" ".join(words), done.returncode, done.stdout, done.stderr)

    def salt(self, *words: str) -> Any:
        """Returns by minion."""
        answer = self.run("salt", "--out", "json", "--static", "-t", "60", *words)
        assert answer.code == 0, str(answer)
        return answer.data

    def runner(self, *words: str) -> Any:
        """What a runner returned."""
        answer = self.run("salt-run", "--out", "json", *words)
        assert answer.code == 0, str(answer)
        return answer.data

    def pending(self) -> Sequence[str]:
        """Keys that wait for acceptance."""
        answer = self.run("salt-key", "-L", "--out", "json")
        found: list[str] = answer.data["minions_pre"] if answer.code == 0 and answer.out else []
        return found

    def accept(self, minion: str) -> None:
        """Accepts a key as soon as it waits."""
        until(lambda: minion in self.pending(), PATIENCE, f"the key of {minion} at the stock master")
        answer = self.run("salt-key", "-y", "-a", minion)
        assert answer.code == 0, str(answer)


class Bus:
    """Everything that happens on a master's event bus from now on. ``run`` is what runs its commands."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], path: Path, run: Callable[..., Answer]
    ) -> None:
        self._path = path
        self._run = run
        with path.open("wb") as out:
            self._process = subprocess.Popen(
                [*command, "state.event"], env=environment, stdin=subprocess.DEVNULL, stdout=out
            )
        heard = False
        try:
            until(self._greeted, PATIENCE, "the event bus is heard")
            heard = True
        finally:
            if not heard:
                # Nobody else knows of it yet.
                self.close()

    @classmethod
    def of_lab(cls, lab: Lab) -> Bus:
        """That of a master of ours."""
        return cls([str(BIN / "salt-run")], lab.environment, lab.root / "events", lab.run)

    @classmethod
    def of_stock(cls, master: StockMaster) -> Bus:
        """That of a stock master."""
        command = [str(master.venv / "bin" / "salt-run"), "-c", str(master.etc)]
        return cls(command, master.environment, master.root / "events", master.run)

    def _greeted(self) -> bool:
        self._run("salt-run", "event.send", "interop/hello")
        return any(tag == "interop/hello" for tag, _ in self.events())

    def events(self, tag: str = "*") -> list[tuple[str, Any]]:
        """(tag, data) of those whose tag fits the glob, in their order."""
        # The last line may be half written.
        lines = [line.partition("\t") for line in self._path.read_text().split("\n")[:-1]]
        return [(name, json.loads(data)) for name, _, data in lines if fnmatch.fnmatchcase(name, tag)]

    def await_event(self, tag: str, wanted: Callable[[Any], bool] = lambda data: True) -> Any:
        """Data of the first that fits."""

        def found() -> list[Any]:
            return [data for _, data in self.events(tag) if wanted(data)]

        return until(found, PATIENCE, f"the event {tag}")[0]

    def close(self) -> None:
        """Stops listening."""
        self._process.kill()
        self._process.wait()
