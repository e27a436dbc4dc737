"""dnf5, dnf and yum of a managed host: how they are called, and what they say, read. Behind the ``pkg`` module."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from statecore.builtin.modules.pkg_rpm import rpm
from statecore.host.detached_run import run_detached
from statecore.model.context import Context
from statecore.model.errors import CommandError, NotAvailable
from statecore.model.ports import CommandResult, ManagedHost
from statecore.system.packages import package_requests
from statecore.system.packages.package_versions import rpm as versions

#: The first that the host has is used.
PROGRAMS = ("dnf5", "dnf", "yum")

#: Programs -> how what could be installed, and what could be upgraded, is listed.
_AVAILABLE: Mapping[str, list[str]] = {"dnf5": ["list", "--available"]}
_UPGRADES: Mapping[str, list[str]] = {"yum": ["list", "updates"]}

#: Lines of a listing that are no packages.
_HEADINGS = frozenset(
    {"installed packages", "available packages", "available upgrades", "updated packages", "upgraded packages"}
    | {"obsoleting packages"}
)

#: What dnf says where it has nothing to list, which is no error.
_NOTHING = ("no matching packages", "no match for argument", "no packages to list")

#: Set by the pkg states when a run begins: what the repositories have is to be looked at before the next installation.
_REFRESH_DUE = "pkg.refresh_due"

#: Exit code of ``check-update`` -> whether there are upgrades.
_CHECKED: Mapping[int, bool | None] = {100: True, 0: None}

#: Options of functions that are options of dnf, by name; each may be given several values.
_REPEATED = ("disablerepo", "enablerepo")


@dataclass(frozen=True, slots=True)
class AvailablePackage:
    """A package that a repository has."""

    #: With its architecture where that is not the host's own.
    name: str
    architecture: str
    version: str
    repository: str


def program(host: ManagedHost) -> str | None:
    """The program that gets packages, None where the host has none."""
    return next((name for name in PROGRAMS if host.which(name)), None)


#: What a transaction that was killed wants.
_MEND = "Run 'dnf check' on the host (packages that are there twice go by 'dnf remove --duplicates'), then this state again."


def name(host: ManagedHost) -> str:
    """The program that gets packages. Raises NotAvailable where the host has none (any more)."""
    found = program(host)
    if found is None:
        raise NotAvailable("pkg", f"the host has no {' nor '.join(PROGRAMS)}")
    return found


def ask(host: ManagedHost, words: Sequence[str]) -> CommandResult:
    """Runs dnf so that it tells something. Raises HostError when it cannot be started."""
    return rpm.run(host, [name(host), *words])


def change(host: ManagedHost, words: Sequence[str]) -> list[str]:
    """Runs dnf so that it may change packages; [] or what went wrong. Daemons that scripts of packages start stay."""
    result = run_detached(host, [name(host), *words], env=rpm.ENVIRONMENT)
    if not result.retcode:
        return []
    said = "\n".join(text for text in (result.stdout.strip(), result.stderr.strip()) if text)
    return package_requests.refusal(name(host), result._replace(stderr=said), _MEND)


def options(given: Mapping[str, Any]) -> list[str]:
    """Options about repositories: fromrepo (or repo), disablerepo, enablerepo, disableexcludes, branch, setopt."""
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


def offers(
    host: ManagedHost, names: Sequence[str], given: Mapping[str, Any], own: str, *, all_versions: bool = False
) -> list[AvailablePackage]:
    """What repositories have of these packages, or of all, newest first. Raises CommandError."""
    used = name(host)
    words = ["--quiet", *options(given), *(["-C"] if given.get("cacheonly") else [])]
    listing = _AVAILABLE.get(used, ["list", "available"])
    return _listed(host, [*words, *listing, *(["--showduplicates"] if all_versions else []), *names], own)


def upgrades(host: ManagedHost, given: Mapping[str, Any], own: str) -> list[AvailablePackage]:
    """Packages for which there is a newer version. Raises CommandError."""
    listing = _UPGRADES.get(name(host), ["list", "--upgrades"])
    return _listed(host, ["--quiet", *options(given), *listing], own)


def parse_listing(text: str, own: str) -> list[AvailablePackage]:
    """Packages of a listing, newest first. Long names have a line of their own: three words are a package."""
    words = [word for line in text.splitlines() if line.strip().lower() not in _HEADINGS for word in line.split()]
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


def parse_advisories(lines: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Rows ``[i] id severity package`` as id -> {"installed", "summary": packages}."""
    found: dict[str, dict[str, Any]] = {}
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
    """The package, installed or to be had, that provides something; None where none does."""
    installed = rpm.run(host, ["rpm", "-q", "--whatprovides", "--queryformat", "%{NAME}\n", capability])
    if not installed.retcode:
        return installed.stdout.partition("\n")[0] or None
    # yum has a program of its own for it.
    asking = ["repoquery"] if name(host) == "yum" else [name(host), "--quiet", "repoquery"]
    found = rpm.run(host, [*asking, "--whatprovides", capability, "--queryformat", "%{name}\n"])
    return next(iter(found.stdout.split()), None)


def advisories(host: ManagedHost) -> dict[str, dict[str, Any]]:
    """Advisories of the repositories: id -> {"installed", "summary": packages}. Raises CommandError."""
    result = ask(host, ["--quiet", "updateinfo", "list", "all" if name(host) == "yum" else "--all"])
    if result.retcode:
        raise CommandError(f"advisories cannot be listed: {result.stderr.strip() or result.stdout.strip()}")
    return parse_advisories(result.stdout.splitlines())


def expire(ctx: Context, given: Mapping[str, Any]) -> None:
    """What dnf knows of the repositories is old from now on: it looks again when it is next asked."""
    ctx.scratch.pop(_REFRESH_DUE, None)
    ask(ctx.host, ["--quiet", "--assumeyes", "clean", "expire-cache", *options(given)])


def refresh(ctx: Context, given: Mapping[str, Any]) -> bool | None:
    """Looks again what the repositories have. True: there are upgrades, None: there are none, False: it failed."""
    expire(ctx, given)
    result = ask(ctx.host, ["--quiet", "--assumeyes", "check-update", *options(given)])
    return _CHECKED.get(result.retcode, False)


def _listed(host: ManagedHost, words: Sequence[str], own: str) -> list[AvailablePackage]:
    result = ask(host, words)
    if result.retcode and not any(said in result.stderr.lower() for said in _NOTHING):
        raise CommandError(f"{name(host)} {' '.join(words)} failed: {result.stderr.strip() or result.stdout.strip()}")
    return parse_listing(result.stdout, own)
