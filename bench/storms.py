"""Measures sign-in storms at both masters alternately, for a machine that is not idle: both storms of a pair see the same load.

python -m bench.storms --salt .oracle [--minions 1000] [--pairs 3]

bench.crowd defines the measured time; ratios are medians of the pairs' ratios. Each master has minions of its own kind.
Saltern's master also has stock minions, which make it decrypt a token when they reconnect.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.fleet import crowd
from bench.systems import System, salt, saltern

_STORMS = ("first sign-in", "reconnect")


def storms(system: System, name: str, count: int, *, stock: bool) -> list[dict[str, Any]]:
    """Return a list of two maps, the results of the first sign-in storm and of the reconnect storm of ``count`` new minions."""
    with crowd(system, name, count, stock=stock) as taken:
        return taken


def main() -> int:
    """Print the ratios; return 0. A storm that fails raises an exception."""
    parser = argparse.ArgumentParser(
        prog="bench.storms", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--salt", required=True, type=Path, help="virtual environment with salt")
    parser.add_argument("--minions", type=int, default=1000)
    parser.add_argument("--pairs", type=int, default=3)
    arguments = parser.parse_args()
    ratios: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as directory,
        saltern(Path(directory) / "saltern") as ours,
        salt(Path(directory) / "salt", arguments.salt.absolute()) as theirs,
    ):
        print(
            f"{os.cpu_count()} cores; storms of {arguments.minions}: seconds (CPU of master, of minions), late or refused"
        )
        sides = {"its own": (ours, False), "stock's": (ours, True), theirs.name: (theirs, True)}
        for pair in range(arguments.pairs):
            taken = {
                side: storms(one, f"storm{pair}-{number}-", arguments.minions, stock=stock)
                for number, (side, (one, stock)) in enumerate(sides.items())
            }
            for number, what in enumerate(_STORMS):
                *mine, other = (row[number] for row in taken.values())
                for side, one in zip(sides, mine, strict=False):
                    for measure in ("seconds", "cpu"):
                        ratios[what, side, measure].append(other[measure] / one[measure])
                said = "   ".join(f"{side} {_shown(row[number])}" for side, row in taken.items())
                print(f"load {os.getloadavg()[0]:4.1f}  {what:14} {said}", flush=True)
    for (what, side, measure), found in ratios.items():
        print(f"{what:14} {side:8} {measure:8} 1/{statistics.median(found):.2f}")
    return 0


def _shown(storm: dict[str, Any]) -> str:
    spent = f"{storm['cpu']:5.2f}, {storm['crowd']:4.2f}"
    return f"{storm['seconds']:5.2f} ({spent}), {storm['late'] + storm['refused']:3}"


if __name__ == "__main__":
    raise SystemExit(main())
