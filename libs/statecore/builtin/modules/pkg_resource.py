"""Helper functions for modules of package managers: Salt's ``pkg_resource`` execution module.

Users' own package modules call these functions. ``pkgs`` is a map of package to a list of versions, which some of the
functions change in place.
"""

from __future__ import annotations

import copy
import fnmatch
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from statecore.model import yaml
from statecore.model.context import Context
from statecore.model.errors import CallFailed, CommandError, InvocationError

log = logging.getLogger(__name__)

_ATTRIBUTES = ("epoch", "version", "release", "arch", "install_date", "install_date_time_t")

_PROTOCOL = re.compile(r"^(salt|https?|ftp|s3|swift|file)://")

#: Operator -> the results of ``pkg.version_cmp`` for which it holds.
_OPERATORS: Mapping[str, tuple[int, ...]] = {
    "<": (-1,),
    "<=": (-1, 0),
    "=": (0,),
    "==": (0,),
    ">=": (0, 1),
    ">": (1,),
    "!=": (-1, 1),
}


def pack_sources(ctx: Context, sources: str | Sequence[Mapping[str, str]], normalize: bool = True) -> dict[str, str]:
    """Convert a list of maps {package: file} to one map of package to file. Return {} for any other value.

    sources
        the list, or its YAML
    normalize
        False: keep architectures in names

    CLI Example:

        salt '*' pkg_resource.pack_sources '[{"foo": "salt://foo.rpm"}, {"bar": "salt://bar.rpm"}]'
    """
    try:
        rows = yaml.load(sources) if isinstance(sources, str) else sources
    except yaml.YamlFault as error:
        log.error("sources are no YAML: %s", error)
        return {}
    if not isinstance(rows, list | tuple) or not all(isinstance(row, Mapping) and len(row) == 1 for row in rows):
        log.error("sources are a list of maps of one package to its file, not %r", sources)
        return {}
    return {_normal(ctx, str(name), normalize): str(file) for row in rows for name, file in row.items()}


def parse_targets(
    ctx: Context,
    name: str | None = None,
    pkgs: Sequence[Any] | None = None,
    sources: str | Sequence[Mapping[str, str]] | None = None,
    saltenv: str | None = None,
    normalize: bool = True,
    **kwargs: Any,
) -> tuple[Any, str | None]:
    """Return the pair (targets, kind) for the arguments of ``pkg.install``: a map of package to version and
    "repository", a list of files and "file", or a list of advisories and "advisory"; (None, None) for wrong
    arguments.

    CLI Example:

        salt '*' pkg_resource.parse_targets
    """
    if pkgs and (sources or "advisory_ids" in kwargs):
        log.error('Only one of "pkgs", "sources" and "advisory_ids" can be used.')
        return None, None
    if "advisory_ids" in kwargs:
        return kwargs["advisory_ids"] or [name], "advisory"
    if pkgs:
        return _repacked(ctx, pkgs, normalize) or None, "repository"
    if sources:
        files = pack_sources(ctx, sources, normalize)
        return (
            ([_file(ctx, package, file, saltenv) for package, file in files.items()], "file") if files else (None, None)
        )
    if name:
        version = kwargs.get("version")
        return {_normal(ctx, each, normalize): version for each in name.split(",")}, "repository"
    log.error("No package sources provided")
    return None, None


def version(ctx: Context, *names: str, **kwargs: Any) -> Any:
    """Return the installed version of a package as text, "" if it is not installed; for several packages, or for a
    glob, a map of package to version.

    versions_as_list
        True: lists of versions instead of text with commas

    CLI Example:

        salt '*' pkg_resource.version vim
        salt '*' pkg_resource.version foo bar baz
        salt '*' pkg_resource.version 'python*'
    """
    as_list = str(kwargs.pop("versions_as_list", False)).lower() in ("true", "1")
    known = ctx.call("pkg.list_pkgs", versions_as_list=True, **kwargs) if names else {}
    found: dict[str, Any] = {}
    for name in names:
        for each in fnmatch.filter(known, name) if "*" in name else [name]:
            found[each] = known.get(each, [])
    if not as_list:
        stringify(ctx, found)
    alone = len(found) == 1 and not any("*" in name for name in names)
    return next(iter(found.values())) if alone else found


def add_pkg(ctx: Context, pkgs: dict[str, list[str]], name: str, pkgver: str) -> None:
    """Append a version of a package to the map ``pkgs`` (package to list of versions), in place. Return None.

    CLI Example:

        salt '*' pkg_resource.add_pkg '{}' bind 9
    """
    pkgs.setdefault(name, []).append(pkgver)


def sort_pkglist(ctx: Context, pkgs: dict[str, list[str]]) -> None:
    """Sort the versions of each package in the map ``pkgs``, and remove duplicates, in place. Return None.

    CLI Example:

        salt '*' pkg_resource.sort_pkglist '["3.45", "2.13"]'
    """
    pkgs.update({name: sorted(set(versions)) for name, versions in pkgs.items()})


def stringify(ctx: Context, pkgs: dict[str, Any]) -> None:
    """Replace the list of versions of each package in the map ``pkgs`` by a text with commas, in place. Return None.

    CLI Example:

        salt '*' pkg_resource.stringify 'vim: 7.127'
    """
    pkgs.update({name: ",".join(versions) for name, versions in pkgs.items()})


def version_clean(ctx: Context, verstr: str | None) -> str | None:
    """Return a version without the parts that the package manager adds to the program's version, by
    ``pkg.version_clean``. Return the version unchanged if the module ``pkg`` does not have this function.

    CLI Example:

        salt '*' pkg_resource.version_clean <version_string>
    """
    if verstr and "pkg.version_clean" in ctx.functions:
        cleaned: str = ctx.call("pkg.version_clean", verstr)
        return cleaned
    return verstr


def version_compare(ctx: Context, ver1: str, oper: str, ver2: str, ignore_epoch: bool = False) -> bool:
    """Return whether ``ver1`` and ``ver2`` are in the relation ``oper``, by the rules of the host's package manager.
    False, and an exit code, for an unknown operator.

    oper
        <, <=, =, ==, >=, > or !=

    CLI Example:

        salt '*' pkg_resource.version_compare 1.2 '<' 1.10
    """
    if oper not in _OPERATORS:
        raise CallFailed(f"{oper!r} is no operator: {', '.join(_OPERATORS)}", False)
    return ctx.call("pkg.version_cmp", str(ver1), str(ver2), ignore_epoch=ignore_epoch) in _OPERATORS[oper]


def check_extra_requirements(ctx: Context, pkgname: str, pkgver: str) -> Any:
    """Return the result of ``pkg.check_extra_requirements``, True if the module ``pkg`` has no such function.

    CLI Example:

        salt '*' pkg_resource.check_extra_requirements <pkgname> <extra_requirements>
    """
    if pkgver and "pkg.check_extra_requirements" in ctx.functions:
        return ctx.call("pkg.check_extra_requirements", pkgname, pkgver)
    return True


def format_pkg_list(
    ctx: Context, packages: Mapping[str, Sequence[Mapping[str, Any]]], versions_as_list: bool, attr: Any
) -> dict[str, Any]:
    """Return packages in the form of ``pkg.list_pkgs`` (package to versions), from a map of package to a list of
    maps with epoch, version, release, arch and others.

    versions_as_list
        True: lists of versions instead of text with commas
    attr
        a list of attributes that are wanted instead of versions, or "all"
    """
    if attr:
        wanted = set(_ATTRIBUTES) if attr == "all" else set(_ATTRIBUTES) & {*attr, "version", "arch"}
        found: dict[str, Any] = {}
        for name, rows in packages.items():
            parts = (
                ctx.call("pkg.parse_arch", name) if "pkg.parse_arch" in ctx.functions else {"name": name, "arch": None}
            )
            kept = [{key: row[key] for key in wanted if key in row} for row in rows]
            own = any(row.get("arch") == parts["arch"] for row in kept)
            found.setdefault(parts["name"] if own and parts["name"] else name, []).extend(copy.deepcopy(kept))
        return found
    plain: dict[str, Any] = {
        name: [format_version(ctx, row["epoch"], row["version"], row["release"]) for row in rows]
        for name, rows in packages.items()
    }
    if not versions_as_list:
        stringify(ctx, plain)
    return plain


def format_version(ctx: Context, epoch: Any, version: str, release: Any) -> str:
    """Return the text ``epoch:version-release``, without an empty epoch or release.

    CLI Example:

        salt '*' pkg_resource.format_version 1 2.0 3
    """
    return (f"{epoch}:" if epoch else "") + str(version) + (f"-{release}" if release else "")


def _normal(ctx: Context, name: str, normalize: bool) -> str:
    known = normalize and "pkg.normalize_name" in ctx.functions
    return str(ctx.call("pkg.normalize_name", name)) if known else name


def _repacked(ctx: Context, pkgs: Sequence[Any], normalize: bool) -> dict[str, str | None]:
    """Return a list of package names, and of maps of package to version, as one map of package to version (None for
    a name). Raise InvocationError for a package that occurs twice.
    """
    rows = [row if isinstance(row, Mapping) else {row: None} for row in pkgs]
    found = {
        _normal(ctx, str(name), normalize): None if each is None else str(each)
        for row in rows
        for name, each in row.items()
    }
    if len(found) != len(pkgs):
        raise InvocationError(
            f"You are passing a list of packages that contains duplicated packages names: {pkgs}. This cannot be "
            "processed. In case you are targeting different versions of the same package, please target them individually"
        )
    return found


def _file(ctx: Context, package: str, file: str, saltenv: str | None) -> str:
    if _PROTOCOL.match(file):
        cached = ctx.call("cp.cache_file", file, saltenv)
        if not cached:
            raise CommandError(f"Unable to cache source {file} for package {package}")
        return str(cached)
    if not file.startswith("/"):
        raise InvocationError(f"Path {file} for package {package} is either not absolute or an invalid protocol")
    return file
