"""Where each command begins: what stands in ``services/pyproject.toml``. Nothing of its program is loaded here."""

from __future__ import annotations

from saltern.kit.command.launcher import INTERRUPTED, run

#: Replaces ``typing.TYPE_CHECKING``: importing ``typing`` takes longer than all other imports of this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def salt() -> NoReturn:
    """``salt``."""
    run("saltern.cli.salt")


def salt_key() -> NoReturn:
    """``salt-key``."""
    run("saltern.cli.key")


def salt_run() -> NoReturn:
    """``salt-run``."""
    run("saltern.cli.run")


def salt_cp() -> NoReturn:
    """``salt-cp``."""
    run("saltern.cli.cp")


def salt_call() -> NoReturn:
    """``salt-call``."""
    run("saltern.minion.call.call")


def eventlisten() -> NoReturn:
    """``eventlisten``."""
    run("saltern.cli.eventlisten")


def saltern() -> NoReturn:
    """``saltern``."""
    run("saltern.entry", INTERRUPTED)
