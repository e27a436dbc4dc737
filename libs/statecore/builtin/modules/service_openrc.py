"""Services by OpenRC (Salt's ``service`` module of Gentoo and Alpine): its scripts, its run levels.

A service is in a run level by a link in ``/etc/runlevels/LEVEL``, which is read and made here; its programs are needed only to
start and stop. Where OpenRC does not run (an image, a container) nothing can be started.
"""

from __future__ import annotations

import fnmatch
import logging
import re
from collections.abc import Sequence
from typing import Any

from statecore.host.detached_run import run_detached
from statecore.model.context import Context
from statecore.model.errors import CommandError

log = logging.getLogger(__name__)

VIRTUAL = "service"

ALIASES = {"available": "available_", "reload": "reload_"}

_SCRIPTS, _LEVELS = "/etc/init.d", "/etc/runlevels"

#: The run level of a service that is enabled without naming one.
_DEFAULT = "default"

#: Is there for as long as OpenRC runs.
_RUNNING = "/run/openrc/softlevel"

#: First lines of its scripts, the older one too.
_INTERPRETERS = ("openrc-run", "runscript")

_SIGNS = re.compile(r"[*?]|\[.+\]")


def available(ctx: Context) -> str | None:
    """None where the host has OpenRC and no systemd that runs."""
    if ctx.host.path("/run/systemd/system").is_dir():
        return "systemd runs on the host"
    return None if ctx.host.path(_LEVELS).is_dir() else f"the host has no {_LEVELS}: OpenRC is not installed"


def offline(ctx: Context) -> bool:
    """Whether OpenRC does not run, so that nothing can be started."""
    return ctx.host.mounted and not ctx.host.path(_RUNNING).exists()


def start(ctx: Context, name: str) -> bool:
    """Starts a service; True when its script says that it did. Raises CommandError where OpenRC does not run.

    CLI Example:

        salt '*' service.start nginx
    """
    return _do(ctx, name, "start")


def stop(ctx: Context, name: str) -> bool:
    """Stops a service."""
    return _do(ctx, name, "stop")


def restart(ctx: Context, name: str) -> bool:
    """Stops and starts a service."""
    return _do(ctx, name, "restart")


def reload_(ctx: Context, name: str) -> bool:
    """Has a service read its configuration again."""
    return _do(ctx, name, "reload")


def zap(ctx: Context, name: str) -> bool:
    """Has OpenRC forget what it believes of a service, which is left as it is.

    CLI Example:

        salt '*' service.zap nginx
    """
    return _do(ctx, name, "zap")


def status(ctx: Context, name: str, sig: str | None = None) -> Any:
    """Whether a service runs; ``sig``: whether a process has this text in its command line. For a glob a map of all that
    match."""
    if sig:
        return bool(ctx.call("status.pid", sig))
    names = fnmatch.filter(get_all(ctx), name) if _SIGNS.search(name) else [name]
    found = {each: not offline(ctx) and available_(ctx, each) and _call(ctx, each, "status") for each in names}
    return found if _SIGNS.search(name) else found[name]


def available_(ctx: Context, name: str) -> bool:
    """Whether the host has a service of this name."""
    return name in get_all(ctx)


def missing(ctx: Context, name: str) -> bool:
    """Whether the host has no service of this name."""
    return not available_(ctx, name)


def get_all(ctx: Context) -> list[str]:
    """All services."""
    place = ctx.host.path(_SCRIPTS)
    if not place.is_dir():
        return []
    found = []
    for path in place.iterdir():
        real = ctx.host.path(f"{_SCRIPTS}/{path.name}")
        if not real.is_file():
            continue
        with real.open("rb") as file:
            first = file.readline(200).decode("utf-8", "replace")
        if first.startswith("#!") and first.split()[0].rpartition("/")[2] in _INTERPRETERS:
            found.append(path.name)
    return sorted(found)


def get_enabled(ctx: Context) -> dict[str, list[str]]:
    """Service -> the run levels that it is in.

    CLI Example:

        salt '*' service.get_enabled
    """
    top = ctx.host.path(_LEVELS)
    rows: dict[str, list[str]] = {}
    for level in sorted(path for path in top.iterdir() if path.is_dir() and not path.is_symlink()):
        for link in sorted(level.iterdir()):
            # A run level may be stacked upon another: a link to a directory.
            if not ctx.host.path(f"{_LEVELS}/{level.name}/{link.name}").is_dir():
                rows.setdefault(link.name, []).append(level.name)
    return rows


def get_disabled(ctx: Context) -> list[str]:
    """Services that are in no run level."""
    return sorted(set(get_all(ctx)) - set(get_enabled(ctx)))


def enable(ctx: Context, name: str, runlevels: Any = None, **kwargs: Any) -> bool:
    """Puts a service into run levels, and out of others where these are named. Raises CommandError for what is not there.

    CLI Example:

        salt '*' service.enable nginx runlevels=default
    """
    if not available_(ctx, name):
        raise CommandError(f"The named service {name} is not available: the host has no {_SCRIPTS}/{name} of OpenRC")
    wanted = _levels(runlevels) or [_DEFAULT]
    for level in wanted:
        if not ctx.host.path(f"{_LEVELS}/{level}").is_dir():
            raise CommandError(f"'{level}' is no run level of the host: there is no {_LEVELS}/{level}")
    now = get_enabled(ctx).get(name, [])
    for level in (each for each in now if runlevels is not None and each not in wanted):
        _link(ctx, name, level).unlink()
    for level in (each for each in wanted if each not in now):
        _link(ctx, name, level).symlink_to(f"{_SCRIPTS}/{name}")
    return True


def disable(ctx: Context, name: str, runlevels: Any = None, **kwargs: Any) -> bool:
    """Takes a service out of run levels: those that are named, or all."""
    wanted = _levels(runlevels)
    for level in get_enabled(ctx).get(name, []):
        if not wanted or level in wanted:
            _link(ctx, name, level).unlink()
    return True


def enabled(ctx: Context, name: str, runlevels: Any = None, **kwargs: Any) -> bool:
    """Whether a service is in a run level; in exactly these, where any are named."""
    now = get_enabled(ctx).get(name, [])
    return sorted(_levels(runlevels)) == now if runlevels is not None else bool(now)


def disabled(ctx: Context, name: str, runlevels: Any = None, **kwargs: Any) -> bool:
    """Whether a service is there and in no run level."""
    return available_(ctx, name) and not enabled(ctx, name, runlevels)


# ------------------------------------------------------------------------------------------------------------------------ parts


def _do(ctx: Context, name: str, action: str) -> bool:
    if not available_(ctx, name):
        raise CommandError(f"The named service {name} is not available: the host has no {_SCRIPTS}/{name} of OpenRC")
    if offline(ctx):
        raise CommandError(
            f"OpenRC does not run on the host at {ctx.host.root}: {name} can be enabled and disabled there, nothing else"
        )
    return _call(ctx, name, action)


def _call(ctx: Context, name: str, action: str) -> bool:
    program = ctx.host.which("rc-service")
    if program is None:
        raise CommandError("the host has no rc-service")
    result = run_detached(ctx.host, [program, name, action])
    if result.retcode and action != "status":
        said = "\n".join(filter(None, (result.stdout.strip(), result.stderr.strip())))
        log.error("rc-service %s %s failed with return code %s: %s", name, action, result.retcode, said)
    return result.retcode == 0


def _link(ctx: Context, name: str, level: str) -> Any:
    return ctx.host.path(f"{_LEVELS}/{level}/{name}", follow=False)


def _levels(runlevels: Any) -> list[str]:
    if runlevels is None:
        return []
    each: Sequence[Any] = runlevels if isinstance(runlevels, list | tuple) else str(runlevels).split(",")
    return [str(one).strip() for one in each]
