"""Packages of the managed host that dpkg and APT manage: Salt's ``pkg`` execution module on Debian and its
derivatives.

dpkg and APT run through ``ctx.host``. The installed packages are read again only if dpkg's database changed. Daemons
that a package's scripts start keep running; the host's policy decides whether they are started.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from statecore.builtin.modules.pkg_apt import apt, files, repositories
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of
from statecore.system.packages import package_requests
from statecore.system.packages.package_versions import deb

VIRTUAL = "pkg"

#: Further modules that define functions of ``pkg`` on Debian.
PARTS = (files, repositories)

#: ``_repo_changes`` is internal: the state calls it.
ALIASES = {
    "available_version": "latest_version",
    "latest_version": "latest_version",
    "_repo_changes": "repo_changes",
}

repo_changes = repositories.repo_changes

#: Scratch key that the pkg states set when a run begins: fetch the package lists before the next installation.
_REFRESH_DUE = "pkg.refresh_due"
_KNOWN = "pkg.list_pkgs"
_NATIVE = "pkg.architecture"


def available(ctx: Context) -> str | None:
    """Return None if the host has APT and dpkg; else return the reason as text."""
    return package_requests.not_served(ctx, "APT", apt.PROGRAMS)


# --------------------------------------------------------------------------------------------- queries


def list_pkgs(
    ctx: Context, versions_as_list: bool = False, removed: bool = False, purge_desired: bool = False, **kwargs: object
) -> dict[str, Any]:
    """Return a map of package to version for the installed packages. With ``removed``, return the removed packages of
    which configuration files are left.

    CLI Example:

        salt '*' pkg.list_pkgs
    """
    known = _known(ctx)
    found = known.removed
    if not removed:
        found = known.purge_desired if purge_desired else {**known.purge_desired, **known.installed}
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
    ctx: Context,
    *names: str,
    refresh: bool = True,
    show_installed: bool = False,
    fromrepo: str | None = None,
    cache_valid_time: float = 0,
    **kwargs: object,
) -> object:
    """Return the version of a package that APT would install; "" if it is installed already or none exists. For several
    names return a map of name to version.

    CLI Example:

        salt '*' pkg.latest_version nginx
    """
    if not names:
        return ""
    if refresh:
        refresh_db(ctx, cache_valid_time)
    candidates = apt.candidates(ctx.host, names, fromrepo)
    packages = list_pkgs(ctx, versions_as_list=True)
    found = {}
    for name in names:
        candidate = candidates.get(name, "")
        upgrade = all(deb.compare(each, candidate) < 0 for each in packages.get(name, ()))
        found[name] = candidate if show_installed or upgrade else ""
    return found[names[0]] if len(names) == 1 else found


def upgrade_available(ctx: Context, name: str, refresh: bool = True, **kwargs: object) -> bool:
    """Return whether APT has a newer version of the package than the installed one."""
    return bool(latest_version(ctx, name, refresh=refresh))


def list_upgrades(ctx: Context, refresh: bool = True, dist_upgrade: bool = True, **kwargs: Any) -> dict[str, str]:
    """Return a map of package to new version for the packages that an upgrade would change. Raise CommandError if APT
    fails.
    """
    if refresh:
        refresh_db(ctx, kwargs.get("cache_valid_time", 0))
    words = ["dist-upgrade" if dist_upgrade else "upgrade"]
    if kwargs.get("fromrepo"):
        words += ["-o", f"APT::Default-Release={kwargs['fromrepo']}"]
    return apt.upgrades(ctx.host, words)


def list_repo_pkgs(ctx: Context, *names: str, **kwargs: object) -> dict[str, list[str]]:
    """Return a map of package to its versions in APT's repositories, newest first. Without names return all
    packages.
    """
    return apt.repository(ctx.host, names)


def version_cmp(ctx: Context, pkg1: str, pkg2: str, ignore_epoch: bool = False, **kwargs: object) -> int:
    """Compare two versions of a Debian package. Return -1 if the first is older, 0 if they are equal, 1 if it is
    newer.
    """
    return deb.compare(str(pkg1), str(pkg2), ignore_epoch=ignore_epoch)


def normalize_name(ctx: Context, name: str) -> str:
    """Return a package name without its architecture, if that is the host's own (``nginx:amd64`` -> ``nginx``)."""
    plain, _, architecture = name.rpartition(":")
    return plain if plain and architecture in ("all", "any", _architecture(ctx)) else name


# --------------------------------------------------------------------------------------------- changes


def refresh_db(
    ctx: Context, cache_valid_time: float = 0, failhard: bool = False, **kwargs: object
) -> dict[str, bool | None]:
    """Fetch APT's package lists. Return a map of source to True (fetched), None (unchanged) or False (failed).

    Lists younger than ``cache_valid_time`` seconds are not fetched; the map is then empty. With ``failhard`` a failed
    source raises CommandError.

    CLI Example:

        salt '*' pkg.refresh_db
    """
    ctx.scratch.pop(_REFRESH_DUE, None)
    if cache_valid_time and apt.lists_age(ctx.host) < float(cache_valid_time):
        return {}
    found = apt.update(ctx.host)
    failed = [source for source, result in found.items() if result is False]
    if failhard and failed:
        raise CommandError(f"Error getting repos: {', '.join(failed)}")
    return found


def install(
    ctx: Context,
    name: str | None = None,
    refresh: bool = False,
    fromrepo: str | None = None,
    skip_verify: bool = False,
    pkgs: object = None,
    sources: object = None,
    reinstall: bool = False,
    downloadonly: bool = False,
    ignore_epoch: bool = False,
    normalize: bool = True,
    version: str | None = None,
    install_recommends: bool | None = None,
    only_upgrade: bool = False,
    force_conf_new: bool = False,
    cache_valid_time: float = 0,
    debconf: str | None = None,
    **kwargs: object,
) -> dict[str, object]:
    """Install packages with APT. Return the changes: {name: {"old": version, "new": version}}. Raise CommandError with
    APT's errors.

    name
        one package to install, or several with commas; ``pkgs``: a list of names and of {name: version}
    version
        wanted version of the package: a version, a glob (``1.22*``), or conditions (``>=1.2, <2``)
    sources
        package files to install: a list of {name: path}, where a path is salt://, http:// or a .deb file of the host
    downloadonly
        True: only download the packages; return a map of package to version to the file's data
    debconf
        file (salt:// or of the host) with answers to the packages' questions, in the format of debconf-set-selections

    CLI Example:

        salt '*' pkg.install pkgs='["nginx", {"curl": "7.88.1-10"}]'
    """
    package_requests.need_one_kind(pkgs, sources)
    wanted = {} if sources else package_requests.wanted(name, pkgs, version, _normalizer(ctx, normalize))
    if not wanted and not sources:
        return {}
    fetched = refresh_db(ctx, cache_valid_time) if refresh and (sources or _refresh_needed(ctx, wanted)) else {}
    if debconf:
        apt.store_debconf_answers(ctx.host, package_requests.fetched(ctx, debconf).read_text("utf-8", "replace"))
    before = list_pkgs(ctx)
    had = list_downloaded(ctx) if downloadonly else {}
    options = apt.install_options(
        fromrepo=fromrepo,
        skip_verify=skip_verify,
        downloadonly=downloadonly,
        install_recommends=install_recommends,
        only_upgrade=only_upgrade,
        force_conf_new=force_conf_new,
    )
    errors: list[str] = []
    again: list[str] = []
    if sources:
        errors += _install_files(
            ctx, package_requests.packed(sources), [*options, *(["--reinstall"] if reinstall else [])]
        )
    else:
        again = [package for package in wanted if reinstall and package in before]
        words = apt.words(ctx.host, wanted, errors, ignore_epoch=ignore_epoch)
        held = [package for package in get_selections(ctx, state="hold")["hold"] if package in words]
        if held:
            unhold(ctx, pkgs=held)
        try:
            for chosen, extra in apt.batches(words, before, again):
                errors += apt.run_change(ctx.host, [*options, *extra, "install", *chosen])
        finally:
            if held:
                hold(ctx, pkgs=held)
    after = list_pkgs(ctx)
    changes = package_requests.compared(before, after)
    if downloadonly:
        changes = package_requests.compared(had, list_downloaded(ctx))
    changes |= {
        each: {"old": before[each], "new": after.get(each, "")} for each in again if not errors and each not in changes
    }
    unfetched = [source for source, result in fetched.items() if result is False]
    if errors and unfetched:
        # APT only warns of lists that it cannot fetch; the missing package then looks like a wrong name.
        errors.append(f"package lists that could not be fetched: {', '.join(unfetched)}")
    package_requests.complain("Problem encountered installing package(s)", errors, changes)
    return changes


def remove(ctx: Context, name: str | None = None, pkgs: object = None, **kwargs: object) -> dict[str, object]:
    """Remove packages with APT. Their configuration files stay. Return the changes: {name: {"old": version, "new":
    ""}}. Raise CommandError with APT's errors.
    """
    return _uninstall(ctx, "remove", name, pkgs)["installed"]


def purge(ctx: Context, name: str | None = None, pkgs: object = None, **kwargs: object) -> dict[str, object]:
    """Remove packages and their configuration files with APT. Return {"installed": changes, "removed": changes}, where
    changes are {name: {"old": version, "new": ""}}; {} without changes. Raise CommandError with APT's errors.
    """
    changes = _uninstall(ctx, "purge", name, pkgs)
    return dict(changes) if any(changes.values()) else {}


def upgrade(ctx: Context, refresh: bool = True, dist_upgrade: bool = False, **kwargs: Any) -> dict[str, object]:
    """Upgrade all packages with APT, or those of ``pkgs``. Return the changes: {name: {"old": version, "new":
    version}}. Raise CommandError with APT's errors.
    """
    if refresh:
        refresh_db(ctx, kwargs.get("cache_valid_time", 0))
    before = list_pkgs(ctx)
    options = apt.install_options(
        skip_verify=bool(kwargs.get("skip_verify")),
        downloadonly=bool(kwargs.get("downloadonly") or kwargs.get("download_only")),
        force_conf_new=bool(kwargs.get("force_conf_new")),
    )
    options += ["--allow-downgrades"] if kwargs.get("allow_downgrades") else []
    names = [str(each) for each in kwargs.get("pkgs") or ()]
    verb = ["--only-upgrade", "install", *names] if names else ["dist-upgrade" if dist_upgrade else "upgrade"]
    errors = apt.run_change(ctx.host, [*options, *verb])
    changes = package_requests.compared(before, list_pkgs(ctx))
    package_requests.complain("Problem encountered upgrading packages", errors, changes)
    return changes


def autoremove(
    ctx: Context, list_only: bool = False, purge: bool = False, **kwargs: object
) -> dict[str, object] | list[str]:
    """Remove packages that were installed as dependencies and are no longer needed. Return the changes: {name: {"old":
    version, "new": ""}}. Raise CommandError with APT's errors.

    list_only
        True: remove nothing, return the names of these packages
    purge
        True: also remove their configuration files

    CLI Example:

        salt '*' pkg.autoremove list_only=True
    """
    if list_only:
        simulated = apt.run(ctx.host, ["apt-get", "--assume-no", "--simulate", "autoremove"])
        return sorted(line.split()[1] for line in lines_of(simulated.stdout) if line.startswith("Remv "))
    before = list_pkgs(ctx)
    errors = apt.run_change(ctx.host, ["-q", "-y", *apt.PATIENCE, *(["--purge"] if purge else []), "autoremove"])
    changes = package_requests.compared(before, list_pkgs(ctx))
    package_requests.complain("Problem encountered removing package(s)", errors, changes)
    return changes


def parse_arch(ctx: Context, name: str) -> dict[str, str | None]:
    """Split a package name such as ``zsh:amd64`` into {"name", "arch"}. The value of "arch" is None for a name without
    architecture.

    CLI Example:

        salt '*' pkg.parse_arch zsh:amd64
    """
    plain, colon, architecture = name.rpartition(":")
    return {"name": plain, "arch": architecture} if colon else {"name": name, "arch": None}


# ----------------------------------------------------------------------------------------------- holds


def get_selections(ctx: Context, pattern: str | None = None, state: str | None = None) -> dict[str, list[str]]:
    """Return a map of dpkg selection state (install, hold, deinstall, purge) to the list of its packages."""
    result = apt.run(ctx.host, ["dpkg", "--get-selections", pattern or "*"])
    found: dict[str, list[str]] = {}
    for line in lines_of(result.stdout):
        package, _, selection = line.partition("\t")
        if selection.strip():
            found.setdefault(selection.strip(), []).append(normalize_name(ctx, package))
    return {state: found.get(state, [])} if state else found


def set_selections(
    ctx: Context, selection: Mapping[str, str | Sequence[str]] | None = None
) -> dict[str, dict[str, str | None]]:
    """Set the dpkg selection states of packages, given as {state: [package, ...]}. Return {package: {"old": state,
    "new": state}} for the packages whose state changed; the old state of an unknown package is None.
    """
    current = {package: state for state, packages in get_selections(ctx).items() for package in packages}
    changes: dict[str, dict[str, str | None]] = {}
    for state, packages in (selection or {}).items():
        for package in [packages] if isinstance(packages, str) else packages:
            result = apt.run(ctx.host, ["dpkg", "--set-selections"], stdin=f"{package} {state}\n")
            if result.retcode:
                raise CommandError(f"failed to set the selection of {package} to {state}: {result.stderr.strip()}")
            if current.get(package) != state:
                changes[package] = {"old": current.get(package), "new": state}
    return changes


def hold(
    ctx: Context, name: str | None = None, pkgs: object = None, sources: object = None, **kw: object
) -> dict[str, dict[str, object]]:
    """Hold packages: APT neither upgrades nor removes them. Return a map of package to a map with name, changes, result
    and comment.
    """
    held = get_selections(ctx, state="hold")["hold"]
    answers = {}
    for package in package_requests.named(name, pkgs, sources):
        changes = {} if package in held else set_selections(ctx, {"hold": [package]}).get(package, {})
        comment = f"Package {package} is {'already set to be' if package in held else 'now being'} held."
        answers[package] = {"name": package, "changes": changes, "result": True, "comment": comment}
    return answers


def unhold(
    ctx: Context, name: str | None = None, pkgs: object = None, sources: object = None, **kw: object
) -> dict[str, dict[str, object]]:
    """End the hold of packages, so that APT may change them again. Return a map of package to a map with name, changes,
    result and comment.
    """
    selections = get_selections(ctx)
    known = {package: state for state, packages in selections.items() for package in packages}
    answers = {}
    for package in package_requests.named(name, pkgs, sources):
        held = known.get(package) == "hold"
        changes = set_selections(ctx, {"install": [package]}).get(package, {}) if held else {}
        comment = f"Package {package} is {'no longer being' if held else 'already set not to be'} held."
        if package not in known:
            comment = f"Package {package} does not have a state."
        answers[package] = {"name": package, "changes": changes, "result": package in known, "comment": comment}
    return answers


# --------------------------------------------------------------------------------------------- helpers


def _known(ctx: Context) -> apt.Packages:
    """Return dpkg's records of packages: maps of package to versions for installed, removed and to be purged packages.
    They are read again if dpkg's database changed.
    """
    state = apt.state(ctx.host)
    known: tuple[tuple[int, int], apt.Packages] | None = ctx.scratch.get(_KNOWN)
    if known is None or known[0] != state or state == (0, 0):
        known = ctx.scratch[_KNOWN] = (state, apt.packages(ctx.host, _architecture(ctx)))
    return known[1]


def _architecture(ctx: Context) -> str:
    if _NATIVE not in ctx.scratch:
        ctx.scratch[_NATIVE] = apt.architecture(ctx.host)
    return str(ctx.scratch[_NATIVE])


def _normalizer(ctx: Context, normalize: bool) -> Callable[[str], str]:
    return lambda name: normalize_name(ctx, name) if normalize and ":" in name else name


def _refresh_needed(ctx: Context, wanted: Mapping[str, str | None]) -> bool:
    """Return whether the package lists are needed for an installation: False if every package is pinned to the version
    that APT already has as its candidate.
    """
    known = apt.candidates(ctx.host, list(wanted))
    return any(version is None or known.get(package) != version for package, version in wanted.items())


def _install_files(ctx: Context, sources: Mapping[str, str], options: Sequence[str]) -> list[str]:
    """Install package files; their dependencies come from the repositories. Return the errors as texts, [] on
    success.
    """
    with package_requests.staged(ctx.host, package_requests.package_files(ctx, sources), ".deb") as paths:
        return apt.run_change(ctx.host, [*options, "--allow-downgrades", "install", *paths])


def _uninstall(ctx: Context, verb: str, name: str | None, pkgs: object) -> dict[str, dict[str, object]]:
    wanted = package_requests.wanted(name, pkgs, None, _normalizer(ctx, True))
    before, left = list_pkgs(ctx), list_pkgs(ctx, removed=True)
    there = {**before, **left} if verb == "purge" else before
    targets = sorted({package for pattern in wanted for package in fnmatch.filter(there, pattern)})
    if not targets:
        return {"installed": {}, "removed": {}}
    errors = apt.run_change(ctx.host, ["-q", "-y", *apt.PATIENCE, verb, *targets])
    changes = {
        "removed": package_requests.compared(left, list_pkgs(ctx, removed=True)),
        "installed": package_requests.compared(before, list_pkgs(ctx)),
    }
    package_requests.complain("Problem encountered removing package(s)", errors, changes)
    return changes


_ARCHIVES = "/var/cache/apt/archives"


def list_downloaded(ctx: Context, **kwargs: object) -> dict[str, dict[str, dict[str, str | int]]]:
    """Return the package files in APT's cache: a map of package to version to path, size (bytes) and creation time.

    CLI Example:

        salt '*' pkg.list_downloaded
    """
    found: dict[str, dict[str, dict[str, str | int]]] = {}
    directory = ctx.host.path(_ARCHIVES)
    for path in sorted(directory.glob("*.deb")) if directory.is_dir() else ():
        # APT names them name_version_architecture.deb, with %3a for the colon of an epoch.
        parts = path.stem.split("_")
        if len(parts) != 3 or path.is_symlink():
            continue
        state = path.stat()
        found.setdefault(parts[0], {})[unquote(parts[1])] = {
            "path": f"{_ARCHIVES}/{path.name}",
            "size": state.st_size,
            "creation_date_time_t": int(state.st_ctime),
            "creation_date_time": datetime.fromtimestamp(int(state.st_ctime), UTC).replace(tzinfo=None).isoformat(),
        }
    return found
