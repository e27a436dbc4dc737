"""SDB driver ``env``: environment variables of the minion's process.

A profile is only ``driver: env``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from statecore.model.context import Context

ALIASES = {"set": "set_"}


def get(ctx: Context, key: str, profile: Mapping[str, object] | None = None) -> str | None:
    """Return the value of the environment variable ``key``; None if it is not set."""
    return os.environ.get(key)


def set_(ctx: Context, key: str, value: str, profile: Mapping[str, object] | None = None) -> str:
    """Set the environment variable ``key``, unless it is set already. Return the variable's value afterwards."""
    found = os.environ.setdefault(key, value)
    ctx.host.set_variable(key, found)
    return found
