"""Packages by dpkg and APT of the managed host (Salt's ``pkg`` module on Debian and its kin).

Everything asked of dpkg and APT goes through ``ctx.host``. What is installed is read again only when dpkg's own database
changed. Daemons that a package's scripts start are left running; whether they are started is the host's policy.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from statecore import debian_versions
from statecore.context import Context
from statecore.detached_run import run_detached
from statecore.errors import CommandError, HostError, InvocationError
from statecore.ports import CommandResult

VIRTUAL = "pkg"

_PROGRAMS = ("apt-get", "apt-cache", "dpkg-query", "dpkg")

#: No questions, and messages in the language that is parsed here.
_ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive",
    "APT_LISTCHANGES_FRONTEND": "none",
    "APT_LISTBUGS_FRONTEND": "none",
    "LC_ALL": "C",
    "LANGUAGE": "C",
}

#: Another APT or dpkg may be at work (unattended upgrades): wait so many seconds for it.
_PATIENCE = ("-o", "DPkg::Lock::Timeout=120")

_STATUS = "/var/lib/dpkg/status"
_LISTS = "/var/lib/apt/lists"

#: Set by the pkg states when a run begins: the package database is to be refreshed before the next installation.
_REFRESH_DUE = "pkg.refresh_due"
_KNOWN = "pkg.list_pkgs"

#: First word of a line of ``apt-get update`` -> what became of that database.
_UPDATED: Mapping[str, bool | None] = {"Get": True, "Hit": None, "Ign": False, "Err": False}


def available(ctx: Context) -> str | None:
    """None where the host has APT and dpkg."""
    missing = [program for program in _PROGRAMS if ctx.host.which(program) is None]
    return f"the host has no {', '.join(missing)}" if missing else None


# --------------------------------------------------------------------------------------------------------------- what is there


def list_pkgs(
    ctx: Context, versions_as_list: bool = False, removed: bool = False, purge_desired: bool = False, **kwargs: Any
) -> dict[str, Any]:
    """Installed packages and their versions; ``removed``: those of which only configuration files are left.

    CLI Example:

        salt '*' pkg.list_pkgs
    """
    known = _known(ctx)
    if removed:
        found = known["removed"]
    else:
        found = known["purge_desired"] if purge_desired else {**known["purge_desired"], **known["installed"]}
    return {name: list(versions) if versions_as_list else ",".join(versions) for name, versions in found.items()}


def version(ctx: Context, *names: str, versions_as_list: bool = False, **kwargs: Any) -> Any:
    """Version of an installed package, "" when it is not; with several names, or a glob, a map.

    CLI Example:

        salt '*' pkg.version nginx
    """
    packages = list_pkgs(ctx, versions_as_list=versions_as_list)
    nothing: Any = [] if versions_as_list else ""
    found: dict[str, Any] = {}
    for name in names:
        if "*" in name:
            found |= {package: packages[package] for package in fnmatch.filter(packages, name)}
        else:
            found[name] = packages.get(name, nothing)
    return next(iter(found.values())) if len(names) == 1 and names[0] in found else found


def latest_version(
    ctx: Context,
    *names: str,
    refresh: bool = True,
    show_installed: bool = False,
    fromrepo: str | None = None,
    cache_valid_time: float = 0,
    **kwargs: Any,
) -> Any:
    """The version that APT would install, "" when it is installed already or there is none; a map for several names.

    CLI Example:

        salt '*' pkg.latest_version nginx
    """
    if not names:
        return ""
    if refresh:
        refresh_db(ctx, cache_valid_time)
    candidates = _candidates(ctx, names, fromrepo)
    packages = list_pkgs(ctx, versions_as_list=True)
    found = {}
    for name in names:
        candidate = candidates.get(name, "")
        upgrade = all(debian_versions.compare(each, candidate) < 0 for each in packages.get(name, ()))
        found[name] = candidate if show_installed or upgrade else ""
    return found[names[0]] if len(names) == 1 else found


def upgrade_available(ctx: Context, name: str, refresh: bool = True, **kwargs: Any) -> bool:
    """Whether APT has a version of the package that is not installed."""
    return latest_version(ctx, name, refresh=refresh) != ""


def list_upgrades(ctx: Context, refresh: bool = True, dist_upgrade: bool = True, **kwargs: Any) -> dict[str, str]:
    """Packages that an upgrade would install -> their new versions."""
    if refresh:
        refresh_db(ctx, kwargs.get("cache_valid_time", 0))
    words = ["--just-print", "dist-upgrade" if dist_upgrade else "upgrade"]
    if kwargs.get("fromrepo"):
        words += ["-o", f"APT::Default-Release={kwargs['fromrepo']}"]
    result = _run(ctx, ["apt-get", *words])
    if result.retcode:
        raise CommandError(f"Failed to get upgrades: {result.stderr or result.stdout}".rstrip())
    return dict(re.findall(r"(?m)^Conf ([^ ]+) (?:\[[^\]]*\] )?\(([^ ]+)", result.stdout))


def list_repo_pkgs(ctx: Context, *names: str, **kwargs: Any) -> dict[str, list[str]]:
    """All versions that the repositories have, newest first, by package; of these packages, or of all."""
    result = _run(ctx, ["apt-cache", *(["show", *names] if names else ["dumpavail"])])
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


def version_cmp(ctx: Context, pkg1: str, pkg2: str, ignore_epoch: bool = False, **kwargs: Any) -> int:
    """-1, 0 or 1: the first version is older than, the same as, newer than the second."""
    return debian_versions.compare(str(pkg1), str(pkg2), ignore_epoch=ignore_epoch)


def normalize_name(ctx: Context, name: str) -> str:
    """The name without an architecture that is the host's own."""
    plain, _, architecture = name.rpartition(":")
    return plain if plain and architecture in ("all", "any", _architecture(ctx)) else name


# ----------------------------------------------------------------------------------------------------------------- what is done


def refresh_db(ctx: Context, cache_valid_time: float = 0, failhard: bool = False, **kwargs: Any) -> dict[str, Any]:
    """Updates the package lists; per database True (fetched), None (was current), False (failed).

    CLI Example:

        salt '*' pkg.refresh_db
    """
    ctx.scratch.pop(_REFRESH_DUE, None)
    if cache_valid_time and _age(ctx, _LISTS) < float(cache_valid_time):
        return {}
    result = _run(ctx, ["apt-get", "-q", *_PATIENCE, "update"])
    if result.retcode:
        raise CommandError(result.stderr.strip() or f"apt-get update failed with return code {result.retcode}")
    found: dict[str, Any] = {}
    failed = []
    for line in result.stdout.splitlines():
        word, _, rest = line.partition(" ")
        kind = word.partition(":")[0]
        if kind in _UPDATED:
            source = re.sub(r" \[.+B\]$", "", rest.strip())
            found[source] = _UPDATED[kind]
            failed += [source] if kind == "Err" else []
    if failhard and failed:
        raise CommandError(f"Error getting repos: {', '.join(failed)}")
    return found


def install(
    ctx: Context,
    name: str | None = None,
    refresh: bool = False,
    fromrepo: str | None = None,
    skip_verify: bool = False,
    pkgs: Any = None,
    sources: Any = None,
    reinstall: bool = False,
    downloadonly: bool = False,
    ignore_epoch: bool = False,
    normalize: bool = True,
    version: str | None = None,
    install_recommends: bool | None = None,
    only_upgrade: bool = False,
    force_conf_new: bool = False,
    cache_valid_time: float = 0,
    **kwargs: Any,
) -> dict[str, Any]:
    """Installs packages; returns what changed: {name: {"old": version, "new": version}}.

    name
        one package, or several with commas; ``pkgs`` a list of names and of {name: version}
    version
        a version, a glob (``1.22*``), or conditions (``>=1.2, <2``)
    sources
        a list of {name: path}, salt:// or a .deb file of the host

    CLI Example:

        salt '*' pkg.install pkgs='["nginx", {"curl": "7.88.1-10"}]'
    """
    if pkgs and sources:
        raise InvocationError("Only one of pkgs and sources can be used.")
    wanted = {} if sources else _wanted(ctx, name, pkgs, version, normalize=normalize)
    if not wanted and not sources:
        return {}
    if refresh and (sources or _refresh_needed(ctx, wanted)):
        refresh_db(ctx, cache_valid_time)
    before = list_pkgs(ctx)
    options = _install_options(
        fromrepo=fromrepo,
        skip_verify=skip_verify,
        downloadonly=downloadonly,
        install_recommends=install_recommends,
        only_upgrade=only_upgrade,
        force_conf_new=force_conf_new,
    )
    errors: list[str] = []
    again: list[str] = []
    if sources:
        errors += _install_files(ctx, _packed(sources), [*options, *(["--reinstall"] if reinstall else [])])
    else:
        again = [package for package in wanted if reinstall and package in before]
        words = _words(ctx, wanted, errors, ignore_epoch=ignore_epoch)
        held = [package for package in get_selections(ctx, state="hold")["hold"] if package in words]
        if held:
            unhold(ctx, pkgs=held)
        try:
            for chosen, extra in _batches(words, before, again):
                errors += _apt(ctx, [*options, *extra, "install", *chosen])
        finally:
            if held:
                hold(ctx, pkgs=held)
    after = list_pkgs(ctx)
    changes = _compared(before, after)
    changes |= {
        each: {"old": before[each], "new": after.get(each, "")} for each in again if not errors and each not in changes
    }
    _complain("Problem encountered installing package(s)", errors, changes)
    return changes


def remove(ctx: Context, name: str | None = None, pkgs: Any = None, **kwargs: Any) -> dict[str, Any]:
    """Removes packages, keeping their configuration; returns what changed."""
    return _uninstall(ctx, "remove", name, pkgs)["installed"]


def purge(ctx: Context, name: str | None = None, pkgs: Any = None, **kwargs: Any) -> dict[str, Any]:
    """Removes packages with their configuration; returns {"installed": changes, "removed": changes}, {} for nothing."""
    changes = _uninstall(ctx, "purge", name, pkgs)
    return changes if any(changes.values()) else {}


def upgrade(ctx: Context, refresh: bool = True, dist_upgrade: bool = False, **kwargs: Any) -> dict[str, Any]:
    """Upgrades every package, or those of ``pkgs``; returns what changed."""
    if refresh:
        refresh_db(ctx, kwargs.get("cache_valid_time", 0))
    before = list_pkgs(ctx)
    options = _install_options(
        skip_verify=bool(kwargs.get("skip_verify")),
        downloadonly=bool(kwargs.get("downloadonly") or kwargs.get("download_only")),
        force_conf_new=bool(kwargs.get("force_conf_new")),
    )
    options += ["--allow-downgrades"] if kwargs.get("allow_downgrades") else []
    names = [str(each) for each in kwargs.get("pkgs") or ()]
    verb = ["--only-upgrade", "install", *names] if names else ["dist-upgrade" if dist_upgrade else "upgrade"]
    errors = _apt(ctx, [*options, *verb])
    changes = _compared(before, list_pkgs(ctx))
    _complain("Problem encountered upgrading packages", errors, changes)
    return changes


def autoremove(ctx: Context, purge: bool = False, **kwargs: Any) -> dict[str, Any]:
    """Removes packages that were installed for others only and are not needed now; returns what changed."""
    before = list_pkgs(ctx)
    errors = _apt(ctx, ["-q", "-y", *_PATIENCE, *(["--purge"] if purge else []), "autoremove"])
    changes = _compared(before, list_pkgs(ctx))
    _complain("Problem encountered removing package(s)", errors, changes)
    return changes


# ------------------------------------------------------------------------------------------------------------------------ holds


def get_selections(ctx: Context, pattern: str | None = None, state: str | None = None) -> dict[str, list[str]]:
    """Selection state (install, hold, deinstall, purge) -> packages."""
    result = _run(ctx, ["dpkg", "--get-selections", pattern or "*"])
    found: dict[str, list[str]] = {}
    for line in result.stdout.splitlines():
        package, _, selection = line.partition("\t")
        if selection.strip():
            found.setdefault(selection.strip(), []).append(normalize_name(ctx, package))
    return {state: found.get(state, [])} if state else found


def set_selections(ctx: Context, selection: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Sets selection states, {state: [package, ...]}; returns {package: {"old": state, "new": state}}."""
    current = {package: state for state, packages in get_selections(ctx).items() for package in packages}
    changes = {}
    for state, packages in selection.items():
        for package in [packages] if isinstance(packages, str) else packages:
            result = _run(ctx, ["dpkg", "--set-selections"], stdin=f"{package} {state}\n")
            if result.retcode:
                raise CommandError(f"failed to set the selection of {package} to {state}: {result.stderr.strip()}")
            if current.get(package) != state:
                changes[package] = {"old": current.get(package, ""), "new": state}
    return changes


def hold(ctx: Context, name: str | None = None, pkgs: Any = None, sources: Any = None, **kw: Any) -> dict[str, Any]:
    """Keeps packages from being upgraded or removed; per package name, changes, result and comment."""
    held = get_selections(ctx, state="hold")["hold"]
    answers = {}
    for package in _named(name, pkgs, sources):
        changes = {} if package in held else set_selections(ctx, {"hold": [package]}).get(package, {})
        comment = f"Package {package} is {'already set to be' if package in held else 'now being'} held."
        answers[package] = {"name": package, "changes": changes, "result": True, "comment": comment}
    return answers


def unhold(ctx: Context, name: str | None = None, pkgs: Any = None, sources: Any = None, **kw: Any) -> dict[str, Any]:
    """Ends a hold; per package name, changes, result and comment."""
    selections = get_selections(ctx)
    known = {package: state for state, packages in selections.items() for package in packages}
    answers = {}
    for package in _named(name, pkgs, sources):
        held = known.get(package) == "hold"
        changes = set_selections(ctx, {"install": [package]}).get(package, {}) if held else {}
        comment = f"Package {package} is {'no longer being' if held else 'already set not to be'} held."
        if package not in known:
            comment = f"Package {package} does not have a state."
        answers[package] = {"name": package, "changes": changes, "result": package in known, "comment": comment}
    return answers
