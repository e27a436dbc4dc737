"""dpkg and APT of a managed host: how they are called, and what they say, read. Behind the ``pkg`` module."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from statecore.host.detached_run import run_detached
from statecore.model.errors import CommandError
from statecore.model.ports import CommandResult, ManagedHost
from statecore.system.packages import package_requests, package_versions
from statecore.system.packages.package_versions import deb

PROGRAMS = ("apt-get", "apt-cache", "dpkg-query", "dpkg")

#: No questions, and messages in the language that is parsed here.
_ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive",
    "APT_LISTCHANGES_FRONTEND": "none",
    "APT_LISTBUGS_FRONTEND": "none",
    "LC_ALL": "C",
    "LANGUAGE": "C",
}

#: Another APT or dpkg may be at work (unattended upgrades): wait so many seconds for it.
PATIENCE = ("-o", "DPkg::Lock::Timeout=120")

#: What a dpkg that was killed wants; no state does it unasked, for scripts of packages run then.
_MEND = "Run 'dpkg --configure -a' on the host (by cmd.run, or a state that is required), then this state again."

_STATUS = "/var/lib/dpkg/status"
_LISTS = "/var/lib/apt/lists"

#: First word of a line of ``apt-get update`` -> what became of that database.
_UPDATED: Mapping[str, bool | None] = {"Get": True, "Hit": None, "Ign": False, "Err": False}


@dataclass(frozen=True, slots=True)
class Packages:
    """What dpkg has on record: package -> versions, sorted."""

    installed: Mapping[str, list[str]] = field(default_factory=dict)
    #: Only configuration files are left.
    removed: Mapping[str, list[str]] = field(default_factory=dict)
    #: Installed and marked to be purged.
    purge_desired: Mapping[str, list[str]] = field(default_factory=dict)


def run(host: ManagedHost, argv: Sequence[str], stdin: str | None = None) -> CommandResult:
    """Runs a program that asks or records something. Raises HostError when it cannot be started."""
    return host.run(argv, env=_ENVIRONMENT, stdin=stdin)


def change(host: ManagedHost, words: Sequence[str]) -> list[str]:
    """Runs apt-get so that it may change packages; [] or what went wrong. Daemons that it starts stay."""
    result = run_detached(host, ["apt-get", *words], env=_ENVIRONMENT)
    errors = package_requests.refusal("apt-get", result, _MEND)
    if errors and "dpkg --configure -a" in errors[0] and _MEND not in errors[0]:
        errors = [f"{errors[0]}\n{_MEND}"]
    return errors


def answer(host: ManagedHost, text: str) -> None:
    """Answers questions of packages before they ask. Raises CommandError."""
    result = run(host, ["debconf-set-selections"], stdin=text)
    if result.retcode:
        raise CommandError(f"debconf-set-selections failed: {result.stderr.strip() or result.stdout.strip()}")


def state(host: ManagedHost) -> tuple[int, int]:
    """Changes whenever dpkg's database does."""
    try:
        found = host.path(_STATUS).stat()
    except OSError:
        return (0, 0)
    return found.st_mtime_ns, found.st_size


def architecture(host: ManagedHost) -> str:
    """The host's own architecture ("amd64")."""
    return run(host, ["dpkg", "--print-architecture"]).stdout.strip()


def packages(host: ManagedHost, native: str) -> Packages:
    """Reads dpkg's records. Packages of another architecture than ``native`` are named ``name:architecture``."""
    result = run(host, ["dpkg-query", "--showformat", "${Status} ${Package} ${Version} ${Architecture}\\n", "--show"])
    # It fails on an empty database too, and then has nothing to say.
    if result.retcode and result.stderr.strip() and "no packages found" not in result.stderr:
        raise CommandError(f"dpkg-query failed: {result.stderr.strip()}")
    found = Packages({}, {}, {})
    for line in result.stdout.splitlines():
        columns = line.split()
        if len(columns) != 6:
            continue
        wanted, _, status, name, version, own = columns
        kinds = {
            "installed": found.installed if wanted in ("install", "hold") and status == "installed" else None,
            "removed": found.removed if wanted == "deinstall" and status != "installed" else None,
            "purge": found.purge_desired if wanted == "purge" and status == "installed" else None,
        }
        for kind in kinds.values():
            if isinstance(kind, dict):
                key = name if own in ("all", native) else f"{name}:{own}"
                kind[key] = sorted({*kind.get(key, []), version})
    return found


def candidates(host: ManagedHost, names: Sequence[str], fromrepo: str | None = None) -> dict[str, str]:
    """Package -> the version that APT would install; packages that it does not know, or cannot install, are left out."""
    words = ["-o", f"APT::Default-Release={fromrepo}"] if fromrepo else []
    result = run(host, ["apt-cache", "-q", *words, "policy", *names])
    found: dict[str, str] = {}
    package = ""
    for line in result.stdout.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            package = line[:-1]
        elif line.strip().startswith("Candidate:"):
            version = line.split()[-1]
            if version != "(none)":
                found[package] = version
                # A foreign package is answered by its full name, a native one by the plain name.
                found.setdefault(package.partition(":")[0], version)
    return {name: found[name] for name in names if name in found}


def upgrades(host: ManagedHost, words: Sequence[str]) -> dict[str, str]:
    """Package -> new version, of what an upgrade would configure. Raises CommandError."""
    result = run(host, ["apt-get", "--just-print", *words])
    if result.retcode:
        raise CommandError(f"Failed to get upgrades: {result.stderr or result.stdout}".rstrip())
    return dict(re.findall(r"(?m)^Conf ([^ ]+) (?:\[[^\]]*\] )?\(([^ ]+)", result.stdout))


def repository(host: ManagedHost, names: Sequence[str]) -> dict[str, list[str]]:
    """Package -> versions in the repositories, newest first; of these packages, or of all."""
    result = run(host, ["apt-cache", *(["show", *names] if names else ["dumpavail"])])
    found: dict[str, list[str]] = {}
    package = ""
    for line in result.stdout.splitlines():
        if line.startswith("Package: "):
            package = line.split()[1]
        elif line.startswith("Version: ") and package:
            versions = found.setdefault(package, [])
            if line.split()[1] not in versions:
                versions.append(line.split()[1])
    return found


def update(host: ManagedHost) -> dict[str, bool | None]:
    """Fetches the package lists; per database True (fetched), None (was current), False (failed). Raises CommandError."""
    result = run(host, ["apt-get", "-q", *PATIENCE, "update"])
    if result.retcode:
        raise CommandError(result.stderr.strip() or f"apt-get update failed with return code {result.retcode}")
    found: dict[str, bool | None] = {}
    for line in result.stdout.splitlines():
        word, _, rest = line.partition(" ")
        kind = word.partition(":")[0]
        if kind in _UPDATED:
            found[re.sub(r" \[.+B\]$", "", rest.strip())] = _UPDATED[kind]
    return found


def lists_age(host: ManagedHost) -> float:
    """Seconds since the package lists were fetched; without end where there are none."""
    try:
        return time.time() - host.path(_LISTS).stat().st_mtime
    except OSError:
        return float("inf")


def batches(
    words: Mapping[str, str], before: Mapping[str, str], again: Sequence[str]
) -> list[tuple[list[str], list[str]]]:
    """(what to install, options) for each call of apt-get. ``words``: package -> ``name`` or ``name=version``. Older
    versions and those to be installed again need options that the rest must not get."""
    fresh: list[str] = []
    older: list[str] = []
    repeated: list[str] = []
    for package, word in words.items():
        _, separator, version = word.partition("=")
        installed = before.get(package)
        if not installed or not separator:
            (repeated if package in again else fresh).append(word)
        elif package in again and deb.compare(version, installed) == 0:
            repeated.append(word)
        elif "*" not in version and deb.compare(version, installed) < 0:
            older.append(word)
        else:
            fresh.append(word)
    called: tuple[tuple[list[str], list[str]], ...] = (
        (fresh, []),
        (older, ["--allow-downgrades"]),
        (repeated, ["--reinstall"]),
    )
    return [(chosen, options) for chosen, options in called if chosen]


def install_options(
    *,
    fromrepo: str | None = None,
    skip_verify: bool = False,
    downloadonly: bool = False,
    install_recommends: bool | None = None,
    only_upgrade: bool = False,
    force_conf_new: bool = False,
) -> list[str]:
    """Options of apt-get for an installation. Configuration files that were changed by hand are kept, or not."""
    kept = ("--force-confnew",) if force_conf_new else ("--force-confold", "--force-confdef")
    words = ["-q", "-y", *PATIENCE]
    for option in kept:
        words += ["-o", f"DPkg::Options::={option}"]
    if install_recommends is not None:
        words.append("--install-recommends" if install_recommends else "--no-install-recommends")
    words += ["--only-upgrade"] if only_upgrade else []
    words += ["--allow-unauthenticated"] if skip_verify else []
    words += ["--download-only"] if downloadonly else []
    return [*words, "-t", fromrepo] if fromrepo else words


def words(
    host: ManagedHost, wanted: Mapping[str, str | None], errors: list[str], *, ignore_epoch: bool
) -> dict[str, str]:
    """Package -> what to call it for apt-get; what no repository can fulfil is added to ``errors``."""
    ranged = [package for package, version in wanted.items() if version and package_versions.is_range(version)]
    offered = repository(host, ranged) if ranged else {}
    found = {}
    for package, version in wanted.items():
        exact = version.lstrip("= ") if version else None
        if version and package in ranged:
            versions = offered.get(package, [])
            exact = package_versions.best(versions, version, order=deb.compare, ignore_epoch=ignore_epoch)
            if exact is None:
                errors.append(
                    f"No version matching '{package}{version}' could be found (available: "
                    f"{', '.join(versions) or None})"
                )
                continue
        found[package] = f"{package}={exact}" if exact else package
    return found
