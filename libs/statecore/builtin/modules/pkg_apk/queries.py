"""Functions of ``pkg`` that list installed packages, available versions and packages' files on a host with apk."""

from __future__ import annotations

import fnmatch
from typing import Any

from statecore.builtin.modules.pkg_apk import apk
from statecore.model.context import Context
from statecore.system.packages import package_requests
from statecore.system.packages.package_versions import apk as versions


def list_pkgs(
    ctx: Context, versions_as_list: bool = False, removed: bool = False, purge_desired: bool = False, **kwargs: object
) -> dict[str, object]:
    """Return a map of package to version for the packages that apk has installed. With ``removed`` or ``purge_desired``
    return {}, because apk keeps no records of removed packages.

    CLI Example:

        salt '*' pkg.list_pkgs
    """
    if removed or purge_desired:
        return {}
    found = {name: [package.version] for name, package in apk.packages(ctx).items()}
    return package_requests.listed(found, as_list=versions_as_list)


def version(ctx: Context, *names: str, versions_as_list: bool = False, **kwargs: object) -> object:
    """Return the version of an installed package, "" if it is not installed. For several names or a glob return a map
    of name to version.

    CLI Example:

        salt '*' pkg.version nginx
    """
    packages = list_pkgs(ctx, versions_as_list=versions_as_list)
    return package_requests.versions(packages, names, [] if versions_as_list else "")


def latest_version(
    ctx: Context, *names: str, refresh: bool = True, fromrepo: object = None, **kwargs: object
) -> object:
    """Return the newest version of a package in apk's repositories; "" if it is installed already or none exists. For
    several names return a map of name to version.

    CLI Example:

        salt '*' pkg.latest_version nginx
    """
    if not names:
        return ""
    if refresh:
        apk.update(ctx)
    offered, installed = apk.available_versions(ctx.host, names, fromrepo), apk.installed_versions(ctx)
    found = {}
    for name in names:
        newest = next(iter(offered.get(name, ())), "")
        upgrade = name not in installed or versions.compare(installed[name], newest) < 0
        found[name] = newest if newest and upgrade else ""
    return found[names[0]] if len(names) == 1 else found


def available_version(ctx: Context, *names: str, **kwargs: Any) -> object:
    """Return the newest version of packages in apk's repositories, as text or as a map of name to version; the same
    function as ``pkg.latest_version``.
    """
    return latest_version(ctx, *names, **kwargs)


def upgrade_available(ctx: Context, name: str, **kwargs: Any) -> bool:
    """Return whether a repository of apk has a newer version of the package than the installed one."""
    return bool(latest_version(ctx, name, **kwargs))


def list_upgrades(ctx: Context, refresh: bool = True, **kwargs: object) -> dict[str, str]:
    """Return a map of package to new version for the packages that an upgrade would change. Raise CommandError if apk
    fails.
    """
    if refresh:
        apk.update(ctx)
    return apk.upgrades(ctx.host)


def list_repo_pkgs(ctx: Context, *names: str, fromrepo: object = None, **kwargs: object) -> dict[str, list[str]]:
    """Return a map of package to all its versions in apk's repositories, newest first."""
    return apk.available_versions(ctx.host, names, fromrepo)


def version_cmp(ctx: Context, pkg1: str, pkg2: str, ignore_epoch: bool = False, **kwargs: object) -> int:
    """Compare two versions of an apk package. Return -1 if the first is older, 0 if they are equal, 1 if it is
    newer.
    """
    return versions.compare(str(pkg1), str(pkg2))


def owner(ctx: Context, *paths: str, **kwargs: object) -> object:
    """Return the name of the package that a file of the host belongs to, "" if there is none. For several paths return
    a map of path to name.

    CLI Example:

        salt '*' pkg.owner /usr/sbin/nginx
    """
    owners = {file: package.name for package in apk.packages(ctx).values() for file in package.files}
    found = {path: owners.get(path, "") for path in paths}
    return "" if not paths else found[paths[0]] if len(paths) == 1 else found


def file_list(ctx: Context, *packages: str, **kwargs: object) -> dict[str, list[str]]:
    """Return {"errors": texts, "files": paths} with the files of the named packages (globs), or of all packages."""
    found = file_dict(ctx, *packages)
    return {"errors": found["errors"], "files": [file for files in found["packages"].values() for file in files]}


def file_dict(ctx: Context, *packages: str, **kwargs: object) -> dict[str, Any]:
    """Return {"errors": texts, "packages": {package: paths of its files}} for the named packages (globs), or for all
    packages.
    """
    known = apk.packages(ctx)
    names = [name for pattern in packages or ("*",) for name in fnmatch.filter(known, pattern)]
    errors = [f"package {pattern} is not installed" for pattern in packages if not fnmatch.filter(known, pattern)]
    return {"errors": errors, "packages": {name: list(known[name].files) for name in dict.fromkeys(names)}}
