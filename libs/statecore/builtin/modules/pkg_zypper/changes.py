"""Functions of ``pkg`` that install, upgrade and remove packages on a host with zypper."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from statecore.builtin.modules.pkg_rpm import inventory, rpm
from statecore.builtin.modules.pkg_zypper import files, listings, locks, queries, zypper
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of
from statecore.system.packages import package_requests, package_versions
from statecore.system.packages.package_versions import rpm as versions

#: zypper's line about a package whose wanted version is older than the installed one.
_OLDER = re.compile(r"^The selected package '(?P<name>[^']+)'.+has lower version")

#: Operators of zypper's version conditions.
_OPERATORS = re.compile(r"^(?P<operator><=|>=|<|>|=)?\s*(?P<version>[^<>=]+)$")


def refresh_db(
    ctx: Context, force: bool | None = None, root: str | None = None, gpgautoimport: bool = False, **kwargs: Any
) -> dict[str, bool]:
    """Fetch the metadata of the repositories. Return a map of repository to True (fetched) or False (up to date). Raise
    CommandError if zypper fails.

    force
        True: fetch it even if it is not old; default: as the pillar ``zypper:refreshdb_force`` says, else True
    gpgautoimport
        True: import new keys of repositories without a question
    repos
        a repository, or a list of repositories, to fetch

    CLI Example:

        salt '*' pkg.refresh_db force=False
    """
    given = kwargs.get("repos") or []
    chosen = list(map(str, given if isinstance(given, list) else [given]))
    return zypper.refresh(ctx, force=force, root=root, trust_keys=gpgautoimport, repositories=chosen)


def install(
    ctx: Context,
    name: str | None = None,
    refresh: bool = False,
    fromrepo: str | None = None,
    pkgs: object = None,
    sources: object = None,
    downloadonly: bool | None = None,
    skip_verify: bool = False,
    version: object = None,
    ignore_repo_failure: bool = False,
    no_recommends: bool = False,
    root: str | None = None,
    reinstall: bool = False,
    update_holds: bool = False,
    **kwargs: Any,
) -> dict[str, object]:
    """Install packages with zypper. Return the changes: {name: {"old": version, "new": version}}. Raise CommandError with
    zypper's errors.

    name
        one package to install, or several with commas; ``pkgs``: a list of names and of {name: version}
    version
        wanted version of the package: a version, a glob (``1.22*``), or conditions (``>=1.2, <2``)
    sources
        package files to install: a list of {name: path}, where a path is salt://, http:// or an .rpm file of the host
    advisory_ids
        names of patches, which are installed instead of ``name``
    downloadonly
        True: only download the packages; return a map of package to version to the file's data
    refresh
        True: fetch the metadata of the repositories before
    fromrepo
        repository to install from; its packages replace those of others
    skip_verify
        True: do not check the packages' signatures
    resolve_capabilities
        True: names may be capabilities that packages provide
    no_recommends
        True: do not install recommended packages
    ignore_repo_failure
        True: zypper's errors are not raised; the changes tell what was installed
    reinstall
        True: install packages again that are installed
    update_holds
        True: end the hold of packages during the installation
    diff_attr
        attributes of packages that the changes show in place of versions, as ``attr`` of ``pkg.list_pkgs``

    CLI Example:

        salt '*' pkg.install pkgs='["nginx", {"curl": "8.2-1"}]'
    """
    package_requests.need_one_kind(pkgs, sources)
    if refresh:
        zypper.refresh(ctx, force=kwargs.get("force"), root=root, trust_keys=bool(kwargs.get("gpgautoimport")))
    advisories = package_requests.texts(kwargs.get("advisory_ids"))
    wanted = package_requests.wanted(name, pkgs, version, lambda each: each)
    if not (sources or advisories or wanted):
        return {}
    errors: list[str] = []
    general = [
        *(["--no-gpg-checks"] if skip_verify else []),
        *([] if refresh else ["--no-refresh"]),
        *("install", "--auto-agree-with-licenses"),
        "--capability" if kwargs.get("resolve_capabilities") else "--name",
        *(["--download-only"] if downloadonly else []),
        *(["--force", "--force-resolution", "--from", fromrepo] if fromrepo else []),
        *(["--no-recommends"] if no_recommends else []),
    ]
    again: list[str] = []
    kinds = sorted({each.partition(":")[0] for each in wanted if ":" in each})
    seen = functools.partial(_seen, ctx, root, kwargs.get("diff_attr"), kinds, bool(downloadonly))
    before = seen()
    if sources:
        paths = package_requests.package_files(ctx, package_requests.packed(sources))
        with package_requests.staged(ctx.host, paths, ".rpm") as places:
            # Options that choose among packages of repositories do not go with files.
            plain = [word for word in general if word not in ("--name", "--capability")]
            _install(ctx, plain, places, root, errors)
    else:
        targets = _patches(ctx, advisories, root) if advisories else _targets(ctx, wanted, root, errors)
        installed = inventory.versions(ctx) if reinstall else {}
        again = [each for each in wanted if each in installed] if not advisories else []
        held = [each for each in wanted if each in locks.list_locks(ctx, root)] if update_holds else []
        if held:
            locks.unhold(ctx, pkgs=held, root=root)
        try:
            fresh = [target for each, target in targets.items() if each not in again]
            _install(ctx, general, fresh, root, errors)
            _install(ctx, [*general, "--force"], [targets[each] for each in again if each in targets], root, errors)
        finally:
            if held:
                locks.hold(ctx, pkgs=held, root=root)
    after = seen()
    changes = package_requests.compared(before, after, again)
    if not ignore_repo_failure:
        _complain(errors, changes)
    return changes


def upgrade(
    ctx: Context,
    name: str | None = None,
    pkgs: object = None,
    refresh: bool = True,
    dryrun: bool = False,
    dist_upgrade: bool = False,
    fromrepo: object = None,
    novendorchange: bool = False,
    skip_verify: bool = False,
    no_recommends: bool = False,
    root: str | None = None,
    diff_attr: object = None,
    **kwargs: Any,
) -> object:
    """Update all packages with zypper, or those of ``name`` and ``pkgs``. Return the changes: {name: {"old": version, "new":
    version}}; with ``dryrun`` zypper's output. Raise CommandError if zypper fails.

    refresh
        True: fetch the metadata of the repositories before
    dryrun
        True: change nothing; with ``dist_upgrade`` also write zypper's files for solving problems
    dist_upgrade
        True: make the host what its repositories have (``zypper dist-upgrade``); ``name`` and ``pkgs`` have no effect
    fromrepo
        a repository, or a list of repositories, to update from
    novendorchange, no_recommends
        True, with ``dist_upgrade``: keep the vendor of each package; install no recommended packages
    skip_verify
        True: do not check the packages' signatures
    diff_attr
        attributes of packages that the changes show in place of versions, as ``attr`` of ``pkg.list_pkgs``

    CLI Example:

        salt '*' pkg.upgrade dist_upgrade=True novendorchange=True
    """
    if refresh:
        zypper.refresh(ctx, force=kwargs.get("force"), root=root, trust_keys=bool(kwargs.get("gpgautoimport")))
    repositories = fromrepo if isinstance(fromrepo, list | tuple) else [fromrepo] if fromrepo else []
    order = [
        *(["--no-gpg-checks"] if skip_verify else []),
        "dist-upgrade" if dist_upgrade else "update",
        "--auto-agree-with-licenses",
        *(["--dry-run"] if dryrun else []),
        *(word for each in repositories for word in ("--from" if dist_upgrade else "--repo", str(each))),
    ]
    if dist_upgrade:
        order += ["--no-allow-vendor-change"] if novendorchange else []
        order += ["--no-recommends"] if no_recommends else []
        if dryrun:
            # Its result is that of the run below.
            zypper.run_change(ctx.host, [*order, "--debug-solver"], root)
    else:
        order += package_requests.wanted(name, pkgs, None, lambda each: each)
    before = queries.list_pkgs(ctx, root=root, attr=diff_attr)
    result = zypper.run_change(ctx.host, order, root)
    changes = package_requests.compared(before, queries.list_pkgs(ctx, root=root, attr=diff_attr))
    if result.retcode not in zypper.COMPLETE:
        told = {"retcode": result.retcode, "stdout": result.stdout, "stderr": result.stderr, "pid": result.pid}
        raise CommandError("Problem encountered upgrading packages", {"changes": changes, "result": told})
    return f"{result.stdout}\n{result.stderr}".strip() if dryrun else changes


def remove(
    ctx: Context, name: str | None = None, pkgs: object = None, root: str | None = None, **kwargs: object
) -> dict[str, object]:
    """Remove packages with zypper, by name or by name and version. Return the changes: {name: {"old": version, "new": ""}}.
    Raise CommandError with zypper's errors.

    CLI Example:

        salt '*' pkg.remove nginx
    """
    wanted = package_requests.wanted(name, pkgs, None, lambda each: each)
    kinds = sorted({each.partition(":")[0] for each in wanted if ":" in each})
    before = _seen(ctx, root, None, kinds, False)
    temporary = _temporary_fixes(ctx, list(wanted), root)
    targets = []
    for package, exact in wanted.items():
        if package in temporary or package not in before:
            continue
        if exact is None:
            targets.append(package)
        elif exact in str(before[package]).split(","):
            targets.append(f"{package}-{exact}")
    if not targets and not temporary:
        return {}
    errors: list[str] = []
    for order, names in ((["remove"], targets), (["removeptf", "--allow-downgrade"], temporary)):
        for start in range(0, len(names), zypper.BATCH):
            arguments = [*order, *names[start : start + zypper.BATCH]]
            errors += zypper.errors(zypper.run_change(ctx.host, arguments, root))
    changes = package_requests.compared(before, _seen(ctx, root, None, kinds, False))
    _complain(errors, changes)
    return changes


def purge(
    ctx: Context, name: str | None = None, pkgs: object = None, root: str | None = None, **kwargs: object
) -> dict[str, object]:
    """Remove packages, as ``pkg.remove`` does: rpm itself keeps changed configuration files as ``.rpmsave``. Return the changes:
    {name: {"old": version, "new": ""}}.

    CLI Example:

        salt '*' pkg.purge nginx
    """
    return remove(ctx, name, pkgs, root)


def _install(ctx: Context, general: Sequence[str], targets: Sequence[str], root: str | None, errors: list[str]) -> None:
    """Install targets of zypper in batches; those whose wanted version is older than the installed one again, by force. Errors
    are appended to ``errors``.
    """
    older: list[str] = []
    for start in range(0, len(targets), zypper.BATCH):
        result = zypper.run_change(ctx.host, [*general, *targets[start : start + zypper.BATCH]], root)
        errors += zypper.errors(result)
        older += [match["name"] for line in lines_of(result.stdout) if (match := _OLDER.match(line))]
    for start in range(0, len(older), zypper.BATCH):
        # zypper's line has the name with version and architecture.
        batch = older[start : start + zypper.BATCH]
        errors += zypper.errors(zypper.run_change(ctx.host, [*general, "--force", *batch], root))


def _complain(errors: Sequence[str], changes: Mapping[str, object]) -> None:
    """Raise CommandError with zypper's errors and the changes made so far, if there are errors."""
    if errors:
        told = "\n".join(errors)
        raise CommandError(f"Zypper command failure: {told}", {"changes": changes} if changes else None)


def _targets(ctx: Context, wanted: Mapping[str, str | None], root: str | None, errors: list[str]) -> dict[str, str]:
    """Return a map of package to zypper's argument for it, such as ``nginx=1.22-1``.

    An error is appended to ``errors`` for each package without a matching version.
    """
    found: dict[str, str] = {}
    for package, text in wanted.items():
        if text is None:
            found[package] = package
            continue
        plain = _OPERATORS.match(text)
        if plain and "*" not in text:
            found[package] = f"{package}{plain['operator'] or '='}{plain['version'].strip()}"
            continue
        listed = zypper.query_xml(ctx, "se", "-xv", package, root=root, check=False).iter("solvable")
        offers = {
            each.get("edition", "") for each in listed if (each.get("name"), each.get("kind")) == (package, "package")
        } - {""}
        newest_first = sorted(offers, key=functools.cmp_to_key(versions.compare), reverse=True)
        if plain:
            exact = next((each for each in newest_first if fnmatch.fnmatch(each, plain["version"].strip())), None)
            operator = plain["operator"] or "="
        else:
            exact, operator = package_versions.best(newest_first, text, order=versions.compare), "="
        if exact is None:
            offered = ", ".join(newest_first) or "none"
            errors.append(f"No version matching '{text}' found for package '{package}' (available: {offered})")
        else:
            found[package] = f"{package}{operator}{exact}"
    return found


def _patches(ctx: Context, names: Sequence[str], root: str | None) -> dict[str, str]:
    """Return a map of patch to zypper's argument for it. Raise CommandError for a patch that no repository has."""
    known = listings.list_patches(ctx, root=root)
    unknown = [each for each in names if each not in known]
    if unknown:
        raise CommandError("; ".join(f'Advisory id "{each}" not found' for each in unknown))
    return {each: f"patch:{each}" for each in names}


def _temporary_fixes(ctx: Context, names: Sequence[str], root: str | None) -> list[str]:
    """Return those of the packages that are SUSE's program temporary fixes, which zypper removes in a way of its own."""
    if not names:
        return []
    where = ["--root", root] if root else []
    told = rpm.run(ctx.host, ["rpm", *where, "-q", "--qf", "%{NAME}: [%{PROVIDES} ]\\n", *names]).stdout
    pairs = (line.split(":", 1) for line in lines_of(told) if ":" in line)
    return [name for name, provides in pairs if "ptf()" in provides]


def _seen(ctx: Context, root: str | None, attr: object, kinds: Sequence[str], downloads: bool) -> dict[str, Any]:
    """Return the installed packages, or with ``downloads`` the downloaded ones, for a comparison."""
    if downloads:
        return files.list_downloaded(ctx, root)
    return queries.list_pkgs(ctx, root=root, includes=[each for each in kinds if each != "package"], attr=attr)
