"""Measures printing of returns beside real Salt: seconds to format a highstate, and the start-up cost of the outputters.

python -m bench.output --salt .oracle [--rounds 5] [--sizes 100,1000,5000]

Each system formats the same running dictionaries in one process; the medians of the rounds are shown. Salt's time without
its first call is given, too: that call loads the outputters.
"""

from __future__ import annotations

import argparse
import base64
import json
import pickle
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from saltern.kit.command.output import OutputOptions, render
from saltern.kit.command.output.color import palette

_SALT = Path(__file__).resolve().parents[1] / "tests" / "services" / "output" / "salt_outputters.py"

#: What is printed -> outputter and options, under Salt's names.
KINDS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "full": ("highstate", {}),
    "full, coloured": ("highstate", {"color": True}),
    "changes": ("highstate", {"state_output": "changes"}),
    "terse": ("highstate", {"state_output": "terse"}),
    "nested": ("nested", {}),
    "json": ("json", {}),
    "yaml": ("yaml", {}),
}


def running(size: int) -> dict[str, Any]:
    """Return a running dictionary of ``size`` states: every second one has changes, every tenth failed."""
    return {
        "web1": {
            f"file_|-id{n}_|-/etc/file{n}_|-managed": {
                "__id__": f"id{n}",
                "__sls__": "web",
                "__run_num__": n,
                "name": f"/etc/file{n}",
                "result": n % 10 != 0,
                "comment": f"File /etc/file{n} updated",
                "changes": {"diff": "--- \n+++ \n@@ -1 +1 @@\n-old\n+new\n", "mode": "0644"} if n % 2 else {},
                "start_time": "00:16:25.474309",
                "duration": 3.307,
            }
            for n in range(size)
        }
    }


def _options(outputter: str, options: Mapping[str, Any]) -> OutputOptions:
    return OutputOptions(
        out=outputter, colors=palette(options.get("color", False)), state_output=options.get("state_output", "full")
    )


def _median(rounds: int, once: Callable[[], float]) -> float:
    return statistics.median(once() for _ in range(rounds))


def _ours(data: Any, options: OutputOptions) -> tuple[float, str]:
    started = time.perf_counter()
    text = render(data, options)
    return time.perf_counter() - started, text


class _Salt:
    def __init__(self, venv: Path) -> None:
        self._process = subprocess.Popen(
            [venv / "bin" / "python", _SALT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def show(self, data: Any, outputter: str, options: Mapping[str, Any]) -> tuple[float, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(base64.b64encode(pickle.dumps((data, outputter, dict(options)))).decode() + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return answer["seconds"], answer["text"]

    def close(self) -> None:
        self._process.communicate(timeout=60)


def _start(script: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", script], check=True)
    return time.perf_counter() - started


def main() -> int:
    """Measure both systems and print the tables. Return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--salt", type=Path, required=True, help="virtual environment of real Salt")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", default="100,1000,5000")
    flags = parser.parse_args()
    salt = _Salt(flags.salt)
    salt.show({"web1": True}, "nested", {})
    print(f"{'states':>7}  {'':<16}{'Salt, s':>9}{'ours, s':>9}{'ratio':>8}  same text")
    for size in map(int, flags.sizes.split(",")):
        data = running(size)
        for kind, (outputter, options) in KINDS.items():
            theirs = _median(flags.rounds, lambda: salt.show(data, outputter, options)[0])  # noqa: B023  # called at once
            ours = _median(flags.rounds, lambda: _ours(data, _options(outputter, options))[0])  # noqa: B023
            same = salt.show(data, outputter, options)[1] == _ours(data, _options(outputter, options))[1]
            print(f"{size:>7}  {kind:<16}{theirs:>9.3f}{ours:>9.4f}{theirs / ours:>8.1f}  {'yes' if same else 'NO'}")
    salt.close()
    print("\nmilliseconds of a process, median")
    for name, script in {
        "python": "",
        "the commands' modules": "import saltern.kit.command.output.flags",
        "... and nested": "import saltern.kit.command.output.flags, saltern.kit.command.output.nested",
        "... and highstate": "import saltern.kit.command.output.flags, saltern.kit.command.output.highstate",
    }.items():
        print(f"{name:<24}{_median(flags.rounds * 4, lambda: _start(script)) * 1000:>8.1f}")  # noqa: B023
    return 0


if __name__ == "__main__":
    sys.exit(main())
