"""Services by systemd (Salt's ``service`` module), where systemd really runs for the managed host."""

from __future__ import annotations

import fnmatch
import re
import time
from collections.abc import Sequence
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.ports import CommandResult
from statecore.system.hostfiles import systemd_units
from statecore.system.hostfiles.systemd_units import TYPES, full_name

VIRTUAL = "service"

ALIASES = {"available": "available_", "reload": "reload_"}

_ENVIRONMENT = {
    "LC_ALL": "C",
    # In the chroot of a mounted host systemctl would do nothing, and say that all went well.
    "SYSTEMD_IGNORE_CHROOT": "1",
}

#: From this code on ``systemctl status`` says that there is no such unit.
_NO_UNIT = 4

#: Seconds between two questions whether a unit is active.
_PAUSE = 0.1

#: What ``systemctl show`` says a unit is started by.
_PROGRAM = re.compile(r"\{ path=(\S+)")

_SIGNS = re.compile(r"[*?]|\[.+\]")


def available(ctx: Context) -> str | None:
    """None where systemd is the host's running init."""
    if not ctx.host.path("/run/systemd/system").is_dir():
        return "systemd does not run on the host"
    return None if ctx.host.which("systemctl") else "the host has no systemctl"


def start(ctx: Context, name: str, no_block: bool = False, unmask: bool = False, unmask_runtime: bool = False) -> bool:
    """Starts a unit. Raises CommandError with systemd's reason.

    CLI Example:

        salt '*' service.start nginx
    """
    return _act(ctx, "start", name, no_block=no_block, unmask=unmask, unmask_runtime=unmask_runtime)


def stop(ctx: Context, name: str, no_block: bool | None = None) -> bool:
    """Stops a unit; False when systemd could not."""
    _reload_if_changed(ctx, name)
    return _systemctl(ctx, *_blocking(ctx, name, no_block), "stop", full_name(name)).retcode == 0


def restart(
    ctx: Context, name: str, no_block: bool | None = None, unmask: bool = False, unmask_runtime: bool = False
) -> bool:
    """Stops and starts a unit. Raises CommandError with systemd's reason."""
    return _act(ctx, "restart", name, no_block=no_block, unmask=unmask, unmask_runtime=unmask_runtime)


def reload_(
    ctx: Context, name: str, no_block: bool = False, unmask: bool = False, unmask_runtime: bool = False
) -> bool:
    """Has a unit read its configuration again. Raises CommandError with systemd's reason."""
    return _act(ctx, "reload", name, no_block=no_block, unmask=unmask, unmask_runtime=unmask_runtime)


def force_reload(
    ctx: Context, name: str, no_block: bool = True, unmask: bool = False, unmask_runtime: bool = False
) -> bool:
    """Has a unit read its configuration again, by a restart if it must be."""
    return _act(ctx, "reload-or-restart", name, no_block=no_block, unmask=unmask, unmask_runtime=unmask_runtime)


def status(ctx: Context, name: str, sig: str | None = None, wait: float = 0) -> Any:
    """Whether a unit is active, or is within ``wait`` seconds where it is about to be; for a glob a map of all that match.
    ``sig`` is for other inits."""
    names = fnmatch.filter(get_all(ctx), name) if _SIGNS.search(name) else [name]
    deadline = time.monotonic() + float(wait or 0)
    found = {each: _is_active(ctx, each, deadline) for each in names}
    return found if _SIGNS.search(name) else found[name]


def available_(ctx: Context, name: str) -> bool:
    """Whether systemd knows a unit of this name."""
    _reload_if_changed(ctx, name)
    return _known(ctx, name)


def missing(ctx: Context, name: str) -> bool:
    """Whether systemd knows no unit of this name."""
    return not available_(ctx, name)


def get_all(ctx: Context) -> list[str]:
    """All units that have files, and init scripts; services by their plain names."""
    found = {_plain(name) for name in systemd_units.names(ctx.host)}
    scripts = ctx.host.path("/etc/init.d")
    if scripts.is_dir():
        found |= {path.name for path in scripts.iterdir() if path.is_file() and path.stat().st_mode & 0o111}
    return sorted(found)


def get_running(ctx: Context) -> list[str]:
    """Units that run now."""
    rows = (line.split() for line in _systemctl(ctx, "--full", "--no-legend", "--plain").stdout.splitlines())
    units = {row[0] for row in rows if len(row) > 3 and row[3] == "running"}
    return sorted(_plain(unit) for unit in units if unit.rpartition(".")[2] in TYPES)


def get_enabled(ctx: Context) -> list[str]:
    """Units that are started at boot."""
    return _in_state(ctx, "enabled")


def get_disabled(ctx: Context) -> list[str]:
    """Units that could be started at boot and are not."""
    return _in_state(ctx, "disabled")


def get_static(ctx: Context) -> list[str]:
    """Units that can only be started by others."""
    return _in_state(ctx, "static")


def enable(
    ctx: Context, name: str, no_block: bool = False, unmask: bool = False, unmask_runtime: bool = False, **kwargs: Any
) -> bool:
    """Has a unit started at boot. Raises CommandError with systemd's reason."""
    return _act(ctx, "enable", name, no_block=False, unmask=unmask, unmask_runtime=unmask_runtime)


def disable(ctx: Context, name: str, **kwargs: Any) -> bool:
    """Has a unit not started at boot; False when systemd could not."""
    _reload_if_changed(ctx, name)
    return _systemctl(ctx, "disable", full_name(name)).retcode == 0


def enabled(ctx: Context, name: str, **kwargs: Any) -> bool:
    """Whether a unit is started at boot, or by what is."""
    result = _systemctl(ctx, "is-enabled", full_name(name))
    if result.retcode == 0 and result.stdout.strip() == "alias":
        target = _systemctl(ctx, "show", full_name(name), "--property=Id", "--value").stdout.strip()
        return _systemctl(ctx, "is-enabled", target).retcode == 0
    return result.retcode == 0


def disabled(ctx: Context, name: str, **kwargs: Any) -> bool:
    """Whether a unit is not started at boot."""
    return not enabled(ctx, name)


def masked(ctx: Context, name: str, runtime: bool = False) -> bool:
    """Whether a unit is kept from being started at all; ``runtime``: until the next boot."""
    link = ctx.host.path(f"{'/run' if runtime else '/etc'}/systemd/system/{full_name(name)}", follow=False)
    return link.is_symlink() and str(link.readlink()) == "/dev/null"


def mask(ctx: Context, name: str, runtime: bool = False) -> bool:
    """Keeps a unit from being started."""
    return _masking(ctx, "mask", name, runtime=runtime)


def unmask(ctx: Context, name: str, runtime: bool = False) -> bool:
    """Ends a mask."""
    return _masking(ctx, "unmask", name, runtime=runtime) if masked(ctx, name, runtime) else True


def show(ctx: Context, name: str) -> dict[str, str]:
    """A unit's properties, as systemd writes them."""
    lines = _systemctl(ctx, "show", full_name(name)).stdout.splitlines()
    return {key: value for key, _, value in (line.partition("=") for line in lines) if key}


def execs(ctx: Context) -> dict[str, str]:
    """Service -> the program that it is started by, of those that have one.

    CLI Example:

        salt '*' service.execs
    """
    units = [
        full_name(name) for name in get_all(ctx) if full_name(name).endswith(".service") and "@." not in full_name(name)
    ]
    # One program for all of them: hundreds would take a minute.
    told = _systemctl(ctx, "show", *units, "--property=Id,ExecStart").stdout if units else ""
    found = {}
    for block in told.split("\n\n"):
        values = dict(line.partition("=")[::2] for line in block.splitlines())
        if match := _PROGRAM.search(values.get("ExecStart", "")):
            found[_plain(values["Id"])] = match[1]
    return found


def firstboot(
    ctx: Context,
    locale: str | None = None,
    locale_message: str | None = None,
    keymap: str | None = None,
    timezone: str | None = None,
    hostname: str | None = None,
    machine_id: str | None = None,
) -> bool:
    """Sets what a host that was never booted is asked for, as far as it is not set yet, by systemd-firstboot. Raises CommandError.

    CLI Example:

        salt '*' service.firstboot keymap=jp locale=en_US.UTF-8
    """
    if ctx.host.which("systemd-firstboot") is None:
        raise CommandError("the host has no systemd-firstboot")
    given = {
        "locale": locale,
        "locale-messages": locale_message,
        "keymap": keymap,
        "timezone": timezone,
        "hostname": hostname,
        "machine-id": machine_id,
    }
    words = [f"--{name}={value}" for name, value in given.items() if value]
    result = ctx.host.run(["systemd-firstboot", *words], env=_ENVIRONMENT)
    if result.retcode:
        raise CommandError(f"systemd-firstboot error: {result.stderr.strip()}")
    return True


def systemctl_reload(ctx: Context) -> bool:
    """Has systemd read the unit files again."""
    result = _systemctl(ctx, "--system", "daemon-reload")
    if result.retcode:
        raise CommandError(f"Problem performing systemctl daemon-reload: {result.stderr.strip()}")
    return True


# ------------------------------------------------------------------------------------------------------------------------ parts


def _systemctl(ctx: Context, *words: str) -> CommandResult:
    return ctx.host.run(["systemctl", "--no-pager", *words], env=_ENVIRONMENT)


def _is_active(ctx: Context, name: str, deadline: float) -> bool:
    while True:
        result = _systemctl(ctx, "is-active", full_name(name))
        if result.stdout.strip() != "activating" or time.monotonic() >= deadline:
            return result.retcode == 0
        time.sleep(_PAUSE)


def _plain(unit: str) -> str:
    return unit.removesuffix(".service")


def _act(ctx: Context, verb: str, name: str, *, no_block: bool | None, unmask: bool, unmask_runtime: bool) -> bool:
    _reload_if_changed(ctx, name)
    for wanted, runtime in ((unmask, False), (unmask_runtime, True)):
        if wanted and masked(ctx, name, runtime):
            _masking(ctx, "unmask", name, runtime=runtime)
    result = _systemctl(ctx, *_blocking(ctx, name, no_block), verb, full_name(name))
    if result.retcode:
        said = "\n".join(line for line in result.stderr.splitlines() if not line.endswith(".scope"))
        raise CommandError(
            said.strip() or f"systemctl {verb} {full_name(name)} failed with return code {result.retcode}"
        )
    return True


def _blocking(ctx: Context, name: str, no_block: bool | None) -> Sequence[str]:
    """A job that waits for the minion's own unit to stop would be waiting for itself."""
    own = _plain(full_name(name)) in ("salt-minion", str(ctx.opts.get("service_name", "saltern-minion")))
    return ["--no-block"] if (own if no_block is None else no_block) else []


def _masking(ctx: Context, verb: str, name: str, *, runtime: bool) -> bool:
    result = _systemctl(ctx, verb, *(["--runtime"] if runtime else []), full_name(name))
    if result.retcode:
        raise CommandError(f"Failed to {verb} service '{name}': {result.stderr.strip()}")
    return True


def _known(ctx: Context, name: str) -> bool:
    return 0 <= _systemctl(ctx, "status", "--lines=0", full_name(name)).retcode < _NO_UNIT


def _reload_if_changed(ctx: Context, name: str) -> None:
    """Unit files that are new, or were changed, are read by systemd only when it is told."""
    result = _systemctl(ctx, "show", full_name(name), "--property=NeedDaemonReload,LoadState")
    lines = result.stdout.splitlines()
    unread = "LoadState=not-found" in lines and ctx.host.path(f"/etc/systemd/system/{full_name(name)}").is_file()
    if "NeedDaemonReload=yes" in lines or unread:
        systemctl_reload(ctx)


def _in_state(ctx: Context, state: str) -> list[str]:
    result = _systemctl(ctx, "--full", "--no-legend", f"--state={state}", "list-unit-files")
    rows = (line.split() for line in result.stdout.splitlines())
    units = {row[0] for row in rows if len(row) > 1 and row[1] == state}
    return sorted(_plain(unit) for unit in units if unit.rpartition(".")[2] in TYPES)
