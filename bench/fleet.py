"""A fleet at each master, one after the other: sign-in storms, pings of everybody, CPU of the master, idle memory.

python -m bench.fleet --salt .oracle [--minions 500] [--storm 1000] [--rounds 5] [--workers N] [--memory]

Seconds depend on what else the machine does; CPU seconds and PSS much less. bench.crowd says what of a storm is timed; the CPU of
simulated minions, which real ones bring with them, is a row of its own. Both masters are as they come: five workers of Salt's, the
lab's workers of ours, everything of both on this machine, Redis and the lab's supervisor included. --workers gives both the same
number. Memory is told in both ways: PSS counts a page that several processes share once, the sum of RSS as often as there are
processes, as ps adds it up.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import yaml

from bench.run import family, pss
from bench.systems import MINIONS, OURS, System, salt, saltern

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")

_CROWD_SECONDS = 900.0


def parts(system: System) -> tuple[list[int], list[int]]:
    """Return (process ids of the master, process ids of its two real minions)."""
    everything = family(system.roots.values())
    heads = [pid for pid in everything if _is_minion(pid)]
    minions = set(family(heads))
    return [pid for pid in everything if pid not in minions], sorted(minions)


def _is_minion(pid: int) -> bool:
    line = words(pid)
    return any(word.endswith(b"salt-minion") for word in line) or b"minion" in line


def words(pid: int) -> list[bytes]:
    """Return the command line of a process; an empty list if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def cpu(pids: list[int]) -> float:
    """Return the CPU seconds that these processes and their ended children used so far."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            total += sum(int(one) for one in fields[11:15])
    return total / _TICKS


def said(crowd: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the next line of JSON that a crowd's process prints, parsed as a map. Raises RuntimeError if the process has ended."""
    assert crowd.stdout is not None
    line = crowd.stdout.readline()
    if not line:
        raise RuntimeError(f"the crowd has ended with {crowd.wait(60)}; what it said is above")
    found: dict[str, Any] = json.loads(line)
    return found


def tell(crowd: subprocess.Popen[str]) -> None:
    """Write the line that a crowd waits for before it continues."""
    assert crowd.stdin is not None
    crowd.stdin.write("go\n")
    crowd.stdin.flush()


@contextlib.contextmanager
def crowd(
    system: System, name: str, count: int, *, listening: bool = False, stock: bool = False
) -> Iterator[list[dict[str, Any]]]:
    """Connect ``count`` simulated minions to a master; yield the results of their two storms, a list of maps.

    ``listening``: the minions also run jobs. ``stock``: they sign in as stock minions; at a stock master they always do.
    """
    options = yaml.safe_load((system.config_dir / "master").read_text("utf-8"))
    line = [sys.executable, "-m", "bench.crowd", "--name", name, "--count", str(count)]
    line += ["--ret", str(options["ret_port"]), "--publish", str(options["publish_port"])]
    line += ["--tokens"] if stock or system.name != OURS else []
    running = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert running.stdin is not None
    try:
        storms = []
        for _ in range(2):
            said(running)
            master, _ = parts(system)
            before = cpu(master)
            tell(running)
            storms.append(said(running))
            # With what the master does when everybody has an answer: its events, its caches.
            storms[-1] |= said(running)
            storms[-1]["cpu"] = cpu(master) - before
        if listening:
            tell(running)
            said(running)
        yield storms
    finally:
        running.stdin.close()
        running.wait(60)


def pinged(system: System, count: int) -> tuple[float, float]:
    """Return (seconds of one `salt '*' test.ping` of all minions, CPU seconds that the master used for it)."""
    before, started = cpu(parts(system)[0]), time.perf_counter()
    printed = system.run("salt", "*", "test.ping", "--out=json", "--static", "-t", "120", seconds=_CROWD_SECONDS)
    seconds = time.perf_counter() - started
    answers = json.loads(printed)
    missing = count + len(MINIONS) - sum(value is True for value in answers.values())
    if missing:
        raise RuntimeError(f"{system.name}: {missing} of {count} did not return")
    return seconds, cpu(parts(system)[0]) - before


def idle(system: System) -> dict[str, float]:
    """Return {row name: megabytes of memory} of the idle master and of one idle minion, as PSS and as RSS."""
    for _ in range(2):
        system.run("salt", "*", "test.ping", "-t", "60")
    # What is loaded at the first job is loaded; nothing waits for anything.
    time.sleep(5)
    master, real = parts(system)
    return {
        "idle master": sum(pss(pid) for pid in master) / 1024,
        "idle minion": sum(pss(pid) for pid in real) / 1024 / len(MINIONS),
        "idle master rss": sum(_rss(pid) for pid in master) / 1024,
        "idle minion rss": sum(_rss(pid) for pid in real) / 1024 / len(MINIONS),
    }


def _rss(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * _PAGE / 1024
    except OSError:
        return 0.0


def measured(opened: AbstractContextManager[System], minions: int, storm: int, rounds: int) -> dict[str, float]:
    """Return {row name of ROWS: number} of all measurements of one system. With ``rounds`` 0: only its memory."""
    with opened as system:
        found = idle(system)
        if not rounds:
            return found
        with crowd(system, "fleet", minions, listening=True):
            # The first fills caches on both sides, and waits for who still connects.
            system.run("salt", "*", "test.ping", "--out=quiet", "-t", "60", seconds=_CROWD_SECONDS)
            taken = [pinged(system, minions) for _ in range(rounds)]
        found["ping seconds"] = statistics.median(seconds for seconds, _ in taken)
        found["ping cpu"] = statistics.median(spent for _, spent in taken) / (minions + len(MINIONS)) * 1000
        found |= stormed(system, "storm", storm)
        # A stock minion has the master decrypt a token when it comes back.
        found |= {f"stock {name}": value for name, value in stormed(system, "stock", storm, stock=True).items()}
    return found


def stormed(system: System, name: str, count: int, *, stock: bool = False) -> dict[str, float]:
    """Return {row name of ROWS: number} of the two sign-in storms of ``count`` new minions."""
    found = {}
    with crowd(system, name, count, stock=stock) as storms:
        for which, one in zip(("first", "again"), storms, strict=True):
            found[f"{which} seconds"], found[f"{which} cpu"] = one["seconds"], one["cpu"]
            found[f"{which} late"] = one["late"] + one["refused"]
            found[f"{which} crowd"] = one["crowd"]
    return found


ROWS = (
    ("idle master", "MB", "idle memory of the master, all its processes (PSS)"),
    ("idle master rss", "MB", "  the sum of their RSS"),
    ("idle minion", "MB", "idle memory of one minion (PSS)"),
    ("idle minion rss", "MB", "  the sum of RSS of its processes"),
    ("first seconds", "s", "storm: sign in for the first time, all at once"),
    ("first late", "", "  of these later than 5 s, or never"),
    ("first cpu", "s", "  CPU of the master"),
    ("first crowd", "s", "  CPU of the simulated minions meanwhile"),
    ("again seconds", "s", "storm: reconnect, all at once"),
    ("again late", "", "  of these later than 5 s, or never"),
    ("again cpu", "s", "  CPU of the master"),
    ("again crowd", "s", "  CPU of the simulated minions meanwhile"),
    ("stock again seconds", "s", "  the same of stock minions at both masters"),
    ("stock again cpu", "s", "  CPU of the master"),
    ("ping seconds", "s", "salt '*' test.ping, complete"),
    ("ping cpu", "ms", "  CPU of the master for each return"),
)


def main() -> int:
    """Measure both systems and print the table; return 0. A measurement that fails raises an exception."""
    parser = argparse.ArgumentParser(
        prog="bench.fleet", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--salt", required=True, type=Path, help="virtual environment with salt")
    parser.add_argument("--minions", type=int, default=500)
    parser.add_argument("--storm", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, help="workers of both masters; else each has as many as it comes with")
    parser.add_argument("--memory", action="store_true", help="measure idle memory alone")
    arguments = parser.parse_args()
    sizes = (arguments.minions, arguments.storm, 0 if arguments.memory else arguments.rounds)
    workers = arguments.workers
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        ours = measured(saltern(Path(directory) / "saltern", workers), *sizes)
        theirs = measured(salt(Path(directory) / "salt", arguments.salt.absolute(), workers), *sizes)
    crowds = "" if arguments.memory else f"; {sizes[0]} minions pinged, storms of {sizes[1]}"
    has = f"{workers} workers each" if workers else "workers as they come"
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {has}{crowds}\n")
    print(f"{'':52} {'Saltern':>10} {'Salt':>10}   ratio")
    for name, unit, what in ROWS:
        if name not in ours:
            continue
        mine, other = ours[name], theirs[name]
        ratio = f"1/{other / mine:.1f}" if unit and mine else ""
        print(f"{what:52} {mine:8.3g} {unit:2} {other:8.3g} {unit:2}  {ratio}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
