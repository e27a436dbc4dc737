"""Services of a managed host whose running init is systemd: Salt's ``service`` execution module."""

from __future__ import annotations

import fnmatch
import re
import time
from collections.abc import Sequence

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.ports import CommandResult
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import systemd_units
from statecore.system.hostfiles.systemd_units import TYPES, full_name

VIRTUAL = "service"

ALIASES = {"available": "available_", "reload": "reload_"}

_ENVIRONMENT = {
    "LC_ALL": "C",
    # Without it systemctl does nothing in a mounted host's chroot, and reports success.
    "SYSTEMD_IGNORE_CHROOT": "1",
}

#: Exit codes of ``systemctl status`` from this one on mean that the unit does not exist.
_NO_UNIT = 4

#: Seconds between two checks whether a unit is active.
_PAUSE = 0.1

#: The program in the property ExecStart of ``systemctl show``.
_PROGRAM = re.compile(r"\{ path=(\S+)")

_SIGNS = re.compile(r"[*?]|\[.+\]")


def available(ctx: Context) -> str | None:
    """Return None if the running init of the host is systemd; else return the reason as text."""
    if not ctx.host.path("/run/systemd/system").is_dir():
        return "systemd does not run on the host"
    return None if ctx.host.which("systemctl") else "the host has no systemctl"


def offline(ctx: Context) -> bool:
    """Return False: systemd runs on the host, so services can be started."""
    return False


def start(ctx: Context, name: str, no_block: bool = False, unmask: bool = False, unmask_runtime: bool = False) -> bool:
    """Start a unit of systemd. Return True. Raise CommandError with systemd's message.

    CLI Example:

        salt '*' service.start nginx
    """
    return _act(ctx, "start", name, no_block=no_block, unmask=unmask, unmask_runtime=unmask_runtime)


def stop(ctx: Context, name: str, no_block: bool | None = None) -> bool:
    """Stop a unit of systemd. Return True; False if systemctl failed."""
    _reload_if_changed(ctx, name)
    result = _systemctl(ctx, *_blocking(ctx, name, no_block), "stop", full_name(name))
    if result.retcode:
        ctx.scratch["retcode"] = result.retcode
    return result.retcode == 0


def restart(
    ctx: Context, name: str, no_block: bool | None = None, unmask: bool = False, unmask_runtime: bool = False
) -> bool:
    """Stop and start a unit of systemd. Return True. Raise CommandError with systemd's message."""
    return _act(ctx, "restart", name, no_block=no_block, unmask=unmask, unmask_runtime=unmask_runtime)


def reload_(
    ctx: Context, name: str, no_block: bool = False, unmask: bool = False, unmask_runtime: bool = False
) -> bool:
    """Make a unit of systemd read its configuration again. Return True. Raise CommandError with systemd's message."""
    return _act(ctx, "reload", name, no_block=no_block, unmask=unmask, unmask_runtime=unmask_runtime)


def force_reload(
    ctx: Context, name: str, no_block: bool = True, unmask: bool = False, unmask_runtime: bool = False
) -> bool:
    """Make a unit of systemd read its configuration again, or restart it if it cannot reload. Return True. Raise
    CommandError with systemd's message.
    """
    return _act(ctx, "reload-or-restart", name, no_block=no_block, unmask=unmask, unmask_runtime=unmask_runtime)


def status(ctx: Context, name: str, sig: str | None = None, wait: float = 0) -> object:
    """Return whether a unit of systemd is active. For a glob return a map of unit to whether it is active.

    The function waits up to ``wait`` seconds for a unit that is "activating". ``sig`` is ignored: it is for other init
    systems.
    """
    names = fnmatch.filter(get_all(ctx), name) if _SIGNS.search(name) else [name]
    deadline = time.monotonic() + float(wait or 0)
    found = {each: _is_active(ctx, each, deadline) for each in names}
    return found if _SIGNS.search(name) else found[name]


def available_(ctx: Context, name: str) -> bool:
    """Return whether systemd has a unit of this name."""
    _reload_if_changed(ctx, name)
    return _known(ctx, name)


def missing(ctx: Context, name: str) -> bool:
    """Return whether systemd has no unit of this name."""
    return not available_(ctx, name)


def get_all(ctx: Context) -> list[str]:
    """Return the names of all units of systemd that have files, and of all init scripts. Services are named without
    ``.service``.
    """
    found = {_plain(name) for name in systemd_units.names(ctx.host)}
    scripts = ctx.host.path("/etc/init.d")
    if scripts.is_dir():
        found |= {path.name for path in scripts.iterdir() if path.is_file() and path.stat().st_mode & 0o111}
    return sorted(found)


def get_running(ctx: Context) -> list[str]:
    """Return the names of the running units of systemd."""
    rows = (line.split() for line in lines_of(_systemctl(ctx, "--full", "--no-legend", "--plain").stdout))
    units = {row[0] for row in rows if len(row) > 3 and row[3] == "running"}
    return sorted(_plain(unit) for unit in units if unit.rpartition(".")[2] in TYPES)


def get_enabled(ctx: Context) -> list[str]:
    """Return the names of the units of systemd that start at boot."""
    return _in_state(ctx, "enabled")


def get_disabled(ctx: Context) -> list[str]:
    """Return the names of the units of systemd that could start at boot, but are disabled."""
    return _in_state(ctx, "disabled")


def get_static(ctx: Context) -> list[str]:
    """Return the names of the units of systemd that only other units start."""
    return _in_state(ctx, "static")


def enable(
    ctx: Context,
    name: str,
    no_block: bool = False,
    unmask: bool = False,
    unmask_runtime: bool = False,
    **kwargs: object,
) -> bool:
    """Enable a unit of systemd, so that it starts at boot. Return True. Raise CommandError with systemd's message."""
    return _act(ctx, "enable", name, no_block=False, unmask=unmask, unmask_runtime=unmask_runtime)


def disable(ctx: Context, name: str, **kwargs: object) -> bool:
    """Disable a unit of systemd, so that it does not start at boot. Return True; False if systemctl failed."""
    _reload_if_changed(ctx, name)
    return _systemctl(ctx, "disable", full_name(name)).retcode == 0


def enabled(ctx: Context, name: str, **kwargs: object) -> bool:
    """Return whether a unit of systemd starts at boot, by itself or started by another unit."""
    result = _systemctl(ctx, "is-enabled", full_name(name))
    if result.retcode == 0 and result.stdout.strip() == "alias":
        target = _systemctl(ctx, "show", full_name(name), "--property=Id", "--value").stdout.strip()
        return _systemctl(ctx, "is-enabled", target).retcode == 0
    return result.retcode == 0


def disabled(ctx: Context, name: str, **kwargs: object) -> bool:
    """Return whether a unit of systemd does not start at boot."""
    return not enabled(ctx, name)


def masked(ctx: Context, name: str, runtime: bool = False) -> bool:
    """Return whether a unit of systemd is masked, so that it cannot be started. With ``runtime``, return whether it is
    masked until the next boot.
    """
    link = ctx.host.path(f"{'/run' if runtime else '/etc'}/systemd/system/{full_name(name)}", follow=False)
    return link.is_symlink() and str(link.readlink()) == "/dev/null"


def mask(ctx: Context, name: str, runtime: bool = False) -> bool:
    """Mask a unit of systemd, so that it cannot be started. Return True. Raise CommandError with systemd's message."""
    return _masking(ctx, "mask", name, runtime=runtime)


def unmask(ctx: Context, name: str, runtime: bool = False) -> bool:
    """Unmask a unit of systemd, so that it can be started again. Return True. Raise CommandError with systemd's
    message.
    """
    return _masking(ctx, "unmask", name, runtime=runtime) if masked(ctx, name, runtime) else True


def show(ctx: Context, name: str) -> dict[str, str]:
    """Return a map of property to text of a unit of systemd, as ``systemctl show`` prints them."""
    lines = lines_of(_systemctl(ctx, "show", full_name(name)).stdout)
    return {key: value for key, _, value in (line.partition("=") for line in lines) if key}


def execs(ctx: Context) -> dict[str, str]:
    """Return a map of service to the path of the program that starts it. Services without a program are left out.

    CLI Example:

        salt '*' service.execs
    """
    units = [
        full_name(name) for name in get_all(ctx) if full_name(name).endswith(".service") and "@." not in full_name(name)
    ]
    # One systemctl call for all units: one call for each takes a minute on large hosts.
    shown = _systemctl(ctx, "show", *units, "--property=Id,ExecStart").stdout if units else ""
    found = {}
    for block in shown.split("\n\n"):
        values = dict(line.partition("=")[::2] for line in lines_of(block))
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
    """Set those settings of the first boot that are not set yet, by systemd-firstboot. Return True. Raise CommandError
    if it fails.

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
    """Make systemd read the unit files again. Return True. Raise CommandError if this fails."""
    result = _systemctl(ctx, "--system", "daemon-reload")
    if result.retcode:
        raise CommandError(f"Problem performing systemctl daemon-reload: {result.stderr.strip()}")
    return True


# ----------------------------------------------------------------------------------------------- helpers


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
        errors = "\n".join(line for line in lines_of(result.stderr) if not line.endswith(".scope"))
        raise CommandError(
            errors.strip() or f"systemctl {verb} {full_name(name)} failed with return code {result.retcode}"
        )
    return True


def _blocking(ctx: Context, name: str, no_block: bool | None) -> Sequence[str]:
    """Return systemctl's option ["--no-block"] if systemctl must not wait, else [].

    By default it must not wait for the minion's own unit: a job that waits for the minion to stop would wait for
    itself.
    """
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
    """Make systemd read the unit files again if the file of the unit ``name`` is new or changed."""
    result = _systemctl(ctx, "show", full_name(name), "--property=NeedDaemonReload,LoadState")
    lines = lines_of(result.stdout)
    unread = "LoadState=not-found" in lines and ctx.host.path(f"/etc/systemd/system/{full_name(name)}").is_file()
    if "NeedDaemonReload=yes" in lines or unread:
        systemctl_reload(ctx)


def _in_state(ctx: Context, state: str) -> list[str]:
    result = _systemctl(ctx, "--full", "--no-legend", f"--state={state}", "list-unit-files")
    rows = (line.split() for line in lines_of(result.stdout))
    units = {row[0] for row in rows if len(row) > 1 and row[1] == state}
    return sorted(_plain(unit) for unit in units if unit.rpartition(".")[2] in TYPES)
