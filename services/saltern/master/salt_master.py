"""The program ``salt-master``: runs all roles of a master on one machine, with the command line of stock Salt's
salt-master.
"""

from __future__ import annotations

from collections.abc import Sequence

from saltern.kit.config.master import load_whole_master
from saltern.kit.process.daemon import Program, run_program
from saltern.master.main import main as run_master
from saltern.master.main import make_keys

_PROGRAM = Program(
    "salt-master",
    "Run all roles of a master on this machine, under one supervisor. Without redis_url in the configuration, a redis-server "
    "is started for them.",
    load_whole_master,
    run_master,
    {
        "--make-keys": (
            "make the missing keys of all roles for the user of --user, as the start does, and exit",
            make_keys,
        )
    },
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``salt-master`` and return its exit code."""
    return run_program(_PROGRAM, argv)
