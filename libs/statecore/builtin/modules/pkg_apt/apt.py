"""Helpers of ``pkg`` on Debian: they run the programs of dpkg and APT and parse their output."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from statecore.host.detached_run import run_detached
from statecore.model.errors import CommandError
from statecore.model.ports import CommandResult, ManagedHost
from statecore.model.text_lines import lines_of
from statecore.system.packages import package_requests, package_versions
from statecore.system.packages.package_versions import deb

PROGRAMS = ("apt-get", "apt-cache", "dpkg-query", "dpkg")

#: Environment of every command: no questions, and English messages, which are parsed here.
_ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive",
    "APT_LISTCHANGES_FRONTEND": "none",
    "APT_LISTBUGS_FRONTEND": "none",
    "LC_ALL": "C",
    "LANGUAGE": "C",
}

#: Seconds to wait for the lock while another APT or dpkg runs (unattended upgrades).
PATIENCE = ("-o", "DPkg::Lock::Timeout=120")

#: Advice after a killed dpkg. No state runs it by itself, because it runs scripts of packages.
_MEND = "Run 'dpkg --configure -a' on the host (by cmd.run, or a state that is required), then this state again."

_STATUS = "/var/lib/dpkg/status"
_LISTS = "/var/lib/apt/lists"

#: First word of a line of ``apt-get update`` -> True (fetched), None (unchanged), False (failed).
_UPDATED: Mapping[str, bool | None] = {"Get": True, "Hit": None, "Ign": False, "Err": False}


@dataclass(frozen=True, slots=True)
class Packages:
    """dpkg's records of packages: for each kind of record (installed, removed, to be purged) a map of package to sorted
    versions.
    """

    installed: Mapping[str, list[str]] = field(default_factory=dict)
    #: Packages of which only configuration files are left.
    removed: Mapping[str, list[str]] = field(default_factory=dict)
    #: Packages that are installed and marked to be purged.
    purge_desired: Mapping[str, list[str]] = field(default_factory=dict)


def run(host: ManagedHost, argv: Sequence[str], stdin: str | None = None) -> CommandResult:
    """Run a program of dpkg or APT that changes no packages, and return its result (exit code and output). Raise
    HostError if it cannot be started.
    """
    return host.run(argv, env=_ENVIRONMENT, stdin=stdin)


def run_change(host: ManagedHost, words: Sequence[str]) -> list[str]:
    """Run an apt-get command that changes packages. Return the errors as texts, [] on success.

    Daemons that package scripts start keep running after the command.
    """
    result = run_detached(host, ["apt-get", *words], env=_ENVIRONMENT)
    errors = package_requests.refusal("apt-get", result, _MEND)
    if errors and "dpkg --configure -a" in errors[0] and _MEND not in errors[0]:
        errors = [f"{errors[0]}\n{_MEND}"]
    return errors


def store_debconf_answers(host: ManagedHost, text: str) -> None:
    """Store answers to the debconf questions of packages on the host. Raise CommandError if this fails."""
    result = run(host, ["debconf-set-selections"], stdin=text)
    if result.retcode:
        raise CommandError(f"debconf-set-selections failed: {result.stderr.strip() or result.stdout.strip()}")


def state(host: ManagedHost) -> tuple[int, int]:
    """Return the state of dpkg's database file as a pair of numbers that changes whenever the file changes; (0, 0)
    without a database.
    """
    try:
        found = host.path(_STATUS).stat()
    except OSError:
        return (0, 0)
    return found.st_mtime_ns, found.st_size


def architecture(host: ManagedHost) -> str:
    """Return the architecture of the host's own packages, such as "amd64"."""
    return run(host, ["dpkg", "--print-architecture"]).stdout.strip()


def packages(host: ManagedHost, native: str) -> Packages:
    """Return dpkg's records of packages: maps of package to versions for installed, removed and to be purged packages.
    Packages of another architecture than ``native`` are named ``name:architecture``. Raise CommandError if dpkg-query
    fails.
    """
    result = run(host, ["dpkg-query", "--showformat", "${Status} ${Package} ${Version} ${Architecture}\\n", "--show"])
    # dpkg-query also fails on an empty database, then without a message.
    if result.retcode and result.stderr.strip() and "no packages found" not in result.stderr:
        raise CommandError(f"dpkg-query failed: {result.stderr.strip()}")
    found = Packages({}, {}, {})
    for line in lines_of(result.stdout):
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
    """Return a map of package to the version that APT would install, for the packages that APT can install."""
    words = ["-o", f"APT::Default-Release={fromrepo}"] if fromrepo else []
    result = run(host, ["apt-cache", "-q", *words, "policy", *names])
    found: dict[str, str] = {}
    package = ""
    for line in lines_of(result.stdout):
        if line.endswith(":") and not line.startswith(" "):
            package = line[:-1]
        elif line.strip().startswith("Candidate:"):
            version = line.split()[-1]
            if version != "(none)":
                found[package] = version
                # APT prints a foreign package with its architecture, a native one without.
                found.setdefault(package.partition(":")[0], version)
    return {name: found[name] for name in names if name in found}


def upgrades(host: ManagedHost, words: Sequence[str]) -> dict[str, str]:
    """Return a map of package to new version for the packages that the apt-get command ``words`` would configure. Raise
    CommandError if APT fails.
    """
    result = run(host, ["apt-get", "--just-print", *words])
    if result.retcode:
        raise CommandError(f"Failed to get upgrades: {result.stderr or result.stdout}".rstrip())
    return dict(re.findall(r"(?m)^Conf ([^ ]+) (?:\[[^\]]*\] )?\(([^ ]+)", result.stdout))


def repository(host: ManagedHost, names: Sequence[str]) -> dict[str, list[str]]:
    """Return a map of package to its versions in APT's repositories, newest first. Without names return all
    packages.
    """
    result = run(host, ["apt-cache", *(["show", *names] if names else ["dumpavail"])])
    found: dict[str, list[str]] = {}
    package = ""
    for line in lines_of(result.stdout):
        if line.startswith("Package: "):
            package = line.split()[1]
        elif line.startswith("Version: ") and package:
            versions = found.setdefault(package, [])
            if line.split()[1] not in versions:
                versions.append(line.split()[1])
    return found


def update(host: ManagedHost) -> dict[str, bool | None]:
    """Fetch APT's package lists. Return a map of source to True (fetched), None (unchanged) or False (failed). Raise
    CommandError if apt-get cannot do it.
    """
    result = run(host, ["apt-get", "-q", *PATIENCE, "update"])
    if result.retcode:
        raise CommandError(result.stderr.strip() or f"apt-get update failed with return code {result.retcode}")
    found: dict[str, bool | None] = {}
    for line in lines_of(result.stdout):
        word, _, rest = line.partition(" ")
        kind = word.partition(":")[0]
        if kind in _UPDATED:
            found[re.sub(r" \[.+B\]$", "", rest.strip())] = _UPDATED[kind]
    return found


def lists_age(host: ManagedHost) -> float:
    """Return the seconds since APT's package lists were fetched; infinity if there are no lists."""
    try:
        return time.time() - host.path(_LISTS).stat().st_mtime
    except OSError:
        return float("inf")


def batches(
    words: Mapping[str, str], before: Mapping[str, str], again: Sequence[str]
) -> list[tuple[list[str], list[str]]]:
    """Split an installation into several apt-get calls. Return a list of pairs (words to install, extra options).

    ``words``: package -> ``name`` or ``name=version``. Older versions and reinstallations need options that the other
    packages must not get.
    """
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
    """Return apt-get's options for an installation. With ``force_conf_new``, configuration files that were changed by
    hand are replaced.
    """
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
    """Return a map of package to apt-get's argument for it (``name`` or ``name=version``).

    An error is appended to ``errors`` for each package without a matching version.
    """
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
