"""``salt.utils.systemd`` for users' modules: facts about systemd on the managed host.

Facts are cached in the argument ``context``, a module's ``__context__``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from statecore.loader.current_context import context_of
from statecore.model.errors import InvocationError

_T = TypeVar("_T")


def _remembered(context: object, name: str, ask: Callable[[], _T]) -> _T:
    if context is None:
        return ask()
    if not isinstance(context, dict):
        raise InvocationError("context must be a dictionary if passed")
    key = f"salt.utils.systemd.{name}"
    if key not in context:
        context[key] = ask()
    known: _T = context[key]
    return known


def booted(context: object = None) -> bool:
    """Return whether systemd is the running init system of the managed host."""
    grains = context_of("salt.utils.systemd.booted").grains
    return bool(_remembered(context, "booted", lambda: grains.get("init") == "systemd"))


def offline(context: object = None) -> bool:
    """Return whether systemd is installed on the managed host but does not run, as in a chroot."""
    host = context_of("salt.utils.systemd.offline").host
    return bool(_remembered(context, "offline", lambda: not booted(context) and host.which("systemctl") is not None))


def version(context: object = None) -> int | None:
    """Return the version number of systemd on the managed host; None if it is unknown."""
    ctx = context_of("salt.utils.systemd.version")

    def ask() -> int | None:
        if ctx.host.which("systemctl") is None:
            return None
        found = re.search(r"\w+ ([0-9]+)", ctx.host.run(["systemctl", "--version"]).stdout.partition("\n")[0])
        return int(found[1]) if found else None

    return _remembered(context, "version", ask)


def has_scope(context: object = None) -> bool:
    """Return whether systemd on the managed host can run a command in a scope of its own (version 205 or newer)."""
    return booted(context) and (version(context) or 0) >= 205
