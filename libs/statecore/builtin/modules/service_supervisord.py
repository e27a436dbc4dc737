"""Programs of supervisord as services: the ``service`` execution module if the option ``providers: {service:
supervisord}`` or a state's argument ``provider`` selects it.

A service is a program of supervisord. Supervisord's configuration files decide whether a program starts with
supervisord.
"""

from __future__ import annotations

import fnmatch
import re

from statecore.model.context import Context
from statecore.model.errors import CommandError

VIRTUAL = "service"

ALIASES = {"available": "available_"}

_STOPPED = ("STOPPED", "STOPPING", "EXITED", "FATAL", "BACKOFF", "UNKNOWN")

_SIGNS = re.compile(r"[*?]|\[.+\]")


def available(ctx: Context) -> str | None:
    """Return None if supervisord is the selected provider and the host has supervisorctl; else return the reason as
    text.
    """
    chosen = ctx.opts.get("providers")
    if not isinstance(chosen, dict) or chosen.get("service") not in ("supervisord", "service_supervisord"):
        return "supervisord serves services only where it is chosen as their provider"
    return None if ctx.host.which("supervisorctl") else "the host has no supervisorctl"


def start(ctx: Context, name: str) -> bool:
    """Start a program of supervisord. Return True. Raise CommandError with supervisord's message."""
    return _do(ctx, "start", name)


def stop(ctx: Context, name: str) -> bool:
    """Stop a program of supervisord. Return True. Raise CommandError with supervisord's message."""
    return _do(ctx, "stop", name)


def restart(ctx: Context, name: str) -> bool:
    """Stop and start a program of supervisord. Return True. Raise CommandError with supervisord's message."""
    return _do(ctx, "restart", name)


def status(ctx: Context, name: str, sig: str | None = None) -> object:
    """Return whether a program of supervisord runs. For a glob return a map of program to whether it runs.

    ``sig``: return whether a process has this text in its command line.
    """
    if sig:
        return bool(ctx.call("status.pid", sig))
    found = {program: entry["state"] not in _STOPPED for program, entry in ctx.call("supervisord.status").items()}
    if _SIGNS.search(name):
        return {each: found[each] for each in fnmatch.filter(found, name)}
    return found.get(name, False)


def available_(ctx: Context, name: str) -> bool:
    """Return whether supervisord has a program of this name."""
    return name in get_all(ctx)


def missing(ctx: Context, name: str) -> bool:
    """Return whether supervisord has no program of this name."""
    return not available_(ctx, name)


def get_all(ctx: Context) -> list[str]:
    """Return the names of all programs of supervisord."""
    return sorted(ctx.call("supervisord.status"))


def enabled(ctx: Context, name: str, **kwargs: object) -> bool:
    """Return whether supervisord starts a program when it starts itself (``autostart``)."""
    return ctx.call("supervisord.options", name.rpartition(":")[2]).get("autostart", True) is True


def disabled(ctx: Context, name: str, **kwargs: object) -> bool:
    """Return whether supervisord does not start a program when it starts itself (``autostart``)."""
    return not enabled(ctx, name)


def enable(ctx: Context, name: str, **kwargs: object) -> bool:
    """Raise CommandError: ``autostart`` must be set in supervisord's configuration."""
    raise CommandError(f"write autostart=true into supervisord's configuration of {name}")


def disable(ctx: Context, name: str, **kwargs: object) -> bool:
    """Raise CommandError: ``autostart`` must be set in supervisord's configuration."""
    raise CommandError(f"write autostart=false into supervisord's configuration of {name}")


def _do(ctx: Context, verb: str, name: str) -> bool:
    output = ctx.call(f"supervisord.{verb}", name)
    if "ERROR" in output and "already started" not in output and "not running" not in output:
        raise CommandError(output)
    return True
