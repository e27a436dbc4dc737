"""Functions of ``pkg`` that install, upgrade and remove packages with apk."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping

from statecore.builtin.modules.pkg_apk import apk
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.packages import package_requests, package_versions
from statecore.system.packages.package_versions import apk as versions


def refresh_db(ctx: Context, failhard: bool = False, **kwargs: object) -> bool:
    """Fetch the package indexes of apk's repositories. Return True; False if one of them could not be fetched, or with
    ``failhard`` raise CommandError.

    CLI Example:

        salt '*' pkg.refresh_db
    """
    fetched = apk.update(ctx)
    if failhard and not fetched:
        raise CommandError("Error getting repos: apk update failed")
    return fetched


def install(
    ctx: Context,
    name: str | None = None,
    refresh: bool = False,
    pkgs: object = None,
    sources: object = None,
    version: object = None,
    fromrepo: object = None,
    skip_verify: bool = False,
    reinstall: bool = False,
    downloadonly: bool = False,
    **kwargs: object,
) -> dict[str, object]:
    """Install packages with apk. Return the changes: {name: {"old": version, "new": version}}. Raise CommandError with
    apk's errors.

    name
        one package to install, or several with commas; ``pkgs``: a list of names and of {name: version}
    version
        wanted version of the package: a version, a glob (``1.22*``), or conditions (``>=1.2, <2``); apk records it and
        keeps to it in upgrades
    sources
        package files to install: a list of {name: path}, where a path is salt://, http:// or an .apk file of the host
    skip_verify
        True: accept files and repositories with unknown signatures
    fromrepo
        URLs of repositories to use besides those of the host

    CLI Example:

        salt '*' pkg.install pkgs='["nginx", {"curl": "8.5.0-r0"}]'
    """
    package_requests.need_one_kind(pkgs, sources)
    if downloadonly:
        raise InvocationError("not supported: downloadonly; apk keeps no packages that are not installed")
    wanted = {} if sources else package_requests.wanted(name, pkgs, version, str)
    if not wanted and not sources:
        return {}
    if refresh:
        apk.update(ctx)
    before = apk.installed_versions(ctx)
    general = [*apk.repository_options(fromrepo), *(["--allow-untrusted"] if skip_verify else [])]
    errors: list[str] = []
    again = [package for package in wanted if reinstall and package in before]
    if sources:
        files = package_requests.package_files(ctx, package_requests.packed(sources))
        with package_requests.staged(ctx.host, files, ".apk") as paths:
            errors += apk.run_change(ctx.host, [*general, "add", *paths])
    else:
        words = _words(
            ctx, {each: exact for each, exact in wanted.items() if exact or each not in again}, fromrepo, errors
        )
        if words:
            # Without --upgrade apk keeps an installed package at an older version.
            errors += apk.run_change(ctx.host, [*general, "add", "--upgrade", *words])
        if again:
            errors += apk.run_change(ctx.host, [*general, "fix", "--reinstall", *again])
    after = apk.installed_versions(ctx)
    changes = package_requests.compared(before, after, again if not errors else ())
    package_requests.complain("Error occurred installing package(s)", errors, changes)
    return changes


def remove(
    ctx: Context, name: str | None = None, pkgs: object = None, purge: bool = False, **kwargs: object
) -> dict[str, object]:
    """Remove packages with apk. Configuration files that were changed stay. Return the changes: {name: {"old": version,
    "new": ""}}. Raise CommandError with apk's errors.
    """
    wanted = package_requests.wanted(name, pkgs, None, str)
    before = apk.installed_versions(ctx)
    targets = sorted({package for pattern in wanted for package in fnmatch.filter(before, pattern)})
    if not targets:
        return {}
    errors = apk.run_change(ctx.host, ["del", *(["--purge"] if purge else []), *targets])
    changes = package_requests.compared(before, apk.installed_versions(ctx))
    package_requests.complain("Error occurred removing package(s)", errors, changes)
    return changes


def purge(ctx: Context, name: str | None = None, pkgs: object = None, **kwargs: object) -> dict[str, object]:
    """Remove packages and their configuration files with apk. Return the changes: {name: {"old": version, "new": ""}}.
    Raise CommandError with apk's errors.
    """
    return remove(ctx, name, pkgs, purge=True)


def upgrade(
    ctx: Context, name: str | None = None, pkgs: object = None, refresh: bool = True, **kwargs: object
) -> dict[str, object]:
    """Upgrade all packages with apk, or those of ``name`` and ``pkgs``. Return the changes: {name: {"old": version,
    "new": version}}. Raise CommandError with apk's errors.
    """
    if refresh:
        apk.update(ctx)
    before = apk.installed_versions(ctx)
    names = package_requests.wanted(name, pkgs, None, str)
    errors = apk.run_change(ctx.host, ["upgrade", *names])
    changes = package_requests.compared(before, apk.installed_versions(ctx))
    package_requests.complain("Problem encountered upgrading packages", errors, changes)
    return changes


def _words(ctx: Context, wanted: Mapping[str, str | None], fromrepo: object, errors: list[str]) -> list[str]:
    """Return the arguments of ``apk add`` for the wanted packages: ``name``, ``name=version`` or ``name>=version``.

    An error is appended to ``errors`` for each package without a matching version.
    """
    searched = [
        package for package, text in wanted.items() if text and ("*" in text or package_versions.is_range(text))
    ]
    offered = apk.available_versions(ctx.host, searched, fromrepo)
    words = []
    for package, text in wanted.items():
        if text and package in searched:
            best = package_versions.best(offered.get(package, []), text, order=versions.compare)
            if best is None:
                known = ", ".join(offered.get(package, [])) or None
                errors.append(f"No version matching '{package}{text}' could be found (available: {known})")
                continue
            conditions = package_versions.conditions(text)
            # apk records one condition for a package: the wanted condition where it is a single one, else the exact version.
            native = len(conditions) == 1 and conditions[0][0] in ("<", "<=", ">", ">=")
            words.append(f"{package}{''.join(conditions[0])}" if native else f"{package}={best}")
        else:
            words.append(f"{package}={text.lstrip('= ')}" if text else package)
    return words
