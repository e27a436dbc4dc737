"""Services of a managed host by its init scripts: Salt's ``service`` execution module if systemd does not run, as in
containers.

The scripts are run directly, in a mounted host by chroot. Daemons that they start keep running after the call, and
inherit none of its open files.
"""

from __future__ import annotations

import fnmatch
import logging
import os
import re

from statecore.host.detached_run import run_detached
from statecore.model.context import Context
from statecore.model.errors import CallFailed
from statecore.system.hostfiles import processes

log = logging.getLogger(__name__)

VIRTUAL = "service"

ALIASES = {"available": "available_", "reload": "reload_"}

_SCRIPTS = "/etc/init.d"

#: Run levels whose links mean "starts at boot": S is the boot itself; Debian treats 2 to 5 alike.
_LEVELS = ("S", "2", "3", "4", "5")

#: Name of a start link in a run level: S, two digits, the service.
_LINK = re.compile(r"S\d{2}(.+)$")

#: Files in /etc/init.d that are not scripts of services.
_NO_SERVICES = ("README", "skeleton", ".depend.boot", ".depend.start", ".depend.stop", "rc", "rcS", "functions")

#: Programs of systemd. A mounted host with one of them uses systemd once it runs.
_SYSTEMD = ("/usr/lib/systemd/systemd", "/lib/systemd/systemd")

#: Default run levels for start and kill links of a script that names none: those of Debian.
_START, _KILL = ("2", "3", "4", "5"), ("0", "1", "6")

#: Lines of a script's LSB header that name its run levels.
_HEADER = {
    "start": re.compile(r"^# Default-Start:[ \t]*(.*)$", re.MULTILINE),
    "stop": re.compile(r"^# Default-Stop:[ \t]*(.*)$", re.MULTILINE),
}

#: Number of a new link, which orders services: Debian's for a service without dependencies.
_NUMBER = "20"

_SIGNS = re.compile(r"[*?]|\[.+\]")


def available(ctx: Context) -> str | None:
    """Return None if the host has init scripts and neither systemd nor OpenRC is its init; else return the reason as
    text.
    """
    if ctx.host.path("/run/systemd/system").is_dir():
        return "systemd runs on the host"
    if ctx.host.path("/etc/runlevels").is_dir():
        return "the host's init scripts are OpenRC's"
    if ctx.host.mounted and any(ctx.host.path(path).is_file() for path in _SYSTEMD):
        return "the host's init is systemd, which does not run"
    return None if ctx.host.path(_SCRIPTS).is_dir() else f"the host has no {_SCRIPTS}"


def start(ctx: Context, name: str) -> bool:
    """Start a service by its init script. Return whether the script succeeded.

    CLI Example:

        salt '*' service.start nginx
    """
    return _do(ctx, name, "start")


def stop(ctx: Context, name: str) -> bool:
    """Stop a service by its init script. Return whether the script succeeded."""
    return _do(ctx, name, "stop")


def restart(ctx: Context, name: str) -> bool:
    """Stop and start a service by its init script. Return whether the script succeeded."""
    return _do(ctx, name, "restart")


def reload_(ctx: Context, name: str) -> bool:
    """Make a service read its configuration again, by its init script. Return whether the script succeeded."""
    return _do(ctx, name, "reload")


def force_reload(ctx: Context, name: str) -> bool:
    """Make a service read its configuration again by its init script, which restarts a service that cannot reload.
    Return whether the script succeeded.
    """
    return _do(ctx, name, "force-reload")


def status(ctx: Context, name: str, sig: str | None = None) -> object:
    """Return whether a service runs, by the exit code of its init script. For a glob return a map of service to whether
    it runs.

    ``sig``: return whether a process has this text in its command line.
    """
    if sig:
        return _process(ctx, sig)
    names = fnmatch.filter(get_all(ctx), name) if _SIGNS.search(name) else [name]
    found = {each: available_(ctx, each) and _call(ctx, each, "status") for each in names}
    return found if _SIGNS.search(name) else found[name]


def available_(ctx: Context, name: str) -> bool:
    """Return whether the host has a service with an init script of this name."""
    return name in get_all(ctx)


def missing(ctx: Context, name: str) -> bool:
    """Return whether the host has no service with an init script of this name."""
    return not available_(ctx, name)


def get_all(ctx: Context) -> list[str]:
    """Return the names of all services that have init scripts."""
    return sorted({name for name in _names(ctx, _SCRIPTS) if name not in _NO_SERVICES} | set(get_enabled(ctx)))


def get_enabled(ctx: Context) -> list[str]:
    """Return the names of the services whose init scripts start at boot."""
    links = (_LINK.match(name) for level in _LEVELS for name in _names(ctx, f"/etc/rc{level}.d"))
    return sorted({link[1] for link in links if link})


def get_disabled(ctx: Context) -> list[str]:
    """Return the names of the services whose init scripts do not start at boot."""
    return sorted(set(get_all(ctx)) - set(get_enabled(ctx)))


def enable(ctx: Context, name: str, **kwargs: object) -> bool:
    """Enable a service, so that its init script starts at boot. Return True. False, and an exit code, if the links of its run
    levels cannot be changed.
    """
    # "defaults" creates missing links; "enable" turns kill links into start links.
    _update_rc(ctx, name, "defaults")
    return _update_rc(ctx, name, "enable")


def disable(ctx: Context, name: str, **kwargs: object) -> bool:
    """Disable a service, so that its init script does not start at boot. Return True. False, and an exit code, if the
    links of its run levels cannot be changed.
    """
    return _update_rc(ctx, name, "disable")


def enabled(ctx: Context, name: str, **kwargs: object) -> bool:
    """Return whether the init script of a service starts at boot."""
    return name in get_enabled(ctx)


def disabled(ctx: Context, name: str, **kwargs: object) -> bool:
    """Return whether a service has an init script that does not start at boot."""
    return name in get_disabled(ctx)


# ----------------------------------------------------------------------------------------------- helpers


def _do(ctx: Context, name: str, action: str) -> bool:
    if not available_(ctx, name):
        raise CallFailed(f"The named service {name} is not available: the host has no {_SCRIPTS}/{name}", False)
    return _call(ctx, name, action)


def _call(ctx: Context, name: str, action: str) -> bool:
    result = run_detached(ctx.host, [f"{_SCRIPTS}/{name}", action])
    if result.retcode and action != "status":
        output = "\n".join(filter(None, (result.stdout.strip(), result.stderr.strip())))
        log.error("%s/%s %s failed with return code %s: %s", _SCRIPTS, name, action, result.retcode, output)
    return result.retcode == 0


def _update_rc(ctx: Context, name: str, verb: str) -> bool:
    """Run ``update-rc.d`` with the word defaults, enable or disable for a service. On a host without this program
    change the links of its run levels directly. Return True. Raise CallFailed if it fails.
    """
    if ctx.host.which("update-rc.d") is None:
        return verb == "defaults" or _set_links(ctx, name, on=verb == "enable")
    result = ctx.host.run(["update-rc.d", name, verb], env={"LC_ALL": "C"})
    if result.retcode:
        told = result.stderr.strip() or f"return code {result.retcode}"
        raise CallFailed(f"update-rc.d {name} {verb} failed: {told}", False)
    return True


def _set_links(ctx: Context, name: str, *, on: bool) -> bool:
    """Create the links to an init script in its run levels: S starts the service, K stops it. Return True.

    An existing link keeps its number. Raise CallFailed for a service without a script.
    """
    script = ctx.host.path(f"{_SCRIPTS}/{name}")
    if not script.is_file():
        raise CallFailed(f"The named service {name} is not available: the host has no {_SCRIPTS}/{name}", False)
    text = script.read_text("utf-8", "replace")
    wanted = {key: match[1].split() if (match := _HEADER[key].search(text)) else None for key in _HEADER}
    start, kill = wanted["start"] or list(_START), wanted["stop"] or list(_KILL)
    for level in {*start, *kill}:
        directory = ctx.host.path(f"/etc/rc{level}.d")
        directory.mkdir(parents=True, exist_ok=True)
        old = [path for path in directory.iterdir() if re.fullmatch(rf"[SK]\d\d{re.escape(name)}", path.name)]
        number = old[0].name[1:3] if old else _NUMBER
        for path in old:
            path.unlink()
        (directory / f"{'S' if on and level in start else 'K'}{number}{name}").symlink_to(f"../init.d/{name}")
    return True


def _names(ctx: Context, directory: str) -> list[str]:
    try:
        return [entry.name for entry in ctx.host.path(directory).iterdir() if entry.is_symlink() or entry.is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _process(ctx: Context, sig: str) -> bool:
    """Return whether a process of the host has the text ``sig`` in its command line. This process and its parent do not
    count.
    """
    own = {os.getpid(), os.getppid()}
    return any(sig in " ".join(each.words) for each in processes.all_of(ctx.host) if each.pid not in own)
