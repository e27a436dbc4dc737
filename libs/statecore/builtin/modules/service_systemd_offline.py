"""Services of a mounted host whose systemd does not run, such as an image: Salt's ``service`` execution module
there.

Units are enabled and disabled by links, which are created as systemctl creates them. Nothing can be started or stopped.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from typing import NoReturn

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.hostfiles import systemd_units
from statecore.system.hostfiles.systemd_units import NOTHING, Unit

VIRTUAL = "service"

ALIASES = {"available": "available_", "reload": "reload_"}

_PROGRAMS = ("/usr/lib/systemd/systemd", "/lib/systemd/systemd")

_SIGNS = re.compile(r"[*?]|\[.+\]")


def available(ctx: Context) -> str | None:
    """Return None if the host is mounted and has systemd, which does not run; else return the reason as text."""
    if not ctx.host.mounted:
        return "the host is this machine"
    if ctx.host.path("/run/systemd/system").is_dir():
        return "systemd runs on the host"
    return None if any(ctx.host.path(path).is_file() for path in _PROGRAMS) else "the host has no systemd"


def offline(ctx: Context) -> bool:
    """Return True: on a mounted host whose systemd does not run, no service can be started."""
    return True


def start(ctx: Context, name: str, **kwargs: object) -> bool:
    """Raise CommandError: on a mounted host no service can be started."""
    _not_running(ctx, name)


def stop(ctx: Context, name: str, **kwargs: object) -> bool:
    """Raise CommandError: on a mounted host no service can be stopped."""
    _not_running(ctx, name)


def restart(ctx: Context, name: str, **kwargs: object) -> bool:
    """Raise CommandError: on a mounted host no service can be restarted."""
    _not_running(ctx, name)


def reload_(ctx: Context, name: str, **kwargs: object) -> bool:
    """Raise CommandError: on a mounted host no service can be reloaded."""
    _not_running(ctx, name)


def status(ctx: Context, name: str, sig: str | None = None) -> object:
    """Return False, because on a mounted host no unit of systemd runs. For a glob return a map of unit to False."""
    return dict.fromkeys(fnmatch.filter(get_all(ctx), name), False) if _SIGNS.search(name) else False


def available_(ctx: Context, name: str) -> bool:
    """Return whether the host has a unit of this name, masked or not."""
    full = systemd_units.full_name(name)
    return systemd_units.find(ctx.host, full) is not None or masked(ctx, name)


def missing(ctx: Context, name: str) -> bool:
    """Return whether the host has no unit of this name."""
    return not available_(ctx, name)


def get_all(ctx: Context) -> list[str]:
    """Return the names of all units of systemd that have files. Services are named without ``.service``."""
    return sorted(name.removesuffix(".service") for name in systemd_units.names(ctx.host))


def get_enabled(ctx: Context) -> list[str]:
    """Return the names of the units of systemd that start at boot because of links of their own."""
    return [name for name, unit in _own(ctx) if unit.install and _links(ctx, unit)]


def get_disabled(ctx: Context) -> list[str]:
    """Return the names of the units of systemd that could start at boot, but are disabled."""
    return [name for name, unit in _own(ctx) if unit.install and not _links(ctx, unit)]


def get_static(ctx: Context) -> list[str]:
    """Return the names of the units of systemd that only other units start."""
    return [name for name, unit in _own(ctx) if not unit.install]


def enable(ctx: Context, name: str, unmask: bool = False, unmask_runtime: bool = False, **kwargs: object) -> bool:
    """Enable a unit of systemd, and the units in its ``Also=``, so that they start at boot. Return True.

    Raise CommandError for a unit that cannot be enabled.

    CLI Example:

        salt-call --local --host-root /mnt service.enable nginx
    """
    for wanted, runtime in ((unmask, False), (unmask_runtime, True)):
        if wanted:
            _unmask(ctx, name, runtime)
    waiting, seen = [systemd_units.full_name(name)], set()
    while waiting:
        full = waiting.pop()
        if full in seen:
            continue
        seen.add(full)
        unit = _needed(ctx, full)
        if not (unit.links() or unit.install.get("Also")):
            raise CommandError(f"{unit.path} has no [Install] section: other units start it, or nothing does")
        for link in unit.links():
            link_path = ctx.host.path(link, follow=False)
            link_path.parent.mkdir(parents=True, exist_ok=True)
            link_path.unlink(missing_ok=True)
            link_path.symlink_to(unit.path)
        waiting += unit.install.get("Also", ())
    return True


def disable(ctx: Context, name: str, **kwargs: object) -> bool:
    """Disable a unit of systemd, and the units in its ``Also=``. Return True; False if there is no such unit."""
    waiting, seen = [systemd_units.full_name(name)], set()
    while waiting:
        full = waiting.pop()
        unit = systemd_units.find(ctx.host, full)
        if unit is None or full in seen:
            continue
        seen.add(full)
        for link in systemd_units.links_to(ctx.host, unit):
            link.unlink()
        waiting += unit.install.get("Also", ())
    return bool(seen)


def enabled(ctx: Context, name: str, **kwargs: object) -> bool:
    """Return whether a unit of systemd starts at boot, by itself or started by another unit."""
    unit = _unit(ctx, name)
    return unit is not None and not masked(ctx, name) and (not unit.install or bool(_links(ctx, unit)))


def disabled(ctx: Context, name: str, **kwargs: object) -> bool:
    """Return whether a unit of systemd does not start at boot."""
    return not enabled(ctx, name)


def masked(ctx: Context, name: str, runtime: bool = False) -> bool:
    """Return whether a unit of systemd is masked, so that it cannot be started. With ``runtime``, return whether a link
    below /run masks it until the next boot.
    """
    link = ctx.host.path(_mask(name, runtime), follow=False)
    return link.is_symlink() and str(link.readlink()) == NOTHING


def mask(ctx: Context, name: str, runtime: bool = False) -> bool:
    """Mask a unit of systemd, so that it cannot be started. Return True.

    Raise CommandError if a file of the administrator has the link's name, and for ``runtime``.
    """
    if runtime:
        _not_running(ctx, name)
    link = ctx.host.path(_mask(name, runtime), follow=False)
    if link.exists() and not link.is_symlink():
        raise CommandError(f"{_mask(name, runtime)} is a file, not a link; remove the file to mask the unit")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(NOTHING)
    return True


def unmask(ctx: Context, name: str, runtime: bool = False) -> bool:
    """Unmask a unit of systemd, so that it can be started again. Return True."""
    return _unmask(ctx, name, runtime)


# ----------------------------------------------------------------------------------------------- helpers


def _not_running(ctx: Context, name: str) -> NoReturn:
    raise CommandError(
        f"systemd does not run on the host at {ctx.host.root}: {name} can be enabled, disabled and masked there, nothing else"
    )


def _unit(ctx: Context, name: str) -> Unit | None:
    return systemd_units.find(ctx.host, systemd_units.full_name(name))


def _own(ctx: Context) -> Iterator[tuple[str, Unit]]:
    """Yield (name, parsed unit file) of each systemd unit that has a file of its own. A link to a unit file is only
    another name of that unit and is left out.
    """
    for name in get_all(ctx):
        unit = _unit(ctx, name)
        if unit is not None and not ctx.host.path(unit.path, follow=False).is_symlink():
            yield name, unit


def _needed(ctx: Context, full: str) -> Unit:
    unit = systemd_units.find(ctx.host, full)
    if unit is None:
        why = (
            "it is masked" if masked(ctx, full) else f"the host has no file for it in {', '.join(systemd_units.UNITS)}"
        )
        raise CommandError(f"{full} cannot be enabled: {why}")
    return unit


def _links(ctx: Context, unit: Unit) -> bool:
    return bool(systemd_units.links_to(ctx.host, unit))


def _mask(name: str, runtime: bool) -> str:
    return f"{'/run' if runtime else '/etc'}/systemd/system/{systemd_units.full_name(name)}"


def _unmask(ctx: Context, name: str, runtime: bool) -> bool:
    if masked(ctx, name, runtime):
        ctx.host.path(_mask(name, runtime), follow=False).unlink()
    return True
