"""Runs the attacks of this folder, or of a named file: ``python -m tests.security.run [file] [options of pytest ...]``.

One attack is one case of a test; the test passes if the attack is refused. Tests with the marker ``ordinary`` are no attacks: they
check that ordinary use goes on, and they are not counted. The last line is ``N refused of M tried``. Exit code 0 if every attack
was refused, every other test passed and at least FEWEST attacks were tried; 1 if not; else that of pytest.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

#: Attacks that the whole folder has at least. A run that was given options of pytest may select fewer.
FEWEST = 500


class Count:
    """Plugin of pytest that counts the attacks that were tried, refused and skipped."""

    def __init__(self) -> None:
        self.tried: set[str] = set()
        self.not_refused: set[str] = set()
        self.skipped: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one part of a test: its preparation, the attack or the cleaning."""
        if "ordinary" in report.keywords:
            return
        if report.skipped:
            self.skipped.add(report.nodeid)
        elif report.when == "call" or report.failed:
            self.tried.add(report.nodeid)
        if report.failed:
            self.not_refused.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a file that cannot be read as an attack that was not refused."""
        if report.failed:
            self.tried.add(report.nodeid)
            self.not_refused.add(report.nodeid)

    def summary(self) -> str:
        """Return the lines printed after pytest's summary: attacks not refused, number skipped, ``N refused of M tried``."""
        refused = len(self.tried) - len(self.not_refused)
        lines = [f"not refused: {name}" for name in sorted(self.not_refused)]
        if self.skipped:
            lines.append(f"{len(self.skipped)} attacks were skipped, see above for the reasons")
        return "\n".join([*lines, f"{refused} refused of {len(self.tried)} tried"])


def main(arguments: Sequence[str]) -> int:
    """Run the tests with these options of pytest and return the exit code. Without a file they are those of this folder."""
    count = Count()
    named = any(each.partition("::")[0].endswith(".py") for each in arguments)
    where = [] if named else [str(Path(__file__).parent)]
    code = int(pytest.main(["-q", *where, *arguments], plugins=[count]))
    selects = named or any(each in ("-k", "-m", "--lf", "--deselect") or "::" in each for each in arguments)
    few = len(count.tried) < FEWEST and not selects
    if few:
        print(f"\nfewer than {FEWEST} attacks were tried", file=sys.stderr)
    sys.stderr.flush()
    print(count.summary(), flush=True)
    return code or int(bool(count.not_refused) or few)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
