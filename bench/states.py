"""Measures the state system beside real Salt: `salt-call --local` on trees of many states. Prints times, memory and ratios.

python -m bench.states --salt .oracle [--rounds 5] [--sizes 100,1000,5000,10000] [--shapes plain,chain,fan,in,jinja] [--cold]
    [--pictures DIRECTORY]

Each measurement is a whole process with its output discarded; the two systems alternate. The floor is the time that libyaml
needs to parse the same bytes. The cachedir stays between runs, as on a host that applies its states every half hour; with
--cold it is empty each time, as on a host's first run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from bench.chart import Curve, line_chart

_FUNCTIONS = ("state.show_low_sls", "state.apply")

_SECONDS = 600


def _plain(size: int) -> str:
    return "".join(f"s{n}:\n  test.nop:\n    - name: n{n}\n" for n in range(size))


def _required(size: int, of: Callable[[int], int], how: str = "require") -> str:
    first = "s0:\n  test.nop: []\n"
    return first + "".join(f"s{n}:\n  test.nop:\n    - {how}:\n      - test: s{of(n)}\n" for n in range(1, size))


def _jinja(size: int) -> str:
    return (
        "{% from 'map.jinja' import names with context %}\n"
        "{% import_yaml 'defaults.yaml' as defaults %}\n"
        f"{{% for n in range({size}) %}}\n"
        "s{{ n }}:\n  test.nop:\n    - name: {{ names.prefix }}{{ n }}-{{ defaults.suffix }}\n"
        "{% if n % 10 == 1 %}    - require:\n      - test: s{{ n - 1 }}\n{% endif %}\n"
        "{% endfor %}\n"
    )


#: Name -> the SLS of so many states.
SHAPES: Mapping[str, Callable[[int], str]] = {
    "plain": _plain,
    "chain": lambda size: _required(size, lambda n: n - 1),
    "fan": lambda size: _required(size, lambda n: 0),
    "in": lambda size: _required(size, lambda n: 0, "require_in"),
    "jinja": _jinja,
}

_BESIDE = {
    "map.jinja": "{% set names = {'prefix': 'n-' ~ grains['id'] ~ '-'} %}\n",
    "defaults.yaml": "suffix: x\n",
}


@dataclass(frozen=True)
class Taken:
    """Measured time in seconds and peak memory in megabytes of one process."""

    seconds: float
    #: Peak of its resident memory.
    megabytes: float


def take(command: Sequence[str]) -> Taken:
    """Run a command to its end and return its Taken (time and memory). Raises RuntimeError if it fails or takes too long."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if process.returncode or seconds > _SECONDS:
        raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode} after {seconds:.0f} s")
    return Taken(seconds, usage.ru_maxrss / 1024)


def call(binary: Path, directory: Path, tree: Path, *arguments: str) -> list[str]:
    """Return the command line of `salt-call --local` for this state tree; writes its minion configuration first."""
    config = directory / "etc"
    config.mkdir(parents=True, exist_ok=True)
    options = {
        "id": "bench",
        "cachedir": str(directory / "cache"),
        "pki_dir": str(directory / "pki"),
        "file_client": "local",
        "file_roots": {"base": [str(tree)]},
        "pillar_roots": {"base": [str(directory / "pillar")]},
        "log_level": "error",
    }
    if binary.parent != Path(sys.executable).parent:
        # Sockets and logs of real Salt have places of their own.
        options["root_dir"] = str(directory)
    # JSON is YAML.
    (config / "minion").write_text("".join(f"{name}: {json.dumps(value)}\n" for name, value in options.items()))
    return [str(binary), "-c", str(config), "--local", *arguments]


def floor(text: str) -> float:
    """Return the seconds that libyaml needs to parse the text: the shortest of three tries."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        for _event in yaml.parse(text, Loader=yaml.CSafeLoader):
            pass
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def measures(shapes: Sequence[str], sizes: Sequence[int], root: Path) -> Iterator[tuple[str, Path, list[str], float]]:
    """Yield (row name, state tree, arguments of salt-call, seconds that libyaml needs) for each row of the table."""
    empty = root / "empty"
    empty.mkdir()
    yield "test.ping", empty, ["test.ping"], 0.0
    for shape in shapes:
        for size in sizes:
            tree = root / f"{shape}-{size}"
            tree.mkdir()
            for name, text in {"many.sls": SHAPES[shape](size), **_BESIDE}.items():
                (tree / name).write_text(text)
            # What Jinja makes of it is as long as the plain tree.
            bound = floor(SHAPES["plain" if shape == "jinja" else shape](size))
            for function in _FUNCTIONS:
                yield f"{function} {shape} {size}", tree, [function, "many"], bound


def main() -> int:
    """Print the table; return 0. A measurement that fails raises an exception."""
    parser = argparse.ArgumentParser(
        prog="bench.states", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--salt", required=True, type=Path, help="virtual environment with salt")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true", help="cachedirs are empty at each start")
    parser.add_argument("--sizes", default="100,1000,5000,10000")
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument(
        "--pictures", type=Path, help="directory for curves of time and memory (SVG), one for each shape"
    )
    arguments = parser.parse_args()
    binaries = {
        "saltern": Path(sys.executable).parent / "salt-call",
        "salt": arguments.salt.absolute() / "bin" / "salt-call",
    }
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; medians of {arguments.rounds}\n")
    print(f"{'':32} {'Saltern':>8} {'Salt':>8} {'ratio':>6} {'memory':>7} {'':>7} {'ratio':>6} {'libyaml':>8}")
    sizes = [int(size) for size in arguments.sizes.split(",")]
    medians: dict[str, tuple[list[float], list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        root = Path(directory)
        for what, tree, words, bound in measures(arguments.shapes.split(","), sizes, root):
            taken: dict[str, list[Taken]] = {name: [] for name in binaries}
            for turn in range(arguments.rounds + 1):
                for name, binary in binaries.items():
                    if arguments.cold:
                        shutil.rmtree(root / name / "cache", ignore_errors=True)
                    one = take(call(binary, root / name, tree, *words))
                    # The first warms caches.
                    if turn:
                        taken[name].append(one)
            seconds = [statistics.median(one.seconds for one in taken[name]) for name in binaries]
            memory = [statistics.median(one.megabytes for one in taken[name]) for name in binaries]
            medians[what] = seconds, memory
            print(
                f"{what:32} {seconds[0]:7.3f}s {seconds[1]:7.3f}s {seconds[1] / seconds[0]:5.1f}x"
                f" {memory[0]:5.0f}MB {memory[1]:5.0f}MB {memory[1] / memory[0]:5.1f}x {bound:7.3f}s",
                flush=True,
            )
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
        for shape in arguments.shapes.split(","):
            rows = {size: medians[f"state.apply {shape} {size}"] for size in sizes}
            for name, text in pictures(shape, rows).items():
                (arguments.pictures / name).write_text(text, "utf-8")
    return 0


def pictures(shape: str, rows: Mapping[int, tuple[list[float], list[float]]]) -> dict[str, str]:
    """Return {file name: SVG} with the curves of both systems against the number of states.

    ``rows``: number of states -> (seconds, megabytes) of ``state.apply``, each of Saltern and of Salt.
    """
    names = ("Saltern", "Salt")
    found = {}
    for number, (what, unit) in enumerate((("seconds", "s"), ("memory", "MB, peak"))):
        curves: dict[str, Curve] = {
            name: [(size, taken[number][which]) for size, taken in sorted(rows.items())]
            for which, name in enumerate(names)
        }
        title = f"state.apply, {what} of a whole salt-call --local ({shape})"
        found[f"states-{what}-{shape}.svg"] = line_chart(title, "states", unit, curves)
    return found


if __name__ == "__main__":
    raise SystemExit(main())
