"""Where each command begins: what stands in ``services/pyproject.toml``. Nothing of its program is loaded here."""

from __future__ import annotations

from services.kit.interrupts import INTERRUPTED, run


def salt() -> int:
    """``salt``."""
    return run("services.cli.salt")


def salt_key() -> int:
    """``salt-key``."""
    return run("services.cli.key")


def salt_run() -> int:
    """``salt-run``."""
    return run("services.cli.run")


def salt_cp() -> int:
    """``salt-cp``."""
    return run("services.cli.cp")


def salt_call() -> int:
    """``salt-call``."""
    return run("services.minion.call")


def eventlisten() -> int:
    """``eventlisten``."""
    return run("services.cli.eventlisten")


def saltern() -> int:
    """``saltern``."""
    return run("services.entry", INTERRUPTED)
