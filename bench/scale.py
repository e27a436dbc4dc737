"""Measures one master with 1,000 to 10,000 simulated minions, and with one and two of each role. Prints tables, draws curves.

python -m bench.scale [--minions 1000,3000,10000] [--of-each 1,2] [--spread 15] [--pictures DIRECTORY]

For each number of minions a master is started anew, each role as a process of its own, with Redis, on loopback. Then:

first       all minions sign in for the first time, at once
restart     all roles are killed and started again; Redis stays
sign-in     all minions sign in again, beginning at times that lie evenly in --spread seconds: the master has a new key
restart 2   all roles are killed and started again, while the minions are connected
reconnect   all connections are open again, each 1 to 11 s after it ended, as stock minions' are. The sessions go on
ping        `salt '*' test.ping`, the whole command
highstate   a job whose returns are 20 kB each: seconds until the last is in the job cache
memory      PSS of each role, as it started and in the end

Simulated minions (bench.crowd) use the same cores as the master: their CPU seconds are a column of their own. ``late`` are minions
whose sign-in took longer than the five seconds after which a stock minion asks again, and connections that took so long to open.
With two of each role, each of two publishers has half of the minions, as a front spreads them; the kernel spreads them over the
reqservers.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.chart import Curve, line_chart
from bench.fleet import cpu, said, tell
from bench.run import family, pss
from tests.roles.lab import Lab

#: Simulated minions of one process: each has two connections, and a process may open 20,000 files on many machines.
_OF_A_CROWD = 2500

#: Seconds for all returns of a job.
_RETURN_SECONDS = 900.0

#: Seconds for a command of an operator.
_COMMAND_SECONDS = 900.0

#: Options of the master: what protects it from one address must not slow down ten thousand minions of one machine.
_OPTIONS = {
    "log_level": "error",
    "minion_requests_per_second": 0,
    "address_requests_per_second": 0,
    "address_connections_per_second": 0,
    "worker_silence": 4,
    "reactor": [],
}


@dataclass
class ScaledMaster(Lab):
    """A master with so many of each role: publishers, too, each with its own port."""

    publishers: int = 1

    def _replicas(self) -> list[str]:
        more = {"publisher": self.publishers, "reactor": self.publishers, "maintenance": self.publishers}
        return super()._replicas() + [f"{role}{n}" for role, count in more.items() for n in range(2, count + 1)]

    @property
    def publish_ports(self) -> list[int]:
        """The ports of the publishers for minions."""
        return [self.port["publish_port"], *self._more_ports]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._more_ports = self.free_ports(self.publishers - 1)

    def environment_of(self, name: str) -> dict[str, str]:
        """Return the environment of a process, by its name."""
        found = super().environment_of(name)
        if name.startswith("publisher") and name != "publisher":
            found["SALTERN_PUBLISH_PORT"] = str(self.publish_ports[int(name.removeprefix("publisher")) - 1])
        return found

    def pids(self) -> dict[str, list[int]]:
        """Return {role: process ids of all processes of this role}, Redis among them."""
        found: dict[str, list[int]] = {}
        for name, process in self.processes.items():
            found.setdefault(name.rstrip("0123456789"), []).extend(family([process.pid]))
        return found

    def spent(self) -> dict[str, float]:
        """Return {role: CPU seconds so far}."""
        return {role: cpu(pids) for role, pids in self.pids().items()}

    def memory_by_role(self) -> dict[str, float]:
        """Return {role: megabytes (PSS) of its processes}."""
        return {role: sum(pss(pid) for pid in pids) / 1024 for role, pids in self.pids().items()}

    def restart_roles(self) -> None:
        """Kill all roles at once and start them again; Redis stays. Wait until they are ready."""
        for name in self.roles:
            self.processes[name].kill()
        for name in self.roles:
            self.processes.pop(name).wait()
        for name in self.roles:
            self.start(name)
        self.await_ready(*self.roles)


@dataclass(frozen=True)
class Crowds:
    """Simulated minions in several processes (bench.crowd), which do everything at the same time."""

    running: list[subprocess.Popen[str]]

    def prepared(self) -> None:
        """Wait until the minions of the next storm have made their requests."""
        for one in self.running:
            said(one)

    def storm(self) -> dict[str, float]:
        """Begin the storm that was prepared, and return its numbers: seconds, slowest, late, refused, crowd (CPU seconds)."""
        for one in self.running:
            tell(one)
        told = [said(one) | said(one) for one in self.running]
        worst = {name: max(float(one[name]) for one in told) for name in ("seconds", "slowest")}
        return worst | {name: sum(float(one[name]) for one in told) for name in ("late", "refused", "crowd")}

    def connected(self) -> dict[str, float]:
        """Subscribe all minions; from now on they answer jobs. Called again: wait until each connection was opened once more.

        Return the numbers: seconds that the slowest connection took to open, and the number of late ones.
        """
        for one in self.running:
            tell(one)
        told = [said(one) for one in self.running]
        return {"slowest": max(float(one["slowest"]) for one in told), "late": sum(float(one["late"]) for one in told)}


def shares(count: int, publishers: int) -> list[int]:
    """Return the numbers of minions of each process: equal but for one, at most _OF_A_CROWD, the same sum for each publisher."""
    processes = publishers * math.ceil(count / publishers / _OF_A_CROWD)
    return [count // processes + (number < count % processes) for number in range(processes)]


@contextlib.contextmanager
def crowds(master: ScaledMaster, count: int, spread: float) -> Iterator[Crowds]:
    """Run ``count`` simulated minions while the ``with`` block runs. ``spread``: seconds in which they reconnect."""
    running: list[subprocess.Popen[str]] = []
    ports = master.publish_ports
    try:
        for number, size in enumerate(shares(count, len(ports))):
            words = [sys.executable, "-m", "bench.crowd", "--name", f"m{number}-", "--spread", str(spread)]
            words += ["--count", str(size), "--ret", str(master.port["ret_port"])]
            words += ["--publish", str(ports[number % len(ports)])]
            running.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        yield Crowds(running)
    finally:
        for one in running:
            assert one.stdin is not None
            one.stdin.close()
        for one in running:
            one.wait(60)


@dataclass
class Row:
    """What was measured with one number of minions and of each role."""

    minions: int
    of_each: int
    #: Phase -> its numbers: seconds, and where there are some slowest, late, refused, crowd.
    phases: dict[str, dict[str, float]] = field(default_factory=dict)
    #: Phase -> role -> CPU seconds.
    cpu: dict[str, dict[str, float]] = field(default_factory=dict)
    #: When -> role -> megabytes.
    memory: dict[str, dict[str, float]] = field(default_factory=dict)

    @contextlib.contextmanager
    def phase(self, master: ScaledMaster, name: str) -> Iterator[dict[str, float]]:
        """Measure the ``with`` block as a phase. The block may add numbers to the map that it gets."""
        before, began = master.spent(), time.monotonic()
        found: dict[str, float] = {}
        yield found
        self.phases[name] = {"seconds": time.monotonic() - began} | found
        self.cpu[name] = {role: spent - before.get(role, 0.0) for role, spent in master.spent().items()}
        numbers = ", ".join(f"{what} {value:.1f}" for what, value in self.phases[name].items())
        print(f"{self.minions} minions, {self.of_each} of each: {name}: {numbers}", file=sys.stderr, flush=True)


def measured(directory: Path, minions: int, of_each: int, spread: float) -> Row:
    """Start a master, measure it with ``minions`` simulated minions, and end it. Raises RuntimeError if minions are missing."""
    row = Row(minions, of_each)
    master = ScaledMaster(
        directory,
        minions=(),
        options=_OPTIONS,
        workers=of_each,
        reqservers=of_each,
        eventpublishers=of_each,
        publishers=of_each,
    )
    try:
        master.start_all()
        row.memory["started"] = master.memory_by_role()
        with crowds(master, minions, spread) as fleet:
            fleet.prepared()
            with row.phase(master, "first") as found:
                found |= fleet.storm()
            fleet.prepared()
            with row.phase(master, "restart"):
                master.restart_roles()
            with row.phase(master, "sign-in") as found:
                found |= fleet.storm()
            fleet.connected()
            with row.phase(master, "restart 2"):
                master.restart_roles()
            with row.phase(master, "reconnect") as found:
                found |= fleet.connected()
            master.run("salt", "*", "test.ping", "--out=quiet", "-t", "300", seconds=_COMMAND_SECONDS)
            with row.phase(master, "ping"):
                printed = master.ok("salt", "*", "test.ping", "--out=json", "--static", "-t", "300", seconds=600)
            answered = sum(value is True for value in printed.data.values())
            with row.phase(master, "highstate") as found:
                found["bytes"] = float(_returned(master, minions))
            row.memory["in the end"] = master.memory_by_role()
        if answered != minions:
            raise RuntimeError(f"{answered} of {minions} minions answered a ping")
        return row
    finally:
        master.close()


def _returned(master: ScaledMaster, minions: int) -> int:
    """Publish a job whose returns are long, wait for all returns, and return the bytes of one."""
    job = master.ok("salt", "*", "state.apply", "--async", seconds=_COMMAND_SECONDS)
    jid = job.out.split()[-1]
    redis = master.redis()
    deadline = time.monotonic() + _RETURN_SECONDS
    while (count := int(redis.hlen(f"ret:{jid}"))) < minions:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{count} of {minions} returns of {jid} came within {_RETURN_SECONDS:g} s")
        time.sleep(0.05)  # between two looks; the deadline is above
    return len(redis.hget(f"ret:{jid}", redis.hkeys(f"ret:{jid}")[0]) or "")


#: (name of the curve, phase, number of the phase), for the picture of times.
_CURVES = (
    ("first sign-in", "first", "seconds"),
    ("slowest sign-in again", "sign-in", "slowest"),
    ("reconnect of all", "reconnect", "seconds"),
    ("ping of all", "ping", "seconds"),
    ("returns of 20 kB", "highstate", "seconds"),
)


def pictures(rows: list[Row]) -> dict[str, str]:
    """Return {file name: SVG} of the curves: seconds of each phase, CPU for each minion, and memory, against minions."""
    found = {}
    for of_each in sorted({row.of_each for row in rows}):
        those = sorted((row for row in rows if row.of_each == of_each), key=lambda row: row.minions)
        roles = "one of each role" if of_each == 1 else f"{of_each} of each role"
        seconds: dict[str, Curve] = {
            name: [(row.minions, row.phases[phase][what]) for row in those] for name, phase, what in _CURVES
        }
        found[f"scale-seconds-{of_each}.svg"] = line_chart(f"Seconds, {roles}", "minions", "s", seconds)
        names = sorted({role for row in those for role in row.memory["in the end"]})
        memory: dict[str, Curve] = {
            role: [(row.minions, row.memory["in the end"].get(role, 0.0)) for row in those] for role in names
        }
        found[f"scale-memory-{of_each}.svg"] = line_chart(f"Memory, {roles}", "minions", "MB (PSS)", memory)
    return found


def tables(rows: list[Row]) -> str:
    """Return the measurements as text: a line for each phase and role."""
    lines = []
    for row in rows:
        lines.append(f"\n{row.minions:,} minions, {row.of_each} of each role")
        lines.append(f"{'':12}{'s':>8}{'slowest':>9}{'late':>7}{'crowd':>8}   CPU seconds of each role")
        for name, found in row.phases.items():
            spent = ", ".join(f"{role} {value:.1f}" for role, value in row.cpu[name].items() if value >= 0.05)
            slowest, late = (f"{found[key]:.1f}" if key in found else "" for key in ("slowest", "late"))
            crowd = f"{found['crowd']:.1f}" if "crowd" in found else ""
            lines.append(
                f"{name:12}{found['seconds']:8.1f}{slowest:>9}{late.removesuffix('.0'):>7}{crowd:>8}   {spent}"
            )
        for when, roles in row.memory.items():
            told = ", ".join(f"{role} {value:.0f}" for role, value in roles.items())
            lines.append(f"MB {when:12} {sum(roles.values()):.0f}: {told}")
    return "\n".join(lines)


def _numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",")]


def main() -> int:
    """Print the tables; return 0. A measurement that fails raises an exception, after the tables of those before."""
    parser = argparse.ArgumentParser(
        prog="bench.scale", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minions", type=_numbers, default=[1000, 3000, 10000])
    parser.add_argument("--of-each", type=_numbers, default=[1, 2])
    parser.add_argument("--spread", type=float, default=15.0, help="seconds in which minions reconnect")
    parser.add_argument("--pictures", type=Path, help="directory for the curves (SVG)")
    parser.add_argument("--json", type=Path, help="file for all numbers")
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    rows: list[Row] = []
    try:
        for of_each in arguments.of_each:
            for minions in arguments.minions:
                with tempfile.TemporaryDirectory(prefix="bench-") as directory:
                    rows.append(measured(Path(directory), minions, of_each, arguments.spread))
    finally:
        print(tables(rows))
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
        for name, text in pictures(rows).items():
            (arguments.pictures / name).write_text(text, "utf-8")
    if arguments.json:
        arguments.json.write_text(json.dumps([vars(row) for row in rows], indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
