"""Prints times and memory of both systems with their ratio. The systems take turns, so that both see the same machine load.

python -m bench.run --salt .oracle [--rounds 10] [--workers 5]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.systems import System, salt, saltern, stdout_of


@dataclass(frozen=True)
class Measure:
    """A row of the benchmark's table: name, unit, and the function that measures a system."""

    what: str
    unit: str
    #: Values of one round.
    take: Callable[[System], list[float]]
    #: Rounds are worth so many of the usual ones; slow measures take fewer.
    share: float = 1.0


def wall(name: str, *arguments: str) -> Callable[[System], list[float]]:
    """Return a function that runs this command on a system and returns its seconds, as a list of one number."""

    def take(system: System) -> list[float]:
        start = time.perf_counter()
        system.run(name, *arguments)
        return [time.perf_counter() - start]

    return take


def round_trips(system: System) -> list[float]:
    """Return the milliseconds of 25 round trips in one client process; five earlier ones fill caches and are left out."""
    return [1000 * seconds for seconds in json.loads(stdout_of([*system.client, "30"]))[5:]]


def memory(system: System) -> list[float]:
    """Return the megabytes (PSS: shared pages count once) of all processes of the system."""
    return [sum(pss(pid) for pid in family(system.roots.values())) / 1024]


def idle_cpu(system: System) -> list[float]:
    """Return the milliseconds of CPU time a second of all processes of the system while nobody asks it anything."""
    before, began = _cpu(system), time.monotonic()
    time.sleep(_IDLE_SECONDS)
    return [1000 * (_cpu(system) - before) / (time.monotonic() - began)]


def _cpu(system: System) -> float:
    ticks = 0
    for pid in family(system.roots.values()):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            # Its own and those of its ended children.
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


#: Seconds for which an idle system is watched.
_IDLE_SECONDS = 30.0

MEASURES = (
    Measure("salt '*' test.ping, whole command", "s", wall("salt", "*", "test.ping")),
    Measure("one round trip inside a running client", "ms", round_trips, share=0.3),
    Measure("salt-call --local test.ping", "s", wall("salt-call", "--local", "test.ping"), share=0.5),
    Measure("200 files with requisites, nothing to do", "s", wall("salt", "*", "state.apply"), share=0.3),
    Measure("memory of master and two minions", "MB", memory, share=0.1),
    Measure("idle CPU time of master and two minions", "ms/s", idle_cpu, share=0.2),
)


def family(roots: Iterable[int]) -> list[int]:
    """Return the process ids of the given processes and all their descendants."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = list(roots)
    for pid in found:
        found += children.get(pid, [])
    return found


def pss(pid: int) -> float:
    """Return the kilobytes (PSS: shared pages count once) of a process; 0 if it has ended."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    except OSError:
        return 0.0
    return float(next(line.split()[1] for line in rollup.splitlines() if line.startswith("Pss:")))


def main() -> int:
    """Print the table; return 0. A measurement that fails raises an exception."""
    parser = argparse.ArgumentParser(
        prog="bench.run", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--salt", required=True, type=Path, help="virtual environment with salt")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--workers", type=int, default=5, help="of both masters")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as directory,
        saltern(Path(directory) / "saltern", arguments.workers) as ours,
        salt(Path(directory) / "salt", arguments.salt.absolute(), arguments.workers) as theirs,
    ):
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {arguments.workers} workers each; medians\n")
        print(f"{'':45} {ours.name:>10} {theirs.name:>10}   ratio")
        for measure in MEASURES:
            taken: dict[str, list[float]] = {ours.name: [], theirs.name: []}
            # Once each to warm up: the first state.apply makes the files.
            for system in (ours, theirs):
                measure.take(system)
            for _ in range(max(1, round(arguments.rounds * measure.share))):
                for system in (ours, theirs):
                    taken[system.name] += measure.take(system)
            mine, other = (statistics.median(taken[system.name]) for system in (ours, theirs))
            print(
                f"{measure.what:45} {mine:8.3g} {measure.unit} {other:8.3g} {measure.unit}  1/{other / mine:.1f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
