"""Version locks of packages on a host with rpm (``versionlock``). Helpers of ``pkg``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

from statecore.builtin.modules.pkg_rpm import dnf
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError
from statecore.model.ports import ManagedHost
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import ini

#: Program -> its plugin's configuration file, the default file of the locks, and the package of the plugin.
_PLUGINS: Mapping[str, tuple[str, str, str]] = {
    "dnf": (
        "/etc/dnf/plugins/versionlock.conf",
        "/etc/dnf/plugins/versionlock.list",
        "python3-dnf-plugin-versionlock",
    ),
    "yum": (
        "/etc/yum/pluginconf.d/versionlock.conf",
        "/etc/yum/pluginconf.d/versionlock.list",
        "yum-plugin-versionlock",
    ),
}

#: File of dnf5's locks; dnf5 needs no plugin.
_TOML = "/etc/dnf/versionlock.toml"

_DNF = re.compile(r"(?P<name>.+)-\d+:")
_YUM = re.compile(r"\d+:(?P<name>.+)-[^-]+-[^-]+$")
_PLAIN = re.compile(r"(?P<name>.+)-[^-]+-[^-]+$")


@dataclass(frozen=True, slots=True)
class Lock:
    """The version lock of a package, with which dnf keeps the package at this version: the package's name and the
    line of the lock file.
    """

    name: str
    #: The lock as the file has it: ``bash-0:5.1.8-6.el9.*``.
    text: str


def missing(host: ManagedHost) -> str | None:
    """Return the reason why dnf cannot lock packages on the host; None if it can."""
    used = dnf.name(host)
    if used not in _PLUGINS:
        return None
    conf, _, package = _PLUGINS[used]
    return None if host.path(conf).is_file() else f"Cannot proceed, {package} is not installed."


def read(ctx: Context) -> list[Lock]:
    """Return the version locks of the host as a list of Lock (package name, line of the lock file); [] if packages
    cannot be locked. Raise CommandError for a damaged file.
    """
    used = dnf.name(ctx.host)
    if used not in _PLUGINS:
        return _read_toml(_text(ctx.host, _TOML))
    conf, listed, _ = _PLUGINS[used]
    main = ini.plain(ini.parse(_text(ctx.host, conf))).get("main")
    path = main.get("locklist", listed) if isinstance(main, dict) else listed
    return parse(_text(ctx.host, str(path)))


def names(ctx: Context) -> list[str]:
    """Return the names of the packages that have a version lock."""
    return list(dict.fromkeys(lock.name for lock in read(ctx)))


def parse(text: str) -> list[Lock]:
    """Parse the text of a file of version locks. Return a list of Lock (package name, line), one for each line. A line
    with ``!`` excludes a version and is no lock.
    """
    found = []
    for line in lines_of(text):
        lock = line.partition("#")[0].strip()
        if lock and not lock.startswith("!"):
            match = _DNF.match(lock) or _YUM.match(lock) or _PLAIN.match(lock)
            found.append(Lock(match["name"] if match else lock, lock))
    return found


def add(ctx: Context, package: str) -> list[str]:
    """Lock a package at its installed version. Return the errors as texts, [] on success."""
    return _tell(ctx, "add", package)


def remove(ctx: Context, package: str) -> list[str]:
    """Remove the version locks of a package. Return the errors as texts, [] on success."""
    # yum does not find its own locks by the package's name.
    found = [lock.text for lock in read(ctx) if lock.name == package] if dnf.name(ctx.host) == "yum" else [package]
    return _tell(ctx, "delete", *found)


def _tell(ctx: Context, *words: str) -> list[str]:
    result = dnf.run_query(
        ctx.host, ["-q", "versionlock", *words] if dnf.name(ctx.host) == "yum" else ["versionlock", *words]
    )
    return [result.stderr.strip() or result.stdout.strip() or f"exit code {result.retcode}"] if result.retcode else []


def _read_toml(text: str) -> list[Lock]:
    try:
        packages = tomllib.loads(text).get("packages", [])
    except tomllib.TOMLDecodeError as error:
        raise CommandError(f"{_TOML}: {error}") from error
    found = []
    for package in packages if isinstance(packages, list) else ():
        name = str(package.get("name", ""))
        exact = [
            str(condition.get("value"))
            for condition in package.get("conditions", ())
            if condition.get("key") == "evr" and condition.get("comparator") == "="
        ]
        for version in exact[:1] or [""]:
            full = version if ":" in version or not version else f"0:{version}"
            found.append(Lock(name, f"{name}-{full}.*" if full else name))
    return [lock for lock in found if lock.name]


def _text(host: ManagedHost, path: str) -> str:
    try:
        return host.path(path).read_text("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise HostError(f"{path} cannot be read: {error.strerror}") from error
