"""Functions of ``pkg`` that list installed packages, available versions and advisories on a host with rpm."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from statecore.builtin.modules.pkg_rpm import dnf, inventory
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.packages import package_requests
from statecore.system.packages.package_versions import rpm as versions


def list_pkgs(
    ctx: Context,
    versions_as_list: bool = False,
    attr: object = None,
    removed: bool = False,
    purge_desired: bool = False,
    **kwargs: object,
) -> dict[str, object]:
    """Return a map of package to version for the packages that rpm has installed.

    attr
        attributes to return in place of a version (epoch, version, release, arch, install_date, install_date_time_t),
        or ``all``
    removed, purge_desired
        True: return {}, because rpm keeps no records of removed packages

    CLI Example:

        salt '*' pkg.list_pkgs
    """
    if removed or purge_desired:
        return {}
    known = inventory.packages(ctx)
    if attr is None:
        return package_requests.listed(inventory.versions(ctx), as_list=versions_as_list)
    chosen = package_requests.texts(attr)
    return {
        name: [
            each.attributes()
            if chosen == ["all"]
            else {key: value for key, value in each.attributes().items() if key in chosen}
            for each in each_of
        ]
        for name, each_of in known.items()
    }


def version(ctx: Context, *names: str, versions_as_list: bool = False, **kwargs: object) -> object:
    """Return the version of an installed package, "" if it is not installed. For several names or a glob return a map
    of name to version.

    CLI Example:

        salt '*' pkg.version nginx
    """
    packages = list_pkgs(ctx, versions_as_list=versions_as_list)
    return package_requests.versions(packages, names, [] if versions_as_list else "")


def latest_version(ctx: Context, *names: str, refresh: bool = True, **kwargs: object) -> object:
    """Return the newest version of a package in dnf's repositories; "" if it is installed already or none exists. For
    several names return a map of name to version.

    fromrepo, enablerepo, disablerepo, disableexcludes, branch, setopt
        repositories to use; these arguments are passed to dnf as its options of these names

    CLI Example:

        salt '*' pkg.latest_version nginx
    """
    if not names:
        return ""
    if refresh:
        dnf.refresh(ctx, kwargs)
    own = inventory.architecture(ctx)
    offers = dnf.available_packages(ctx.host, names, kwargs, own)
    packages = inventory.versions(ctx)
    found = {}
    for name in names:
        newest = next((offer.version for offer in offers if offer.name == inventory.plain_name(ctx, name)), "")
        upgrade = all(versions.compare(each, newest) < 0 for each in packages.get(name, ()))
        found[name] = newest if newest and upgrade else ""
    return found[names[0]] if len(names) == 1 else found


def available_version(ctx: Context, *names: str, **kwargs: Any) -> object:
    """Return the newest version of packages in dnf's repositories, as text or as a map of name to version; the same
    function as ``pkg.latest_version``.
    """
    return latest_version(ctx, *names, **kwargs)


def upgrade_available(ctx: Context, name: str, **kwargs: Any) -> bool:
    """Return whether a repository of dnf has a newer version of the package than the installed one."""
    return bool(latest_version(ctx, name, **kwargs))


def list_upgrades(ctx: Context, refresh: bool = True, **kwargs: object) -> dict[str, str]:
    """Return a map of package to new version for the packages that an upgrade would change."""
    if refresh:
        dnf.expire(ctx, kwargs)
    newest: dict[str, str] = {}
    for offer in dnf.upgrades(ctx.host, kwargs, inventory.architecture(ctx)):
        newest.setdefault(offer.name, offer.version)
    return newest


def list_repo_pkgs(ctx: Context, *names: str, byrepo: bool = False, **kwargs: object) -> dict[str, object]:
    """Return a map of package (named by globs, or all) to its versions in dnf's repositories, newest first.

    byrepo
        True: return {repository: {package: versions}}
    cacheonly
        True: use the metadata that dnf already has, without fetching
    """
    by_repository: dict[str, dict[str, list[str]]] = {}
    together: dict[str, list[str]] = {}
    for offer in dnf.available_packages(ctx.host, names, kwargs, inventory.architecture(ctx), all_versions=True):
        for found in (by_repository.setdefault(offer.repository, {}), together):
            listed = found.setdefault(offer.name, [])
            if offer.version not in listed:
                listed.append(offer.version)
    return dict(by_repository) if byrepo else dict(together)


def version_cmp(ctx: Context, pkg1: str, pkg2: str, ignore_epoch: bool = False, **kwargs: object) -> int:
    """Compare two versions of an RPM package. Return -1 if the first is older, 0 if they are equal, 1 if it is
    newer.
    """
    return versions.compare(str(pkg1), str(pkg2), ignore_epoch=ignore_epoch)


def resolve_capabilities(ctx: Context, pkgs: Iterable[object], refresh: bool = False, **kwargs: object) -> list[str]:
    """Return a list of packages in which each capability (``/usr/bin/dig``, ``perl(JSON)``) is replaced by the package
    that provides it.

    CLI Example:

        salt '*' pkg.resolve_capabilities '["perl(JSON)"]'
    """
    if refresh:
        dnf.refresh(ctx, kwargs)
    there = inventory.packages(ctx)
    return [name if name in there else dnf.provider(ctx.host, name) or name for name in map(str, pkgs)]


def info_installed(ctx: Context, *names: str, **kwargs: object) -> dict[str, dict[str, object]]:
    """Return a map of installed package to a map with name, version, release, epoch, architecture and installation
    date. Without names return all packages.

    Raise CommandError for a named package that is not installed.
    """
    known = inventory.packages(ctx)
    missing = [name for name in names if name not in known]
    if missing:
        raise CommandError(f"not installed: {', '.join(missing)}")
    return {name: {"name": name, **known[name][-1].attributes()} for name in names or known}


def list_patches(ctx: Context, refresh: bool = False, **kwargs: object) -> dict[str, dnf.Advisory]:
    """Return a map of advisory id to {"installed": bool, "summary": packages} for the advisories of dnf's
    repositories.
    """
    if refresh:
        dnf.refresh(ctx, {})
    return dnf.advisories(ctx.host)


def list_installed_patches(ctx: Context, **kwargs: Any) -> dict[str, dnf.Advisory]:
    """Return a map of advisory id to {"installed": True, "summary": packages} for the advisories whose packages are all
    installed.
    """
    return {name: patch for name, patch in list_patches(ctx, **kwargs).items() if patch["installed"]}
