"""Processes that use files of packages which were upgraded or removed: Salt's ``restartcheck`` execution module.

A service whose program or library was replaced runs the old one until it is restarted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from statecore.model.context import Context
from statecore.model.text_lines import lines_of, text_of
from statecore.system.hostfiles import processes

#: Places whose deleted files are no part of a package.
_IGNORED = re.compile(
    r"/var/(local/)?(log|run|tmp)/|/tmp/|/dev/(shm/|zero|pts/)|/run/|/drm|/usr/lib/locale/|/home/|.*icon-theme\.cache"
    r"|/var/cache/fontconfig/|/var/lib/(nagios3/spool|postgresql|vdr)/|/\[aio\]|/SYSV|/memfd:"
)

_DELETED = " (deleted)"

#: A line of /proc/PID/maps, up to its path.
_MAP = re.compile(r"^[\da-f]+-[\da-f]+ [r-][w-][x-][sp-] [\da-f]+ [\da-f]+:[\da-f]+ \d+ *(\S.*)$")

#: Family -> where its packages have units of systemd.
_UNITS = {"Debian": ("/lib/systemd/system/", "/usr/lib/systemd/system/"), "RedHat": ("/usr/lib/systemd/system/",)}

_SCRIPTS = "/etc/init.d/"

#: A name that a service can have.
_SERVICE = re.compile(r"[A-Za-z0-9_][\w@.:+-]*")

#: Programs that need the whole system to be restarted.
_NEVER = ("screen", "systemd")


@dataclass
class _Package:
    """A package whose replaced or deleted files are still in use: the name of the first process or service that uses
    them, one line of text for each process and file, and the names of the package's init scripts and units.
    """

    process_name: str
    processes: list[str] = field(default_factory=list)
    init_scripts: list[str] = field(default_factory=list)
    units: list[str] = field(default_factory=list)


def restartcheck(
    ctx: Context,
    ignorelist: str | Sequence[str] | None = None,
    blacklist: str | Sequence[str] | None = None,
    excludepid: object = None,
    **kwargs: object,
) -> object:
    """Return a text that lists the packages whose processes use replaced files, and the commands that restart their
    services; a sentence if there are none.

    ignorelist
        packages to leave out; screen and systemd without it
    blacklist
        files to leave out
    excludepid
        process ids to leave out
    verbose
        False: return only a list of packages
    timeout
        accepted, without effect: only /proc is read

    CLI Example:

        salt '*' restartcheck.restartcheck
    """
    family = str(ctx.grains.get("os_family"))
    if family not in _UNITS:
        return {"result": False, "comment": "Only available on Debian, Red Hat and NI Linux Real-Time based systems."}
    ignored = set(_listed(ignorelist)) or set(_NEVER)
    services = _services(ctx)
    packages: dict[str, _Package] = {}
    restarted: list[str] = []
    owners: dict[str, str] = {}
    files, pids = set(_listed(blacklist)), {str(each) for each in _listed(excludepid)}
    for name, pid, path in _deleted_files(ctx):
        program = _program(ctx, pid)
        if path in files or str(pid) in pids or program is None:
            continue
        if program not in owners:
            owners[program] = str(ctx.call("pkg.owner", program.removesuffix(_DELETED)) or name)
        owner = owners[program]
        if owner in ignored:
            continue
        service = services.get(pid)
        if service is not None and service not in restarted:
            restarted.append(service)
        line = f"\t{pid} {program} (file: {path})"
        package = packages.setdefault(owner, _Package(service or name))
        if line not in package.processes:
            package.processes.append(line)
    reboot = _new_kernel(ctx, family)
    if not packages and not reboot:
        return "No packages seem to need to be restarted."
    for owner, package in packages.items():
        _find_services(ctx, owner, package, family)
        if package.process_name in restarted:
            restarted.remove(package.process_name)
    return _shown(packages, restarted, reboot=reboot, verbose=bool(kwargs.get("verbose", True)))


def deleted_maps(text: str) -> list[str]:
    """Return the paths of deleted files in the text of /proc/PID/maps, without paths below /tmp, /home and others
    that belong to no package.
    """
    paths = (found[1] for line in lines_of(text) if (found := _MAP.match(line)))
    names = (path.removesuffix(_DELETED) for path in paths if path.endswith(_DELETED))
    return list(dict.fromkeys(name for name in names if not _IGNORED.match(name)))


def _deleted_files(ctx: Context) -> Iterator[tuple[str, int, str]]:
    """Yield (process name, process id, path) for each deleted file that a process of the host uses."""
    for process in processes.all_of(ctx.host):
        place = processes.directory(ctx.host) / str(process.pid)
        try:
            paths = deleted_maps(text_of(place / "maps"))
            opened = [str(each.readlink()) for each in (place / "fd").iterdir()]
        except OSError:
            # The process has ended, or may not be read.
            continue
        names = (path.removesuffix(_DELETED) for path in opened if path.endswith(_DELETED) and path.startswith("/"))
        for path in dict.fromkeys([*paths, *(name for name in names if not _IGNORED.match(name))]):
            yield process.name, process.pid, path


def _program(ctx: Context, pid: int) -> str | None:
    try:
        return str((processes.directory(ctx.host) / str(pid) / "exe").readlink())
    except OSError:
        return None


def _services(ctx: Context) -> dict[int, str]:
    """Return a map of main process id to service name, for the running services."""
    found = {}
    if "service.get_running" not in ctx.functions:
        # Only systemd knows the process of a service.
        return {}
    for service in ctx.call("service.get_running"):
        shown = ctx.call("service.show", service) if "service.show" in ctx.functions else {}
        pid = int(shown.get("ExecMainPID") or 0)
        if pid:
            found[pid] = service
    return found


def _new_kernel(ctx: Context, family: str) -> bool:
    """Return whether the newest installed kernel differs from the running one."""
    if family == "RedHat":
        lines = lines_of(ctx.host.run(["rpm", "-q", "--last", "kernel"]).stdout)
        names = [line.split()[0].removeprefix("kernel-") for line in lines if line.startswith("kernel-")]
        return bool(names) and names[0] != os.uname().release
    boot = ctx.host.path("/boot")
    places = boot.glob("vmlinuz-*") if boot.is_dir() else ()
    releases = sorted((each.name.removeprefix("vmlinuz-") for each in places), key=_release_key)
    return bool(releases) and releases[-1] != os.uname().release


def _release_key(release: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.findall(r"\d+|\D+", release)]


def _find_services(ctx: Context, owner: str, package: _Package, family: str) -> None:
    """Add the names of the init scripts and units that belong to the package ``owner`` to the lists in ``package``. If
    it has none, add the service that has the name of its process.
    """
    listed = ctx.call("pkg.file_list", owner)
    for path in listed.get("files", ()) if isinstance(listed, dict) else ():
        if path.startswith(_SCRIPTS) and not path.endswith(".sh"):
            package.init_scripts.append(path.removeprefix(_SCRIPTS))
        place, _, unit = path.rpartition("/")
        if f"{place}/" in _UNITS[family] and unit.endswith(".service") and not _is_oneshot(ctx.host.path(path)):
            package.units.append(unit)
    name = package.process_name
    if not _SERVICE.fullmatch(name):
        # Whoever runs a process chooses its name: it could be an option of systemctl, or a path.
        return
    if not package.init_scripts and not package.units and ctx.call("service.available", name):
        scripted = ctx.host.path(f"{_SCRIPTS}{name}").exists()
        (package.init_scripts if scripted else package.units).append(name)


def _is_oneshot(path: Path) -> bool:
    try:
        return "Type=oneshot" in path.read_text("utf-8", "replace")
    except OSError:
        return True


def _shown(packages: dict[str, _Package], services: Sequence[str], *, reboot: bool, verbose: bool) -> object:
    able = [name for name, each in packages.items() if each.init_scripts or each.units]
    unable = [name for name in packages if name not in able]
    if not verbose:
        return [*able, *unable, *(["System restart required."] if reboot else [])]
    scripts = [f"service {each} restart" for package in packages.values() for each in package.init_scripts]
    units = [
        f"systemctl restart {each}"
        for package in packages.values()
        for each in (package.units if not package.init_scripts else ())
    ]
    units += [f"systemctl restart {each}" for each in services]
    text = "System restart required.\n\n" if reboot else ""
    if packages:
        text += f"Found {len(packages)} processes using old versions of upgraded files.\nThese are the packages:\n"
    if able:
        text += (
            f"Of these, {len(able)} seem to contain systemd service definitions or init scripts which can be used to "
            "restart them:\n"
        )
        text += "".join(f"{name}:\n" + "".join(f"{line}\n" for line in packages[name].processes) for name in able)
        text += "\n\nThese are the systemd services:\n" + "\n".join(units) if units else ""
        text += "\n\nThese are the initd scripts:\n" + "\n".join(scripts) if scripts else ""
    if unable:
        text += f"\n\nThese processes {len(unable)} do not seem to have an associated init script to restart them:\n"
        text += "".join(f"{name}:\n" + "".join(f"{line}\n" for line in packages[name].processes) for name in unable)
    return text


def _listed(value: object) -> list[str]:
    if value is None or value == "":
        return []
    return [str(each) for each in value] if isinstance(value, list | tuple) else [str(value)]
