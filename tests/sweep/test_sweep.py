"""Each execution function that Salt has too, called beside Salt's: does it raise or return, what, and with which exit code.

``make sweep``; it takes minutes. Both sides make their calls in throw-away copies of this machine. ``SWEEP="file.* git.*"``
limits the functions, and ``SWEEP_REPORT=FILE`` writes all differences.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Oracle
from tests.sweep import calls, machine
from tests.sweep.calls import Row

pytestmark = [pytest.mark.sweep, pytest.mark.timeout(7200)]

_HERE = Path(__file__).parent
_TOP = _HERE.parents[1]
_DATA: Mapping[str, Any] = yaml.safe_load((_HERE / "differences.yaml").read_text())
ROWS = [
    Row(**{key: tuple(each) if isinstance(each, list) else each for key, each in row.items()}) for row in _DATA["rows"]
]
SKIP: Mapping[str, str] = _DATA["skip"]

SIDES = ("ours", "salt")

#: Seconds for all calls of one side.
_SECONDS = 3000.0


class _Sides:
    """Runs both sides' programs in copies of the machine."""

    def __init__(self, oracle: Oracle, directory: Path) -> None:
        self.results = directory / "results"
        self._directory = directory
        python_path = ":".join(str(_TOP / each) for each in ("libs", "services", ".", "tests/sweep"))
        self._commands = {
            "ours": ([sys.executable, "-m", "tests.sweep.our_side"], {"PYTHONPATH": python_path}),
            "salt": ([str(oracle.venv / "bin/python"), str(_HERE / "salt_side.py")], {"PYTHONPATH": str(_HERE)}),
        }

    def run_both(self, what: str, files: Mapping[str, Path]) -> None:
        """Run both programs at the same time. ``files``: side -> the file that it is told."""
        with ThreadPoolExecutor() as pool:
            errors = list(pool.map(lambda side: self._run(side, what, files[side]), SIDES))
        assert not any(errors), errors

    def _run(self, side: str, what: str, file: Path) -> str:
        command, env = self._commands[side]
        return machine.run([*command, what, str(file)], self._directory / f"{side}-{what}", self.results, _SECONDS, env)


def test_the_functions_answer_as_salts(oracle: Oracle, tmp_path: Path) -> None:
    if reason := machine.missing():
        pytest.skip(reason)
    sides = _Sides(oracle, tmp_path)
    sides.run_both("functions", {side: sides.results / f"{side}.json" for side in SIDES})
    ours, salts = (json.loads((sides.results / f"{side}.json").read_text()) for side in SIDES)
    wanted = os.environ.get("SWEEP", "*").split()
    made = {
        name: calls.of_function(salts[name])
        for name in sorted(set(ours) & set(salts))
        if any(fnmatchcase(name, each) for each in wanted) and name not in SKIP
    }
    assert made, "no function is selected"
    file = sides.results / "calls.json"
    file.write_text(json.dumps(made))
    sides.run_both("calls", dict.fromkeys(SIDES, file))
    answers = [json.loads((sides.results / f"calls.json.{side}").read_text()) for side in SIDES]
    differing = list(calls.compared(made, *answers))
    if report := os.environ.get("SWEEP_REPORT"):
        Path(report).write_text(json.dumps(differing, indent=1))
    count = sum(map(len, made.values()))
    sys.stdout.write(f"{len(made)} functions, {count} calls, {count - len(differing)} with equal answers\n")
    unexplained = [
        f"{name} ({call[0]}) {call[1:]}: ours {str(one)[:300]}, Salt's {str(other)[:300]}"
        for name, call, what, one, other in differing
        if not any(row.covers(name, call[0], what) for row in ROWS)
    ]
    assert not unexplained, "\n".join(unexplained)
    if wanted == ["*"]:
        idle = [
            row.functions
            for row in ROWS
            if not any(row.covers(name, call[0], what) for name, call, what, *_ in differing)
        ]
        assert not idle, f"rows that no call needs: {idle}"
