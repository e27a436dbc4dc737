"""Calls of dnf that install packages: the arguments for each package, and their distribution over several calls.
Helpers of ``pkg``.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from statecore.builtin.modules.pkg_rpm import dnf, inventory, locks, rpm
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.ports import ManagedHost
from statecore.system.packages import package_requests, package_versions
from statecore.system.packages.package_versions import rpm as versions

#: Packages whose older versions are installed beside newer ones, without a downgrade.
_SIDE_BY_SIDE = re.compile(r"kernel(-devel)?$")

#: Arguments of ``pkg.upgrade`` that are not passed on to dnf as options: repository arguments, and APT's.
_NO_FURTHER = frozenset(
    (
        *("fromrepo", "repo", "disablerepo", "enablerepo", "disableexcludes", "branch", "setopt"),
        *("cache_valid_time", "dist_upgrade", "force_conf_new", "allow_downgrades", "download_only", "saltenv"),
    )
)


@dataclass(slots=True)
class _Calls:
    """Packages to install, downgrade and reinstall: for each of these calls of dnf a map of package to dnf's argument
    for it.
    """

    fresh: dict[str, str] = field(default_factory=dict)
    older: dict[str, str] = field(default_factory=dict)
    again: dict[str, str] = field(default_factory=dict)


def options(host: ManagedHost, given: Mapping[str, object], *, skip_verify: bool, downloadonly: bool) -> list[str]:
    """Return the list of command-line options that each ``dnf install`` command gets."""
    words = dnf.options(given)
    words += ["--nogpgcheck"] if skip_verify else []
    return [*words, "--downloadonly"] if downloadonly else words


def further_options(given: Mapping[str, object]) -> list[str]:
    """Return those arguments of ``pkg.upgrade`` that dnf has as options as a list of words, such as
    ["--exclude=kernel*", "--security"].
    """
    words = []
    for name in sorted(given.keys() - _NO_FURTHER):
        value = given[name]
        if isinstance(value, str):
            words.append(f"--{name}={value}")
        elif value is True:
            words.append(f"--{name}")
    return words


def install_packages(
    ctx: Context,
    wanted: Mapping[str, str | None],
    general: Sequence[str],
    given: Mapping[str, object],
    errors: list[str],
    *,
    reinstall: bool,
    update_holds: bool,
    ignore_epoch: bool,
) -> list[str]:
    """Install, downgrade or reinstall packages of repositories with dnf. Return the names of the packages that were to
    be reinstalled.

    Errors are appended to ``errors``. Held packages are errors, or with ``update_holds`` are unheld during the
    installation.
    """
    installed = inventory.versions(ctx)
    exact = _exact(ctx, wanted, given, errors, ignore_epoch=ignore_epoch)
    calls = _sorted(exact, installed, reinstall=reinstall, ignore_epoch=ignore_epoch)
    held = [package for package in locks.names(ctx) if package in exact]
    if held and not update_holds:
        for call in (calls.fresh, calls.older, calls.again):
            for package in held:
                call.pop(package, None)
        errors.append(
            f"The following package(s) could not be updated because they are being held: {', '.join(held)}. Set "
            "'update_holds' to True to temporarily unhold these packages so that they can be updated."
        )
    elif held:
        for package in held:
            errors += locks.remove(ctx, package)
    try:
        for verb, words in (("install", calls.fresh), ("downgrade", calls.older), ("reinstall", calls.again)):
            if words:
                errors += dnf.run_change(ctx.host, _call(ctx.host, verb, general, list(words.values())))
    finally:
        if held and update_holds:
            for package in held:
                errors += locks.add(ctx, package)
    return list(calls.again)


def install_files(
    ctx: Context, sources: Mapping[str, str], general: Sequence[str], errors: list[str], *, reinstall: bool
) -> list[str]:
    """Install RPM files; their dependencies come from the repositories. Return the names of the packages that were to
    be reinstalled.

    Errors are appended to ``errors``.
    """
    with package_requests.staged(ctx.host, package_requests.package_files(ctx, sources), ".rpm") as paths:
        packages = rpm.file_packages(ctx.host, paths, inventory.architecture(ctx))
        installed = inventory.versions(ctx)
        calls = _Calls()
        for package, path in zip(packages, paths, strict=True):
            there = installed.get(package.name, [])
            if reinstall and package.full_version in there:
                calls.again[package.name] = path
            elif there and all(versions.compare(package.full_version, each) < 0 for each in there):
                calls.older[package.name] = path
            else:
                calls.fresh[package.name] = path
        for verb, words in (("install", calls.fresh), ("downgrade", calls.older), ("reinstall", calls.again)):
            if words:
                errors += dnf.run_change(ctx.host, _call(ctx.host, verb, general, list(words.values())))
    return list(calls.again)


def install_advisories(ctx: Context, advisories: Sequence[str], general: Sequence[str], errors: list[str]) -> list[str]:
    """Install the packages of advisories with dnf. Return [], because none are reinstalled. Raise CommandError for an
    advisory that no repository has.
    """
    known = dnf.advisories(ctx.host)
    unknown = [each for each in advisories if each not in known]
    if unknown:
        raise CommandError("; ".join(f'Advisory id "{each}" not found' for each in unknown))
    words = [f"--advisory={each}" for each in advisories]
    errors += dnf.run_change(ctx.host, _call(ctx.host, "upgrade", general, words))
    return []


def word(package: str, version: str) -> str:
    """Return dnf's argument for one version of a package: ``name-version-release.architecture``, without the epoch."""
    name, architecture = rpm.split_name(package)
    return f"{name}-{version.split(':', 1)[-1]}{'.' + architecture if architecture else ''}"


def _call(host: ManagedHost, verb: str, general: Sequence[str], words: Sequence[str]) -> list[str]:
    # --best: the newest version or an error. --allowerasing: dnf may remove packages that conflict with it.
    best = ["--best", "--allowerasing"] if verb == "install" and dnf.name(host) != "yum" else []
    if dnf.name(host) == "dnf5":
        late = [option for option in general if option == "--downloadonly"]
        return ["-y", *(each for each in general if each not in late), verb, *best, *late, *words]
    return ["-y", *best, *general, verb, *words]


def _exact(
    ctx: Context,
    wanted: Mapping[str, str | None],
    given: Mapping[str, object],
    errors: list[str],
    *,
    ignore_epoch: bool,
) -> dict[str, str | None]:
    """Return a map of package to the available version that fits the wanted one, None for any version.

    An error is appended to ``errors`` for each package without a matching version.
    """
    searched = [name for name, text in wanted.items() if text and ("*" in text or package_versions.is_range(text))]
    offered: dict[str, list[str]] = {}
    if searched:
        for offer in dnf.available_packages(ctx.host, searched, given, inventory.architecture(ctx), all_versions=True):
            offered.setdefault(offer.name, []).append(offer.version)
    found: dict[str, str | None] = {}
    for package, text in wanted.items():
        exact = text.lstrip("= ") if text else None
        if text and package in searched:
            candidates = offered.get(package, [])
            if package_versions.is_range(text):
                exact = package_versions.best(candidates, text, order=versions.compare, ignore_epoch=ignore_epoch)
                refusal = f"No version matching '{package}{text}' could be found"
            else:
                exact = next((each for each in candidates if fnmatch.fnmatch(each, text.lstrip("= "))), None)
                refusal = f"No version matching '{text}' found for package '{package}'"
            if exact is None:
                errors.append(f"{refusal} (available: {', '.join(dict.fromkeys(candidates)) or 'none'})")
                continue
        found[package] = exact
    return found


def _sorted(
    exact: Mapping[str, str | None], installed: Mapping[str, Sequence[str]], *, reinstall: bool, ignore_epoch: bool
) -> _Calls:
    calls = _Calls()
    for package, version in exact.items():
        there = installed.get(package, ())
        called = word(package, version) if version else package
        orders = [versions.compare(version, each, ignore_epoch=ignore_epoch) for each in there] if version else []
        if reinstall and there and (version is None or 0 in orders):
            calls.again[package] = called
        elif orders and max(orders) < 0 and not _SIDE_BY_SIDE.match(package):
            calls.older[package] = called
        else:
            calls.fresh[package] = called
    return calls
