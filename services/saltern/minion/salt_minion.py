"""The program ``salt-minion``: runs the minion, with the command line of stock Salt's salt-minion."""

from __future__ import annotations

from collections.abc import Sequence

from saltern.kit.config.minion_options import load_minion
from saltern.kit.process.daemon import Program, run_program
from saltern.minion.main import main as run_minion

_PROGRAM = Program(
    "salt-minion",
    "Run jobs of a master on this host, as the configuration file `minion` says.",
    load_minion,
    run_minion,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``salt-minion`` and return its exit code."""
    return run_program(_PROGRAM, argv)
