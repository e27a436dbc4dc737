"""Starts Saltern and real Salt for benchmarks, each with a master and two minions on loopback, in separate directories."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from saltern.lab.plan import Paths
from saltern.lab.supervisor import Supervisor

#: Both apply the same tree to plain directories of their own.
TREE = {
    "top.sls": "base:\n  '*':\n    - many\n",
    "many.sls": (
        "{% for n in range(200) %}\n"
        "file-{{ n }}:\n  file.managed:\n"
        "    - name: {{ grains['bench_root'] }}/f{{ n }}\n    - contents: line {{ n }}\n    - makedirs: true\n"
        "{% if n %}    - require:\n      - file: file-{{ n - 1 }}\n{% endif %}\n"
        "{% endfor %}\n"
    ),
}
MINIONS = ("bench1", "bench2")

#: Names of the systems.
OURS, STOCK = "Saltern", "Salt"
_START_SECONDS = 300.0

#: Programs of the lab, and some to spare.
_PROGRAMS = 20


@dataclass(frozen=True)
class System:
    """A running system to be measured, Saltern or Salt: a master with two minions."""

    name: str
    #: Where its commands are.
    bin: Path
    config_dir: Path
    #: Prints, as JSON, the seconds of each of COUNT round trips inside one process: ``COUNT`` is its only argument.
    client: list[str]
    #: Processes that belong to it, with all their children.
    roots: Mapping[str, int]
    environment: Mapping[str, str] = field(default_factory=dict)

    def command(self, name: str, *arguments: str) -> list[str]:
        """Return the command line of one of this system's commands."""
        return [str(self.bin / name), "-c", str(self.config_dir), *arguments]

    def run(self, name: str, *arguments: str, seconds: float = 120) -> str:
        """Run a command and return its stdout. Raises CalledProcessError if it fails."""
        return stdout_of(self.command(name, *arguments), os.environ | self.environment, seconds)


def stdout_of(command: Sequence[str], environment: Mapping[str, str] | None = None, seconds: float = 120) -> str:
    """Run a command and return its stdout. Raises CalledProcessError if it fails; a note has what it printed on stderr."""
    try:
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=seconds, check=True
        ).stdout
    except subprocess.CalledProcessError as error:
        error.add_note(error.stderr)
        raise


def free_ports(count: int) -> list[int]:
    """Return ``count`` ports of loopback on which nothing listens."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _row_of_ports(count: int) -> int:
    """Return the first of ``count`` consecutive ports on which nothing listens."""
    for first in range(23520, 32000, count):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise RuntimeError(f"no {count} ports in a row are free between 23520 and 32000")


def write_tree(directory: Path) -> Path:
    """Write the state tree that both systems apply, and return its directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in TREE.items():
        (directory / name).write_text(text, "utf-8")
    return directory


@contextlib.contextmanager
def saltern(
    directory: Path, workers: int | None = None, options: Mapping[str, object] | None = None
) -> Iterator[System]:
    """Run Saltern's lab with the benchmark's tree while the ``with`` block runs, which gets the System.

    ``workers``: number of workers; None: the lab's default. ``options``: further options of the master.
    """
    write_tree(directory / "srv" / "salt")
    for name in ("pillar", "reactor"):
        (directory / "srv" / name).mkdir(parents=True, exist_ok=True)
    (directory / "srv" / "pillar" / "top.sls").write_text("base: {}\n", "utf-8")
    lab = directory / "lab"
    more = lab / "etc" / "master.d"
    more.mkdir(parents=True)
    # As the other master: bench.fleet brings minions that nobody knows, and a line of log for each costs a twentieth.
    _write(more / "bench.conf", {"auto_accept": True, "log_level": "error", **(options or {})})
    binaries = Path(sys.executable).parent
    words = ["--dir", str(lab), "--tree", str(directory / "srv"), "--minions", ",".join(MINIONS), "--no-apply"]
    words += ["--workers", str(workers)] if workers else []
    names = ("publish", "ret", "control", "event-pull", "event-pub", "workers", "redis")
    for name, port in zip(names, free_ports(len(names)), strict=True):
        words += [f"--{name}-port", str(port)]
    # Each program has a port for its probes.
    words += ["--health-port", str(_row_of_ports(_PROGRAMS + (workers or 0)))]
    up = [str(binaries / "saltern"), "lab", "up", *words]
    subprocess.run(up, check=True, stdout=subprocess.DEVNULL, timeout=_START_SECONDS)
    try:
        root = Supervisor(Paths(lab), binaries).pid()
        assert root is not None, "the lab's supervisor does not answer"
        config = lab / "etc"
        client = [sys.executable, "-m", "bench.client_saltern", str(config)]
        system = System(OURS, binaries, config, client, {"everything": root})
        for minion in MINIONS:
            system.run("salt", minion, "grains.setval", "bench_root", "/bench")
        yield system
    finally:
        subprocess.run([str(binaries / "saltern"), "lab", "down", "--dir", str(lab)], check=False, timeout=60)


@contextlib.contextmanager
def salt(
    directory: Path, venv: Path, workers: int | None = None, options: Mapping[str, object] | None = None
) -> Iterator[System]:
    """Run real Salt while the ``with`` block runs, which gets the System. Its options are Salt's defaults, except paths and ports.

    New minion keys are accepted. ``workers``: number of workers; None: Salt's default. ``options``: further options of the master.
    """
    publish, ret = free_ports(2)
    config = directory / "etc"
    config.mkdir(parents=True)
    tree = write_tree(directory / "srv")
    common = {"user": _user(), "log_level": "error", "log_level_logfile": "error"}
    master = common | {
        "root_dir": str(directory / "master"),
        "interface": "127.0.0.1",
        "publish_port": publish,
        "ret_port": ret,
        "auto_accept": True,
        "file_roots": {"base": [str(tree)]},
    }
    master |= {"worker_threads": workers} if workers else {}
    master |= options or {}
    _write(config / "master", master)
    with contextlib.ExitStack() as stack:
        log = stack.enter_context((directory / "log").open("wb"))
        roots = {"master": _started(stack, [str(venv / "bin" / "salt-master"), "-c", str(config)], log)}
        for minion in MINIONS:
            own = directory / minion
            own.mkdir()
            root = own / "bench"
            root.mkdir()
            of_minion = common | {
                "id": minion,
                "root_dir": str(own),
                "master": "127.0.0.1",
                "master_port": ret,
                "publish_port": publish,
                "acceptance_wait_time": 1,
                "grains": {"bench_root": str(root)},
            }
            _write(own / "minion", of_minion)
            roots[minion] = _started(stack, [str(venv / "bin" / "salt-minion"), "-c", str(own)], log)
        # -P: modules of this directory have names of libraries that Salt imports, such as requests.
        client = [str(venv / "bin" / "python"), "-P", str(Path(__file__).parent / "client_salt.py"), str(config)]
        system = System(STOCK, venv / "bin", config, client, roots)
        _await_minions(system)
        yield system


def _started(stack: contextlib.ExitStack, command: list[str], log: object) -> int:
    process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)  # type: ignore[call-overload]

    def end() -> None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()

    stack.callback(end)
    return int(process.pid)


def _await_minions(system: System) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(subprocess.SubprocessError, ValueError):
            answers = json.loads(system.run("salt", "*", "test.ping", "--out=json", "--static", "-t", "3"))
            if all(answers.get(minion) is True for minion in MINIONS):
                return
        time.sleep(0.5)  # between two questions; the deadline is above
    raise RuntimeError(f"{system.name}: minions did not answer within {_START_SECONDS} s")


def _write(path: Path, options: Mapping[str, object]) -> None:
    # JSON is YAML.
    path.write_text("".join(f"{name}: {json.dumps(value)}\n" for name, value in options.items()), "utf-8")


def _user() -> str:
    return os.environ.get("USER") or ("root" if os.geteuid() == 0 else str(os.geteuid()))
