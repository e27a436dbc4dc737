"""Which packages are installed on a host with rpm, and which could be."""

from __future__ import annotations

from typing import Any

from statecore.builtin.modules.pkg_rpm import dnf, inventory, rpm
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.packages import package_requests
from statecore.system.packages.package_versions import rpm as versions


def list_pkgs(
    ctx: Context,
    versions_as_list: bool = False,
    attr: Any = None,
    removed: bool = False,
    purge_desired: bool = False,
    **kwargs: Any,
) -> dict[str, Any]:
    """Installed packages and their versions.

    attr
        attributes to be told in place of a version (epoch, version, release, arch, install_date, install_date_time_t), or ``all``
    removed, purge_desired
        rpm keeps nothing of packages that are gone: {}

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


def version(ctx: Context, *names: str, versions_as_list: bool = False, **kwargs: Any) -> Any:
    """Version of an installed package, "" when it is not; with several names, or a glob, a map.

    CLI Example:

        salt '*' pkg.version nginx
    """
    packages = list_pkgs(ctx, versions_as_list=versions_as_list)
    return package_requests.versions(packages, names, [] if versions_as_list else "")


def latest_version(ctx: Context, *names: str, refresh: bool = True, **kwargs: Any) -> Any:
    """The version that could be installed, "" when it is installed already or there is none; a map for several names.

    fromrepo, enablerepo, disablerepo, disableexcludes, branch, setopt
        which repositories are looked at, as dnf's options of these names say

    CLI Example:

        salt '*' pkg.latest_version nginx
    """
    if not names:
        return ""
    if refresh:
        dnf.refresh(ctx, kwargs)
    own = inventory.architecture(ctx)
    offers = dnf.offers(ctx.host, names, kwargs, own)
    packages = inventory.versions(ctx)
    found = {}
    for name in names:
        newest = next((offer.version for offer in offers if offer.name == inventory.plain_name(ctx, name)), "")
        upgrade = all(versions.compare(each, newest) < 0 for each in packages.get(name, ()))
        found[name] = newest if newest and upgrade else ""
    return found[names[0]] if len(names) == 1 else found


def available_version(ctx: Context, *names: str, **kwargs: Any) -> Any:
    """The same as latest_version."""
    return latest_version(ctx, *names, **kwargs)


def upgrade_available(ctx: Context, name: str, **kwargs: Any) -> bool:
    """Whether a repository has a version of the package that is newer than the installed one."""
    return bool(latest_version(ctx, name, **kwargs))


def list_upgrades(ctx: Context, refresh: bool = True, **kwargs: Any) -> dict[str, str]:
    """Packages that an upgrade would install -> their new versions."""
    if refresh:
        dnf.expire(ctx, kwargs)
    newest: dict[str, str] = {}
    for offer in dnf.upgrades(ctx.host, kwargs, inventory.architecture(ctx)):
        newest.setdefault(offer.name, offer.version)
    return newest


def list_repo_pkgs(ctx: Context, *names: str, byrepo: bool = False, **kwargs: Any) -> dict[str, Any]:
    """All versions that the repositories have, newest first, by package; of these packages (globs), or of all.

    byrepo
        by repository first
    cacheonly
        what dnf knows already
    """
    by_repository: dict[str, dict[str, list[str]]] = {}
    together: dict[str, list[str]] = {}
    for offer in dnf.offers(ctx.host, names, kwargs, inventory.architecture(ctx), all_versions=True):
        for found in (by_repository.setdefault(offer.repository, {}), together):
            listed = found.setdefault(offer.name, [])
            if offer.version not in listed:
                listed.append(offer.version)
    return by_repository if byrepo else together


def version_cmp(ctx: Context, pkg1: str, pkg2: str, ignore_epoch: bool = False, **kwargs: Any) -> int:
    """-1, 0 or 1: the first version is older than, the same as, newer than the second."""
    return versions.compare(str(pkg1), str(pkg2), ignore_epoch=ignore_epoch)


def normalize_name(ctx: Context, name: str) -> str:
    """The name without an architecture that is the host's own."""
    return inventory.plain_name(ctx, name)


def parse_arch(ctx: Context, name: str) -> dict[str, str | None]:
    """{"name", "arch"} of a name; arch is None where none is named."""
    plain, named = rpm.split_name(name)
    return {"name": plain, "arch": named}


def resolve_capabilities(ctx: Context, pkgs: Any, refresh: bool = False, **kwargs: Any) -> list[str]:
    """The packages that provide what is named (``/usr/bin/dig``, ``perl(JSON)``); names of packages stay.

    CLI Example:

        salt '*' pkg.resolve_capabilities '["perl(JSON)"]'
    """
    if refresh:
        dnf.refresh(ctx, kwargs)
    there = inventory.packages(ctx)
    return [name if name in there else dnf.provider(ctx.host, name) or name for name in map(str, pkgs)]


def info_installed(ctx: Context, *names: str, **kwargs: Any) -> dict[str, dict[str, Any]]:
    """Package -> its name, version, release, epoch, architecture, installation date; those that are not there are left out."""
    known = inventory.packages(ctx)
    missing = [name for name in names if name not in known]
    if missing:
        raise CommandError(f"not installed: {', '.join(missing)}")
    return {name: {"name": name, **known[name][-1].attributes()} for name in names or known}


def list_patches(ctx: Context, refresh: bool = False, **kwargs: Any) -> dict[str, dict[str, Any]]:
    """Advisories of the repositories: id -> {"installed", "summary": packages}."""
    if refresh:
        dnf.refresh(ctx, {})
    return dnf.advisories(ctx.host)


def list_installed_patches(ctx: Context, **kwargs: Any) -> dict[str, dict[str, Any]]:
    """Advisories of which every package is installed."""
    return {name: patch for name, patch in list_patches(ctx, **kwargs).items() if patch["installed"]}
