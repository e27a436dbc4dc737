"""The entry points of all commands, as ``services/pyproject.toml`` names them. A command's program is imported when it runs."""

from __future__ import annotations

from saltern.kit.command.launcher import INTERRUPTED, run

#: Replaces ``typing.TYPE_CHECKING``: importing ``typing`` takes longer than all other imports of this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def salt() -> NoReturn:
    """Run the command ``salt`` and end the process with its exit code."""
    run("saltern.cli.salt")


def salt_key() -> NoReturn:
    """Run the command ``salt-key`` and end the process with its exit code."""
    run("saltern.cli.key")


def salt_run() -> NoReturn:
    """Run the command ``salt-run`` and end the process with its exit code."""
    run("saltern.cli.run")


def salt_cp() -> NoReturn:
    """Run the command ``salt-cp`` and end the process with its exit code."""
    run("saltern.cli.cp")


def salt_call() -> NoReturn:
    """Run the command ``salt-call`` and end the process with its exit code."""
    run("saltern.minion.call.call")


def salt_minion() -> NoReturn:
    """Run the program ``salt-minion`` and end the process with its exit code."""
    run("saltern.minion.salt_minion", INTERRUPTED)


def salt_master() -> NoReturn:
    """Run the program ``salt-master`` and end the process with its exit code."""
    run("saltern.master.salt_master", INTERRUPTED)


def eventlisten() -> NoReturn:
    """Run the command ``eventlisten`` and end the process with its exit code."""
    run("saltern.cli.eventlisten")


def saltern() -> NoReturn:
    """Run the command ``saltern`` and end the process with its exit code."""
    run("saltern.entry", INTERRUPTED)
