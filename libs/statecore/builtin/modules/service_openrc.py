"""Services of a managed host with OpenRC, by its scripts and run levels: Salt's ``service`` execution module on Gentoo
and Alpine.

A service is in a run level by a link in ``/etc/runlevels/LEVEL``. These links are read and written directly; OpenRC's
programs are only needed to start and stop services. Where OpenRC does not run (an image, a container) nothing can be
started.
"""

from __future__ import annotations

import fnmatch
import logging
import re
from collections.abc import Sequence
from pathlib import Path

from statecore.host.detached_run import run_detached
from statecore.model.context import Context
from statecore.model.errors import CommandError

log = logging.getLogger(__name__)

VIRTUAL = "service"

ALIASES = {"available": "available_", "reload": "reload_"}

_SCRIPTS, _LEVELS = "/etc/init.d", "/etc/runlevels"

#: Run level of a service that is enabled without a run level.
_DEFAULT = "default"

#: File that exists while OpenRC runs.
_RUNNING = "/run/openrc/softlevel"

#: Interpreters in the first line of OpenRC's scripts: the current one, the older one.
_INTERPRETERS = ("openrc-run", "runscript")

_SIGNS = re.compile(r"[*?]|\[.+\]")


def available(ctx: Context) -> str | None:
    """Return None if the host has OpenRC and systemd does not run; else return the reason as text."""
    if ctx.host.path("/run/systemd/system").is_dir():
        return "systemd runs on the host"
    return None if ctx.host.path(_LEVELS).is_dir() else f"the host has no {_LEVELS}: OpenRC is not installed"


def offline(ctx: Context) -> bool:
    """Return whether the host is mounted and OpenRC does not run on it, so that no service can be started."""
    return ctx.host.mounted and not ctx.host.path(_RUNNING).exists()


def start(ctx: Context, name: str) -> bool:
    """Start a service of OpenRC. Return whether its script succeeded. Raise CommandError if OpenRC does not run.

    CLI Example:

        salt '*' service.start nginx
    """
    return _do(ctx, name, "start")


def stop(ctx: Context, name: str) -> bool:
    """Stop a service of OpenRC. Return whether its script succeeded. Raise CommandError if OpenRC does not run."""
    return _do(ctx, name, "stop")


def restart(ctx: Context, name: str) -> bool:
    """Stop and start a service of OpenRC. Return whether its script succeeded. Raise CommandError if OpenRC does not
    run.
    """
    return _do(ctx, name, "restart")


def reload_(ctx: Context, name: str) -> bool:
    """Make a service of OpenRC read its configuration again. Return whether its script succeeded. Raise CommandError if
    OpenRC does not run.
    """
    return _do(ctx, name, "reload")


def zap(ctx: Context, name: str) -> bool:
    """Reset OpenRC's record of a service to "stopped". The service itself is not changed. Return whether its script
    succeeded.

    CLI Example:

        salt '*' service.zap nginx
    """
    return _do(ctx, name, "zap")


def status(ctx: Context, name: str, sig: str | None = None) -> object:
    """Return whether a service of OpenRC runs. For a glob return a map of service to whether it runs.

    ``sig``: return whether a process has this text in its command line.
    """
    if sig:
        return bool(ctx.call("status.pid", sig))
    names = fnmatch.filter(get_all(ctx), name) if _SIGNS.search(name) else [name]
    found = {each: not offline(ctx) and available_(ctx, each) and _call(ctx, each, "status") for each in names}
    return found if _SIGNS.search(name) else found[name]


def available_(ctx: Context, name: str) -> bool:
    """Return whether OpenRC has a service of this name."""
    return name in get_all(ctx)


def missing(ctx: Context, name: str) -> bool:
    """Return whether OpenRC has no service of this name."""
    return not available_(ctx, name)


def get_all(ctx: Context) -> list[str]:
    """Return the names of all services of OpenRC."""
    scripts = ctx.host.path(_SCRIPTS)
    if not scripts.is_dir():
        return []
    found = []
    for path in scripts.iterdir():
        real = ctx.host.path(f"{_SCRIPTS}/{path.name}")
        if not real.is_file():
            continue
        with real.open("rb") as file:
            first = file.readline(200).decode("utf-8", "replace")
        if first.startswith("#!") and first.split()[0].rpartition("/")[2] in _INTERPRETERS:
            found.append(path.name)
    return sorted(found)


def get_enabled(ctx: Context) -> dict[str, list[str]]:
    """Return a map of service to the list of OpenRC's run levels in which it is started, for all enabled services.

    CLI Example:

        salt '*' service.get_enabled
    """
    top = ctx.host.path(_LEVELS)
    rows: dict[str, list[str]] = {}
    for level in sorted(path for path in top.iterdir() if path.is_dir() and not path.is_symlink()):
        for link in sorted(level.iterdir()):
            # A link to a directory is another run level that this one includes.
            if not ctx.host.path(f"{_LEVELS}/{level.name}/{link.name}").is_dir():
                rows.setdefault(link.name, []).append(level.name)
    return rows


def get_disabled(ctx: Context) -> list[str]:
    """Return the names of the services that are in no run level of OpenRC."""
    return sorted(set(get_all(ctx)) - set(get_enabled(ctx)))


def enable(ctx: Context, name: str, runlevels: object = None, **kwargs: object) -> bool:
    """Add a service to run levels of OpenRC. Return True.

    With ``runlevels`` it is also removed from all other run levels. Raise CommandError for an unknown service or run
    level.

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


def disable(ctx: Context, name: str, runlevels: object = None, **kwargs: object) -> bool:
    """Remove a service from the named run levels of OpenRC, or from all. Return True, even if it was in none."""
    wanted = _levels(runlevels)
    for level in get_enabled(ctx).get(name, []):
        if not wanted or level in wanted:
            _link(ctx, name, level).unlink()
    return True


def enabled(ctx: Context, name: str, runlevels: object = None, **kwargs: object) -> bool:
    """Return whether a service is in a run level of OpenRC; with ``runlevels``, whether it is in exactly these."""
    now = get_enabled(ctx).get(name, [])
    return sorted(_levels(runlevels)) == now if runlevels is not None else bool(now)


def disabled(ctx: Context, name: str, runlevels: object = None, **kwargs: object) -> bool:
    """Return whether OpenRC has a service that is in no run level."""
    return available_(ctx, name) and not enabled(ctx, name, runlevels)


# ----------------------------------------------------------------------------------------------- helpers


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
        output = "\n".join(filter(None, (result.stdout.strip(), result.stderr.strip())))
        log.error("rc-service %s %s failed with return code %s: %s", name, action, result.retcode, output)
    return result.retcode == 0


def _link(ctx: Context, name: str, level: str) -> Path:
    return ctx.host.path(f"{_LEVELS}/{level}/{name}", follow=False)


def _levels(runlevels: object) -> list[str]:
    if runlevels is None:
        return []
    each: Sequence[object] = runlevels if isinstance(runlevels, list | tuple) else str(runlevels).split(",")
    return [str(one).strip() for one in each]
