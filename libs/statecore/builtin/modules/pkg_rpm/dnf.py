"""Helpers of ``pkg`` on RedHat: they run dnf5, dnf or yum and parse its output."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from statecore.builtin.modules.pkg_rpm import rpm
from statecore.host.detached_run import run_detached
from statecore.model.context import Context
from statecore.model.errors import CommandError, NotAvailable
from statecore.model.ports import CommandResult, ManagedHost
from statecore.model.text_lines import lines_of
from statecore.system.packages import package_requests
from statecore.system.packages.package_versions import rpm as versions

#: Package managers in order of preference; the first one that the host has is used.
PROGRAMS = ("dnf5", "dnf", "yum")

#: Program -> command that lists available packages; program -> command that lists upgrades. Others use the default.
_AVAILABLE: Mapping[str, list[str]] = {"dnf5": ["list", "--available"]}
_UPGRADES: Mapping[str, list[str]] = {"yum": ["list", "updates"]}

#: Headings in a listing, in lower case.
_HEADINGS = frozenset(
    {"installed packages", "available packages", "available upgrades", "updated packages", "upgraded packages"}
    | {"obsoleting packages"}
)

#: Messages of dnf for an empty list, which is no error.
_NOTHING = ("no matching packages", "no match for argument", "no packages to list")

#: Scratch key that the pkg states set when a run begins: fetch the metadata before the next installation.
_REFRESH_DUE = "pkg.refresh_due"

#: Exit code of ``check-update`` -> True (upgrades available), None (no upgrades).
_CHECKED: Mapping[int, bool | None] = {100: True, 0: None}

#: Arguments that are dnf options of the same name, and may have several values.
_REPEATED = ("disablerepo", "enablerepo")


@dataclass(frozen=True, slots=True)
class AvailablePackage:
    """A package that a repository of dnf offers: name, architecture, version, and the name of the repository."""

    #: Name, with the architecture appended where that is not the host's own ("glibc.i686").
    name: str
    architecture: str
    version: str
    repository: str


def program(host: ManagedHost) -> str | None:
    """Return the name of the host's package manager, the first of ``PROGRAMS`` that it has; None if it has none."""
    return next((name for name in PROGRAMS if host.which(name)), None)


#: Advice after a killed transaction.
_MEND = "Run 'dnf check' on the host (packages that are there twice go by 'dnf remove --duplicates'), then this state again."


def name(host: ManagedHost) -> str:
    """Return the name of the host's package manager (dnf5, dnf or yum). Raise NotAvailable if the host has none."""
    found = program(host)
    if found is None:
        raise NotAvailable("pkg", f"the host has no {' nor '.join(PROGRAMS)}")
    return found


def run_query(host: ManagedHost, words: Sequence[str]) -> CommandResult:
    """Run a dnf command that changes nothing, and return its result (exit code and output). Raise HostError if dnf
    cannot be started.
    """
    return rpm.run(host, [name(host), *words])


def run_change(host: ManagedHost, words: Sequence[str]) -> list[str]:
    """Run a dnf command that changes packages. Return the errors as texts, [] on success.

    Daemons that package scripts start keep running after the command.
    """
    result = run_detached(host, [name(host), *words], env=rpm.ENVIRONMENT)
    if not result.retcode:
        return []
    output = "\n".join(text for text in (result.stdout.strip(), result.stderr.strip()) if text)
    return package_requests.refusal(name(host), result._replace(stderr=output), _MEND)


def options(given: Mapping[str, object]) -> list[str]:
    """Return dnf's options that choose repositories, from the arguments fromrepo (or repo), disablerepo, enablerepo,
    disableexcludes, branch and setopt.
    """
    words = []
    if fromrepo := given.get("fromrepo") or given.get("repo"):
        words += ["--disablerepo=*", f"--enablerepo={','.join(package_requests.texts(fromrepo))}"]
    else:
        for option in _REPEATED:
            value = given.get(option)
            many = value if isinstance(value, list | tuple) else [value] if value else []
            words += [f"--{option}={each}" for each in many]
    for option in ("disableexcludes", "branch"):
        if given.get(option):
            words.append(f"--{option}={given[option]}")
    return words + [f"--setopt={each}" for each in package_requests.texts(given.get("setopt"))]


def available_packages(
    host: ManagedHost, names: Sequence[str], given: Mapping[str, object], own: str, *, all_versions: bool = False
) -> list[AvailablePackage]:
    """Return a list of AvailablePackage, newest first, for the packages of these names that dnf's repositories offer;
    without names for all packages. Raise CommandError if dnf fails.

    ``own``: the host's architecture.
    """
    used = name(host)
    words = ["--quiet", *options(given), *(["-C"] if given.get("cacheonly") else [])]
    listing = _AVAILABLE.get(used, ["list", "available"])
    return _listed(host, [*words, *listing, *(["--showduplicates"] if all_versions else []), *names], own)


def upgrades(host: ManagedHost, given: Mapping[str, object], own: str) -> list[AvailablePackage]:
    """Return a list of AvailablePackage for the installed packages that have a newer version in dnf's repositories.
    Raise CommandError if dnf fails. ``own``: the host's architecture.
    """
    listing = _UPGRADES.get(name(host), ["list", "--upgrades"])
    return _listed(host, ["--quiet", *options(given), *listing], own)


def parse_listing(text: str, own: str) -> list[AvailablePackage]:
    """Parse a package listing of dnf into a list of AvailablePackage, newest first. ``own``: the host's architecture.

    Each three words of the listing (name, version, repository) are one package, because dnf breaks the line after a
    long name.
    """
    words = [word for line in lines_of(text) if line.strip().lower() not in _HEADINGS for word in line.split()]
    found = []
    for full, version, repository in zip(words[::3], words[1::3], words[2::3], strict=False):
        plain, _, architecture = full.rpartition(".")
        if not plain:
            plain, architecture = full, own
        found.append(
            AvailablePackage(
                name=rpm.resolved_name(plain, architecture, own),
                architecture=architecture,
                # Packages may have no release.
                version=version.rstrip("-"),
                repository=repository.lstrip("@"),
            )
        )
    key = functools.cmp_to_key(versions.compare)
    return sorted(found, key=lambda offer: key(offer.version), reverse=True)


class Advisory(TypedDict):
    """An advisory (notice of updates) of a dnf repository: whether its packages are installed, and their names."""

    installed: bool
    summary: list[str]


def parse_advisories(lines: Sequence[str]) -> dict[str, Advisory]:
    """Parse dnf's rows ``[i] id severity package`` into {advisory id: {"installed": bool, "summary": packages}}."""
    found: dict[str, Advisory] = {}
    for line in lines:
        words = line.split()
        there = words[:1] == ["i"]
        words = words[1:] if there else words
        if len(words) < 3:
            continue
        advisory = found.setdefault(words[0], {"installed": True, "summary": []})
        advisory["summary"].append(words[2])
        advisory["installed"] = advisory["installed"] and there
    return found


def provider(host: ManagedHost, capability: str) -> str | None:
    """Return the name of the package, installed or available, that provides a capability such as ``perl(JSON)``. Return
    None if there is none.
    """
    installed = rpm.run(host, ["rpm", "-q", "--whatprovides", "--queryformat", "%{NAME}\n", capability])
    if not installed.retcode:
        return installed.stdout.partition("\n")[0] or None
    # yum has the separate program repoquery.
    asking = ["repoquery"] if name(host) == "yum" else [name(host), "--quiet", "repoquery"]
    found = rpm.run(host, [*asking, "--whatprovides", capability, "--queryformat", "%{name}\n"])
    return next(iter(found.stdout.split()), None)


def advisories(host: ManagedHost) -> dict[str, Advisory]:
    """Return a map of advisory id to {"installed": bool, "summary": packages} for the advisories of dnf's repositories.
    Raise CommandError if dnf fails.
    """
    result = run_query(host, ["--quiet", "updateinfo", "list", "all" if name(host) == "yum" else "--all"])
    if result.retcode:
        raise CommandError(f"advisories cannot be listed: {result.stderr.strip() or result.stdout.strip()}")
    return parse_advisories(lines_of(result.stdout))


def expire(ctx: Context, given: Mapping[str, object]) -> None:
    """Mark the metadata of dnf's repositories as expired, so that dnf fetches it with its next command. A failure of
    dnf is ignored.
    """
    ctx.scratch.pop(_REFRESH_DUE, None)
    run_query(ctx.host, ["--quiet", "--assumeyes", "clean", "expire-cache", *options(given)])


def refresh(ctx: Context, given: Mapping[str, object]) -> bool | None:
    """Fetch the metadata of dnf's repositories. Return True if upgrades are available, None if none are, False if it
    failed.
    """
    expire(ctx, given)
    result = run_query(ctx.host, ["--quiet", "--assumeyes", "check-update", *options(given)])
    return _CHECKED.get(result.retcode, False)


def _listed(host: ManagedHost, words: Sequence[str], own: str) -> list[AvailablePackage]:
    result = run_query(host, words)
    if result.retcode and not any(phrase in result.stderr.lower() for phrase in _NOTHING):
        raise CommandError(f"{name(host)} {' '.join(words)} failed: {result.stderr.strip() or result.stdout.strip()}")
    return parse_listing(result.stdout, own)
