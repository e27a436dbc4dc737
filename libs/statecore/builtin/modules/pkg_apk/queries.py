"""Functions of ``pkg`` that list installed packages, available versions and packages' files on a host with apk."""

from __future__ import annotations

import fnmatch
from typing import Any

from statecore.builtin.modules.pkg_apk import apk
from statecore.model.context import Context
from statecore.system.packages import package_requests
from statecore.system.packages.package_versions import apk as versions


def list_pkgs(
    ctx: Context, versions_as_list: bool = False, removed: bool = False, purge_desired: bool = False, **kwargs: Any
) -> dict[str, Any]:
    """Map of installed package to version. With ``removed`` or ``purge_desired`` {}: apk keeps no records of removed
    packages.

    CLI Example:

        salt '*' pkg.list_pkgs
    """
    if removed or purge_desired:
        return {}
    found = {name: [package.version] for name, package in apk.packages(ctx).items()}
    return package_requests.listed(found, as_list=versions_as_list)


def version(ctx: Context, *names: str, versions_as_list: bool = False, **kwargs: Any) -> Any:
    """Return the version of an installed package, "" when it is not installed. Several names or a glob give a map.

    CLI Example:

        salt '*' pkg.version nginx
    """
    packages = list_pkgs(ctx, versions_as_list=versions_as_list)
    return package_requests.versions(packages, names, [] if versions_as_list else "")


def latest_version(ctx: Context, *names: str, refresh: bool = True, fromrepo: Any = None, **kwargs: Any) -> Any:
    """Return the newest available version of a package; "" when it is installed already or none exists. Several names
    give a map.

    CLI Example:

        salt '*' pkg.latest_version nginx
    """
    if not names:
        return ""
    if refresh:
        apk.update(ctx)
    offered, installed = apk.offered(ctx.host, names, fromrepo), apk.shown(ctx)
    found = {}
    for name in names:
        newest = next(iter(offered.get(name, ())), "")
        upgrade = name not in installed or versions.compare(installed[name], newest) < 0
        found[name] = newest if newest and upgrade else ""
    return found[names[0]] if len(names) == 1 else found


def available_version(ctx: Context, *names: str, **kwargs: Any) -> Any:
    """Return the same as ``latest_version``."""
    return latest_version(ctx, *names, **kwargs)


def upgrade_available(ctx: Context, name: str, **kwargs: Any) -> bool:
    """Return whether a repository has a newer version of the package than the installed one."""
    return bool(latest_version(ctx, name, **kwargs))


def list_upgrades(ctx: Context, refresh: bool = True, **kwargs: Any) -> dict[str, str]:
    """Map each package that an upgrade would change to its new version."""
    if refresh:
        apk.update(ctx)
    return apk.upgrades(ctx.host)


def list_repo_pkgs(ctx: Context, *names: str, fromrepo: Any = None, **kwargs: Any) -> dict[str, list[str]]:
    """Map each of these packages to all its available versions, newest first."""
    return apk.offered(ctx.host, names, fromrepo)


def version_cmp(ctx: Context, pkg1: str, pkg2: str, ignore_epoch: bool = False, **kwargs: Any) -> int:
    """Compare two versions. Return -1 when the first is older, 0 when they are equal, 1 when it is newer."""
    return versions.compare(str(pkg1), str(pkg2))


def owner(ctx: Context, *paths: str, **kwargs: Any) -> Any:
    """Return the name of the package that a file belongs to, "" without one. Several paths give a map.

    CLI Example:

        salt '*' pkg.owner /usr/sbin/nginx
    """
    owners = {file: package.name for package in apk.packages(ctx).values() for file in package.files}
    found = {path: owners.get(path, "") for path in paths}
    return "" if not paths else found[paths[0]] if len(paths) == 1 else found


def file_list(ctx: Context, *packages: str, **kwargs: Any) -> dict[str, list[str]]:
    """Return {"errors": texts, "files": paths of the files} of packages (globs), or of all."""
    found = file_dict(ctx, *packages)
    return {"errors": found["errors"], "files": [file for files in found["packages"].values() for file in files]}


def file_dict(ctx: Context, *packages: str, **kwargs: Any) -> dict[str, Any]:
    """Return {"errors": texts, "packages": {package: paths of its files}} of packages (globs), or of all."""
    known = apk.packages(ctx)
    names = [name for pattern in packages or ("*",) for name in fnmatch.filter(known, pattern)]
    errors = [f"package {pattern} is not installed" for pattern in packages if not fnmatch.filter(known, pattern)]
    return {"errors": errors, "packages": {name: list(known[name].files) for name in dict.fromkeys(names)}}
