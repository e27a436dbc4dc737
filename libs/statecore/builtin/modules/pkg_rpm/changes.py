"""Functions of ``pkg`` that install, upgrade, remove and hold packages on a host with rpm."""

from __future__ import annotations

import fnmatch
from typing import Any

from statecore.builtin.modules.pkg_rpm import dnf, inventory, locks, transactions
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.packages import package_requests


def refresh_db(ctx: Context, check_update: bool = True, failhard: bool = False, **kwargs: object) -> bool | None:
    """Fetch the metadata of the repositories. Return True if upgrades are available, None if none are, False if it
    failed.

    fromrepo, enablerepo, disablerepo, disableexcludes, branch, setopt
        repositories to use; these arguments are passed to dnf as its options of these names
    check_update
        False: only mark the metadata as expired, so that dnf fetches it with its next command; return True

    CLI Example:

        salt '*' pkg.refresh_db
    """
    if not check_update:
        dnf.expire(ctx, kwargs)
        return True
    found = dnf.refresh(ctx, kwargs)
    if failhard and found is False:
        raise CommandError("Error getting repos: dnf check-update failed")
    return found


def clean_metadata(ctx: Context, **kwargs: Any) -> bool | None:
    """Fetch the metadata of the repositories, as ``pkg.refresh_db`` does. Return True if upgrades are available, None
    if none are, False if it failed.
    """
    return refresh_db(ctx, **kwargs)


def install(
    ctx: Context,
    name: str | None = None,
    refresh: bool = False,
    skip_verify: bool = False,
    pkgs: object = None,
    sources: object = None,
    advisory_ids: object = None,
    downloadonly: bool = False,
    reinstall: bool = False,
    normalize: bool = True,
    update_holds: bool = False,
    ignore_epoch: bool = False,
    version: object = None,
    **kwargs: object,
) -> dict[str, object]:
    """Install packages with dnf. Return the changes: {name: {"old": version, "new": version}}. Raise CommandError with
    dnf's errors.

    name
        one package to install, or several with commas; ``pkgs``: a list of names and of {name: version}
    version
        wanted version of the package: a version, a glob (``1.22*``), or conditions (``>=1.2, <2``)
    sources
        package files to install: a list of {name: path}, where a path is salt://, http:// or an .rpm file of the host
    advisory_ids
        ids of advisories, whose packages are installed instead of ``name``
    downloadonly
        True: only download the packages; return a map of package to version to the file's data
    update_holds
        True: end the hold of packages during the installation; without it a held package is an error
    skip_verify
        True: do not check the packages' signatures
    fromrepo, enablerepo, disablerepo, disableexcludes, branch, setopt
        repositories to use; these arguments are passed to dnf as its options of these names

    CLI Example:

        salt '*' pkg.install pkgs='["nginx", {"curl": "7.88.1-10"}]'
    """
    package_requests.need_one_kind(pkgs, sources)
    wanted = package_requests.wanted(
        name, pkgs, version, lambda each: inventory.plain_name(ctx, each) if normalize else each
    )
    advisories = package_requests.texts(advisory_ids)
    if not (sources or advisories or wanted):
        return {}
    if refresh:
        dnf.refresh(ctx, kwargs)
    before = inventory.files(ctx) if downloadonly else inventory.version_texts(ctx)
    errors: list[str] = []
    general = transactions.options(ctx.host, kwargs, skip_verify=skip_verify, downloadonly=downloadonly)
    if sources:
        again: list[str] = transactions.install_files(
            ctx, package_requests.packed(sources), general, errors, reinstall=reinstall
        )
    elif advisories:
        again = transactions.install_advisories(ctx, advisories, general, errors)
    else:
        again = transactions.install_packages(
            ctx,
            wanted,
            general,
            kwargs,
            errors,
            reinstall=reinstall,
            update_holds=update_holds,
            ignore_epoch=ignore_epoch,
        )
    after = inventory.files(ctx) if downloadonly else inventory.version_texts(ctx)
    changes = package_requests.compared(before, after, again)
    package_requests.complain(
        f"Error occurred installing{'/reinstalling' if again else ''} package(s)", errors, changes
    )
    return changes


def remove(ctx: Context, name: str | None = None, pkgs: object = None, **kwargs: object) -> dict[str, object]:
    """Remove packages with dnf, by name or by name and version. Return the changes: {name: {"old": version, "new":
    ""}}. Raise CommandError with dnf's errors.
    """
    wanted = package_requests.wanted(name, pkgs, None, lambda each: inventory.plain_name(ctx, each))
    before = inventory.versions(ctx)
    targets = []
    for pattern, exact in wanted.items():
        for package in fnmatch.filter(before, pattern):
            if exact is None:
                targets.append(package)
            elif exact in before[package]:
                targets.append(transactions.word(package, exact))
    if not targets:
        return {}
    old = inventory.version_texts(ctx)
    errors = dnf.run_change(ctx.host, ["-y", "remove", *targets])
    changes = package_requests.compared(old, inventory.version_texts(ctx))
    package_requests.complain("Error occurred removing package(s)", errors, changes)
    return changes


def purge(ctx: Context, name: str | None = None, pkgs: object = None, **kwargs: object) -> dict[str, object]:
    """Remove packages, as ``pkg.remove`` does: rpm itself keeps changed configuration files as ``.rpmsave``. Return the
    changes: {name: {"old": version, "new": ""}}.
    """
    return remove(ctx, name, pkgs)


def upgrade(
    ctx: Context,
    name: str | None = None,
    pkgs: object = None,
    refresh: bool = True,
    skip_verify: bool = False,
    normalize: bool = True,
    minimal: bool = False,
    obsoletes: bool = True,
    **kwargs: object,
) -> dict[str, object]:
    """Upgrade all packages with dnf, or those of ``name`` and ``pkgs``. Return the changes: {name: {"old": version,
    "new": version}}.

    minimal
        True: upgrade only to the first version with a bug fix
    obsoletes
        False: keep packages that other packages replace
    security, exclude and others
        any further option of dnf: ``security=True``, ``exclude='kernel*'``

    CLI Example:

        salt '*' pkg.upgrade security=True
    """
    if refresh:
        dnf.refresh(ctx, kwargs)
    before = inventory.version_texts(ctx)
    setopt = [each for each in package_requests.texts(kwargs.get("setopt")) if obsoletes or "obsoletes=" not in each]
    given = {**kwargs, "setopt": setopt if obsoletes else [*setopt, "obsoletes=False"]}
    words = ["--quiet", "-y", *dnf.options(given), *transactions.further_options(kwargs)]
    names = package_requests.wanted(
        name, pkgs, None, lambda each: inventory.plain_name(ctx, each) if normalize else each
    )
    verb = "upgrade-minimal" if minimal else "upgrade"
    errors = dnf.run_change(ctx.host, [*words, *(["--nogpgcheck"] if skip_verify else []), verb, *names])
    changes = package_requests.compared(before, inventory.version_texts(ctx))
    package_requests.complain("Problem encountered upgrading packages", errors, changes)
    return changes


def update(
    ctx: Context,
    name: str | None = None,
    pkgs: object = None,
    refresh: bool = True,
    skip_verify: bool = False,
    normalize: bool = True,
    minimal: bool = False,
    obsoletes: bool = False,
    **kwargs: object,
) -> dict[str, object]:
    """Upgrade packages as ``pkg.upgrade`` does, but keep packages that other packages replace. Return the changes:
    {name: {"old": version, "new": version}}.
    """
    return upgrade(ctx, name, pkgs, refresh, skip_verify, normalize, minimal, obsoletes, **kwargs)


def autoremove(ctx: Context, **kwargs: object) -> dict[str, object]:
    """Remove packages that were installed as dependencies and are no longer needed. Return the changes: {name: {"old":
    version, "new": ""}}.
    """
    before = inventory.version_texts(ctx)
    errors = dnf.run_change(ctx.host, ["-y", "autoremove"])
    changes = package_requests.compared(before, inventory.version_texts(ctx))
    package_requests.complain("Error occurred removing package(s)", errors, changes)
    return changes


def list_downloaded(ctx: Context, **kwargs: object) -> dict[str, object]:
    """Return the package files in dnf's cache: a map of package to version to path, size (bytes) and creation time."""
    return dict(inventory.files(ctx))


def list_holds(ctx: Context, pattern: str | None = None, full: bool = True) -> list[str]:
    """Return the version locks of packages as versionlock writes them (``bash-0:5.1.8-6.el9.*``); with ``full=False``
    the names of the locked packages.
    """
    _check(ctx)
    return [lock.text for lock in locks.read(ctx)] if full else locks.names(ctx)


def hold(
    ctx: Context, name: str | None = None, pkgs: object = None, sources: object = None, **kwargs: object
) -> dict[str, dict[str, object]]:
    """Hold packages at their versions. Return a map of package to a map with name, changes, result and comment."""
    _check(ctx)
    held = locks.names(ctx)
    answers = {}
    for package in package_requests.named(name, pkgs, sources):
        errors = [] if package in held else locks.add(ctx, package)
        done = not errors and package not in held
        verdict = "is already set to be" if package in held else "was unable to be" if errors else "is now being"
        answers[package] = {
            "name": package,
            "changes": {"new": "hold", "old": ""} if done else {},
            "result": not errors,
            "comment": f"Package {package} {verdict} held.{''.join(f' {error}' for error in errors)}",
        }
    return answers


def unhold(
    ctx: Context, name: str | None = None, pkgs: object = None, sources: object = None, **kwargs: object
) -> dict[str, dict[str, object]]:
    """End the hold of packages, so that dnf may change them again. Return a map of package to a map with name, changes,
    result and comment.
    """
    _check(ctx)
    held = locks.names(ctx)
    answers = {}
    for package in package_requests.named(name, pkgs, sources):
        errors = locks.remove(ctx, package) if package in held else []
        done = not errors and package in held
        verdict = "was unable to be unheld" if errors else "is no longer held" if done else "is not being held"
        answers[package] = {
            "name": package,
            "changes": {"new": "", "old": "hold"} if done else {},
            "result": not errors,
            "comment": f"Package {package} {verdict}.{''.join(f' {error}' for error in errors)}",
        }
    return answers


def _check(ctx: Context) -> None:
    if why := locks.missing(ctx.host):
        raise InvocationError(why)
