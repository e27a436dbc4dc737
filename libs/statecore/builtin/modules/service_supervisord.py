"""Services by supervisord (``service`` where it is chosen: ``providers: {service: supervisord}``, or a state's ``provider``).

A service is a program of supervisord. What is started with it is what its configuration says, which files make.
"""

from __future__ import annotations

import fnmatch
import re
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError

VIRTUAL = "service"

ALIASES = {"available": "available_"}

_STOPPED = ("STOPPED", "STOPPING", "EXITED", "FATAL", "BACKOFF", "UNKNOWN")

_SIGNS = re.compile(r"[*?]|\[.+\]")


def available(ctx: Context) -> str | None:
    """None where it was chosen and the host has supervisorctl."""
    chosen = ctx.opts.get("providers")
    if not isinstance(chosen, dict) or chosen.get("service") not in ("supervisord", "service_supervisord"):
        return "supervisord serves services only where it is chosen as their provider"
    return None if ctx.host.which("supervisorctl") else "the host has no supervisorctl"


def start(ctx: Context, name: str) -> bool:
    """Starts a program. Raises CommandError with supervisord's reason."""
    return _do(ctx, "start", name)


def stop(ctx: Context, name: str) -> bool:
    """Stops a program."""
    return _do(ctx, "stop", name)


def restart(ctx: Context, name: str) -> bool:
    """Stops and starts a program."""
    return _do(ctx, "restart", name)


def status(ctx: Context, name: str, sig: str | None = None) -> Any:
    """Whether a program runs; ``sig``: whether a process has this text in its command line. For a glob a map of all that
    match."""
    if sig:
        return bool(ctx.call("status.pid", sig))
    found = {program: entry["state"] not in _STOPPED for program, entry in ctx.call("supervisord.status").items()}
    if _SIGNS.search(name):
        return {each: found[each] for each in fnmatch.filter(found, name)}
    return found.get(name, False)


def available_(ctx: Context, name: str) -> bool:
    """Whether supervisord knows a program of this name."""
    return name in get_all(ctx)


def missing(ctx: Context, name: str) -> bool:
    """Whether supervisord knows no program of this name."""
    return not available_(ctx, name)


def get_all(ctx: Context) -> list[str]:
    """All programs."""
    return sorted(ctx.call("supervisord.status"))


def enabled(ctx: Context, name: str, **kwargs: Any) -> bool:
    """Whether a program is started with supervisord, as its configuration says."""
    return ctx.call("supervisord.options", name.rpartition(":")[2]).get("autostart", True) is True


def disabled(ctx: Context, name: str, **kwargs: Any) -> bool:
    """Whether a program is not started with supervisord."""
    return not enabled(ctx, name)


def enable(ctx: Context, name: str, **kwargs: Any) -> bool:
    """Raises CommandError: the configuration says what is started."""
    raise CommandError(f"write autostart=true into supervisord's configuration of {name}")


def disable(ctx: Context, name: str, **kwargs: Any) -> bool:
    """Raises CommandError: the configuration says what is started."""
    raise CommandError(f"write autostart=false into supervisord's configuration of {name}")


def _do(ctx: Context, verb: str, name: str) -> bool:
    said = ctx.call(f"supervisord.{verb}", name)
    if "ERROR" in said and "already started" not in said and "not running" not in said:
        raise CommandError(said)
    return True
