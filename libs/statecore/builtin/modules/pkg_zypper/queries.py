"""Functions of ``pkg`` that list installed packages and available versions on a host with zypper."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterable, Mapping
from typing import Any

from statecore.builtin.modules import lowpkg_rpm
from statecore.builtin.modules.pkg_rpm import inventory, rpm
from statecore.builtin.modules.pkg_zypper import listings, zypper
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of
from statecore.system.packages import package_requests
from statecore.system.packages.package_versions import rpm as versions

#: Keyword of ``pkg.search`` -> zypper's option.
_SEARCH_OPTIONS: Mapping[str, str] = {
    "provides": "--provides",
    "recommends": "--recommends",
    "requires": "--requires",
    "suggests": "--suggests",
    "conflicts": "--conflicts",
    "obsoletes": "--obsoletes",
    "file_list": "--file-list",
    "search_descriptions": "--search-descriptions",
    "case_sensitive": "--case-sensitive",
    "installed_only": "--installed-only",
    "not_installed_only": "-u",
    "details": "--details",
}

#: Names in one call of ``zypper info``.
_NAMES = 200


def list_pkgs(
    ctx: Context, versions_as_list: bool = False, root: str | None = None, includes: object = None, **kwargs: object
) -> dict[str, object]:
    """Return a map of package to version for the packages that rpm has installed.

    includes
        kinds of further entries: ``product``, ``pattern``, ``patch``; their names begin with the kind (``pattern:base``)
    attr
        attributes to return in place of a version (epoch, version, release, arch, install_date, install_date_time_t),
        or ``all``
    removed, purge_desired
        True: return {}, because rpm keeps no records of removed packages

    CLI Example:

        salt '*' pkg.list_pkgs attr=version,arch
    """
    if kwargs.get("removed") or kwargs.get("purge_desired"):
        return {}
    known: dict[str, list[dict[str, Any]]] = {
        name: [package.attributes() for package in sorted(found, key=lambda each: each.version)]
        for name, found in _packages(ctx, root).items()
    }
    for kind in package_requests.texts(includes):
        known |= listings.further(ctx, kind, root)
    chosen = package_requests.texts(kwargs.get("attr"))
    if chosen:
        return {
            name: [{key: value for key, value in each.items() if chosen == ["all"] or key in chosen} for each in found]
            for name, found in known.items()
        }
    listed = {name: rpm.sorted_versions([_version_text(each) for each in found]) for name, found in known.items()}
    return package_requests.listed(listed, as_list=versions_as_list)


def version(ctx: Context, *names: str, **kwargs: Any) -> object:
    """Return the version of an installed package, "" if it is not installed. For several names or a glob return a map of name
    to version.

    CLI Example:

        salt '*' pkg.version nginx
    """
    as_list = bool(kwargs.get("versions_as_list"))
    packages = list_pkgs(ctx, versions_as_list=as_list, root=kwargs.get("root"))
    return package_requests.versions(packages, names, [] if as_list else "")


def info_installed(ctx: Context, *names: str, **kwargs: Any) -> dict[str, Any]:
    """Return rpm's data about installed packages: a map of package to a map of its attributes.

    attr
        names of attributes, with commas between them, as of ``lowpkg.info``; default: all
    all_versions
        True: each package has a list of all its installed versions

    CLI Example:

        salt '*' pkg.info_installed nginx attr=version,vendor
    """
    found = lowpkg_rpm.info(ctx, *names, **kwargs)
    if kwargs.get("all_versions"):
        return {name: [_with_source(each) for each in rows] for name, rows in found.items()}
    return {name: _with_source(row) for name, row in found.items()}


def info_available(ctx: Context, *names: str, **kwargs: Any) -> dict[str, dict[str, object]]:
    """Return zypper's data about packages of the repositories: a map of package to a map of attributes, such as version, arch,
    repository, status, summary, and ``installed`` (a boolean).

    refresh
        True, the default: fetch the metadata of the repositories before

    CLI Example:

        salt '*' pkg.info_available nginx
    """
    asked = sorted(set(names))
    if not asked:
        return {}
    root = kwargs.get("root")
    if kwargs.get("refresh", True):
        zypper.refresh(ctx, force=kwargs.get("force"), root=root, trust_keys=bool(kwargs.get("gpgautoimport")))
    found: dict[str, dict[str, object]] = {}
    for start in range(0, len(asked), _NAMES):
        told = zypper.query(ctx, "info", "-t", "package", *asked[start : start + _NAMES], root=root)
        found |= listings.parse_info(told.stdout)
    return found


def latest_version(ctx: Context, *names: str, **kwargs: Any) -> object:
    """Return the newest version of a package in the repositories; "" if it is installed already or none exists. For several
    names return a map of name to version.

    refresh
        True, the default: fetch the metadata of the repositories before

    CLI Example:

        salt '*' pkg.latest_version nginx
    """
    if not names:
        return {}
    found = info_available(ctx, *names, **kwargs)
    newest: dict[str, object] = {}
    for name in sorted(set(names)):
        facts = found.get(name, {})
        status = str(facts.get("status", "")).lower()
        newest[name] = facts.get("version") if "not installed" in status or "out-of-date" in status else ""
    return newest[names[0]] if len(newest) == 1 else newest


def available_version(ctx: Context, *names: str, **kwargs: Any) -> object:
    """Return the newest version of packages in the repositories, as text or as a map of name to version; the same function as
    ``pkg.latest_version``.
    """
    return latest_version(ctx, *names, **kwargs)


def upgrade_available(ctx: Context, name: str, **kwargs: Any) -> bool:
    """Return whether a repository has a newer version of the package than the installed one, or the package is not installed
    and a repository has it.
    """
    return bool(latest_version(ctx, name, **kwargs))


def list_upgrades(ctx: Context, refresh: bool = True, root: str | None = None, **kwargs: Any) -> dict[str, str]:
    """Return a map of package to new version for the packages that an update would change.

    refresh
        True: fetch the metadata of the repositories before
    fromrepo
        a repository, or a list of repositories, to look at

    CLI Example:

        salt '*' pkg.list_upgrades
    """
    if refresh:
        zypper.refresh(ctx, force=kwargs.get("force"), root=root, trust_keys=bool(kwargs.get("gpgautoimport")))
    given = kwargs.get("fromrepo")
    repositories = given if isinstance(given, list | tuple) else [given] if given else []
    chosen = [word for each in repositories for word in ("--repo", str(each))]
    found = zypper.query_xml(ctx, "list-updates", *chosen, root=root)
    return {
        each.get("name", ""): each.get("edition", "") for each in found.iter("update") if each.get("kind") == "package"
    }


def list_updates(ctx: Context, refresh: bool = True, root: str | None = None, **kwargs: Any) -> dict[str, str]:
    """Return a map of package to new version for the packages that an update would change; the same function as
    ``pkg.list_upgrades``.
    """
    return list_upgrades(ctx, refresh, root, **kwargs)


def list_repo_pkgs(ctx: Context, *args: object, **kwargs: Any) -> dict[str, object]:
    """Return a map of package (named by globs, or all) to its versions in the repositories, newest first.

    byrepo
        True: return {repository: {package: versions}}
    fromrepo
        only this repository

    CLI Example:

        salt '*' pkg.list_repo_pkgs 'python3-*' byrepo=True
    """
    names = [str(each) for each in args]
    wanted = kwargs.get("fromrepo")
    found: dict[str, dict[str, set[str]]] = {}
    for each in zypper.order_xml(ctx, "se", "-s", *names, root=kwargs.get("root")).iter("solvable"):
        name, repository, edition = (each.get(key) for key in ("name", "repository", "edition"))
        if each.get("kind") != "package" or not name or repository is None or edition is None:
            continue
        if (not wanted or repository == wanted) and (not names or any(fnmatch.fnmatch(name, one) for one in names)):
            found.setdefault(repository, {}).setdefault(name, set()).add(edition)
    if kwargs.get("byrepo"):
        return {
            repository: {name: _newest_first(listed) for name, listed in packages.items()}
            for repository, packages in found.items()
        }
    together: dict[str, set[str]] = {}
    for packages in found.values():
        for name, listed in packages.items():
            together.setdefault(name, set()).update(listed)
    return {name: _newest_first(listed) for name, listed in together.items()}


def search(ctx: Context, criteria: str, refresh: bool = False, **kwargs: Any) -> dict[str, dict[str, str]]:
    """Return a map of package to zypper's data about it, for the packages that a search finds. Raise CommandError if it finds
    none.

    refresh
        True: fetch the metadata of the repositories before
    match
        exact, words or substrings
    provides, recommends, requires, suggests, conflicts, obsoletes
        search in these relations of packages
    file_list, search_descriptions
        search in the lists of files; in summaries and descriptions
    case_sensitive, installed_only, not_installed_only, details
        zypper's options of these names

    CLI Example:

        salt '*' pkg.search nginx match=exact
    """
    root = kwargs.get("root")
    if refresh:
        zypper.refresh(ctx, force=kwargs.get("force"), root=root, trust_keys=bool(kwargs.get("gpgautoimport")))
    match = [f"--match-{kwargs['match']}"] if kwargs.get("match") in ("exact", "words", "substrings") else []
    chosen = [_SEARCH_OPTIONS[name] for name in kwargs if name in _SEARCH_OPTIONS and kwargs[name]]
    found = zypper.query_xml(ctx, "search", *match, *chosen, criteria, root=root, check=False)
    listed = {each.get("name", ""): dict(each.attrib) for each in found.iter("solvable")}
    if not listed:
        raise CommandError(f"No packages found matching '{criteria}'")
    return listed


def resolve_capabilities(
    ctx: Context, pkgs: Iterable[object], refresh: bool = False, root: str | None = None, **kwargs: Any
) -> list[object]:
    """Return a list of packages in which each capability that is no package's name is replaced by the package that provides
    it, if exactly one does.

    resolve_capabilities
        False: return the list as it is

    CLI Example:

        salt '*' pkg.resolve_capabilities '["w3m_ssl"]' resolve_capabilities=True
    """
    if refresh:
        zypper.refresh(ctx, force=kwargs.get("force"), root=root, trust_keys=bool(kwargs.get("gpgautoimport")))
    resolved: list[object] = []
    for each in pkgs:
        name, wanted = next(iter(each.items())) if isinstance(each, Mapping) else (each, None)
        real = _provider(ctx, str(name), root) if kwargs.get("resolve_capabilities", False) else name
        resolved.append({real: wanted} if wanted else real)
    return resolved


def list_provides(ctx: Context, root: str | None = None, **kwargs: object) -> dict[str, list[str]]:
    """Return a map of capability to the installed packages that provide it. A package's own name is left out.

    CLI Example:

        salt '*' pkg.list_provides
    """
    where = ["--root", root] if root else []
    form = "[%{=NAME}\\t%{PROVIDES}\\n]"
    found: dict[str, list[str]] = {}
    for line in lines_of(rpm.run(ctx.host, ["rpm", *where, "-qa", "--queryformat", form]).stdout):
        name, tab, provided = line.partition("\t")
        if tab and provided and provided != name and name not in found.setdefault(provided, []):
            found[provided].append(name)
    return found


def version_cmp(ctx: Context, ver1: str, ver2: str, ignore_epoch: bool = False, **kwargs: object) -> int:
    """Compare two versions: return -1 if the first is older, 0 if they are equal, 1 if it is newer.

    CLI Example:

        salt '*' pkg.version_cmp '0.2-001' '0.2.0.1-002'
    """
    return lowpkg_rpm.version_cmp(ctx, ver1, ver2, ignore_epoch=ignore_epoch)


def _packages(ctx: Context, root: str | None) -> dict[str, list[rpm.RpmPackage]]:
    """Return a map of package name to the installed RpmPackages of this name, without the keys that rpm keeps as packages."""
    if not root:
        known = inventory.packages(ctx)
    else:
        listed: dict[str, list[rpm.RpmPackage]] = {}
        for package in rpm.packages(ctx.host, inventory.architecture(ctx), root):
            listed.setdefault(package.name, []).append(package)
        known = listed
    return {name: list(found) for name, found in known.items() if not name.startswith("gpg-pubkey")}


def _version_text(attributes: Mapping[str, object]) -> str:
    epoch, release = attributes["epoch"], attributes["release"]
    return f"{f'{epoch}:' if epoch else ''}{attributes['version']}{f'-{release}' if release else ''}"


def _newest_first(listed: Iterable[str]) -> list[str]:
    return sorted(listed, key=functools.cmp_to_key(versions.compare), reverse=True)


def _with_source(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"source" if key == "source_rpm" else key: value for key, value in row.items()}


def _provider(ctx: Context, name: str, root: str | None) -> str:
    """Return the only package that provides a capability; the name itself if it is a package's, or there is no only one."""
    try:
        search(ctx, name, root=root, match="exact")
    except CommandError:
        try:
            found = search(ctx, name, root=root, provides=True, match="exact")
        except CommandError:
            return name
        return next(iter(found)) if len(found) == 1 else name
    return name
