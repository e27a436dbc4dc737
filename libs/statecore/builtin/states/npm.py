"""Salt's ``npm`` states: packages of Node.js. Salt 3008 no longer has these states.

In all states ``user`` runs npm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step

#: Matches ``name@version``; a name may begin with ``@``.
_PACKAGE = re.compile(r"(@?[^@\s]+)(?:@(\S+))?")


def installed(
    ctx: Context,
    name: str,
    pkgs: Sequence[str] | None = None,
    dir: str | None = None,
    user: str | None = None,
    force_reinstall: bool = False,
    registry: str | None = None,
    env: Mapping[str, str] | None = None,
) -> Plan:
    """Install the Node.js package ``name`` (``name@version`` for a version), or the packages ``pkgs``. Nothing happens
    if they are installed; the state fails if npm fails.

    dir
        directory of the project; without it, packages are global
    force_reinstall
        True: install packages that are installed again
    registry
        URL of the registry
    env
        map of environment variables
    """
    packages = list(pkgs or [name])
    try:
        there = ctx.call("npm.list", dir=dir, runas=user, env=env, depth=0)
    except CommandError as error:
        return Plan.failed(f"Error looking up '{name}': {error}")
    wanted = [each for each in packages if force_reinstall is True or not _satisfied(each, there)]
    satisfied = [f"{_name(each)}@{_version(each, there)}" for each in packages if each not in wanted]
    by = f"Package(s) '{', '.join(packages)}' satisfied by {', '.join(satisfied)}"
    if not wanted:
        return Plan.unchanged(by)
    changes = {"old": [], "new": wanted}

    def work() -> Outcome:
        try:
            ctx.call("npm.install", dir=dir, runas=user, registry=registry, env=env, pkgs=packages)
        except CommandError as error:
            return Outcome(f"Error installing '{', '.join(packages)}': {error}", ok=False)
        return Outcome(f"Package(s) '{', '.join(wanted)}' successfully installed", changes)

    would = [f"NPM package(s) '{', '.join(wanted)}' are set to be installed", *([by] if satisfied else [])]
    return Plan.change(". ".join(would), [Step(f"install {', '.join(wanted)} by npm", work)], changes)


def removed(ctx: Context, name: str, dir: str | None = None, user: str | None = None) -> Plan:
    """Remove the Node.js package ``name``. Nothing happens if it is not installed; the state fails if npm fails.

    dir
        directory of the project; without it, packages are global
    """
    try:
        there = ctx.call("npm.list", dir=dir, depth=0)
    except CommandError as error:
        return Plan.failed(f"Error uninstalling '{name}': {error}")
    if name not in there:
        return Plan.unchanged(f"Package '{name}' is not installed")

    def work() -> Outcome:
        try:
            ctx.call("npm.uninstall", pkg=name, dir=dir, runas=user)
        except CommandError as error:
            return Outcome(f"Error removing package '{name}': {error}", ok=False)
        return Outcome(f"Package '{name}' was successfully removed", {name: "Removed"})

    return Plan.change(f"Package '{name}' is set to be removed", [Step(f"remove {name} by npm", work)])


def bootstrap(ctx: Context, name: str, user: str | None = None, silent: bool = True) -> Plan:
    """Install the packages that package.json in the directory ``name`` lists. Nothing happens if npm's dry run reports
    no change; the state fails if npm fails.

    silent
        False: npm shows its messages
    """
    options: dict[str, Any] = {"dir": name, "runas": user, "pkg": None}
    try:
        # With --silent newer releases of npm do not say what they would do.
        would = ctx.call("npm.install", **options, silent=False, dry_run=True)
    except CommandError as error:
        return Plan.failed(f"Error Bootstrapping '{name}': {error}")
    if not _adds(would):
        return Plan.unchanged("Directory is already bootstrapped")

    def work() -> Outcome:
        try:
            done = ctx.call("npm.install", **options, silent=silent)
        except CommandError as error:
            return Outcome(f"Error Bootstrapping '{name}': {error}", ok=False)
        if isinstance(done, str) and done:
            return Outcome(f"Could not bootstrap directory: {done}", ok=False)
        return Outcome("Directory was successfully bootstrapped", {name: "Bootstrapped"})

    changes = {"old": [], "new": would}
    return Plan.change(f"{name} is set to be bootstrapped", [Step(f"install the packages of {name}", work)], changes)


def cache_cleaned(ctx: Context, name: str | None = None, user: str | None = None, force: bool = False) -> Plan:
    """Delete npm's cache, or its entries for the package ``name``. Nothing happens if the cache has no such entry.

    force
        True: npm 5 and newer want this
    """
    what = name or "packages"
    try:
        cached = str(ctx.call("npm.cache_list", path=name, runas=user))
    except CommandError as error:
        return Plan.failed(f"Error looking up cached {what}: {error}")
    if name and name not in cached:
        return Plan.unchanged(f"Package {name} is not in the cache")

    def work() -> Outcome:
        try:
            ctx.call("npm.cache_clean", path=name, runas=user, force=force)
        except CommandError as error:
            return Outcome(f"Error cleaning cached {what}: {error}", ok=False)
        return Outcome(f"Cached {what} successfully removed", {name or "cache": "Removed"})

    return Plan.change(f"Cached {what} set to be removed", [Step("delete npm's cache", work)])


def _name(package: str) -> str:
    match = _PACKAGE.match(package)
    return match.group(1) if match else package


def _version(package: str, there: Mapping[str, Any]) -> str:
    return str(there.get(_name(package), {}).get("version", ""))


def _satisfied(package: str, there: Mapping[str, Any]) -> bool:
    """Return whether the wanted package is installed. ``there`` maps the names of installed packages to their data.

    A URL is compared with the place from which a package was installed.
    """
    match = _PACKAGE.match(package)
    name, version = (match.group(1), match.group(2)) if match else (package, None)
    if "://" in name:
        places = [str(each.get("resolved") or each.get("from") or "") for each in there.values()]
        return any(_place(package) == _place(each) for each in places)
    found = there.get(name, {}).get("version")
    return found is not None and version in (None, found)


def _place(url: str) -> str:
    """Return the URL of an npm package's Git repository without scheme, commit and suffix ``.git``, so that two
    spellings can be compared.
    """
    return url.partition("://")[2].partition("#")[0].removesuffix(".git")


def _adds(answer: object) -> bool:
    """Return whether npm's report of an installation or a dry run lists packages as added, changed or removed."""
    if isinstance(answer, Mapping):
        rows = [answer.get(key) for key in ("added", "changed", "removed")]
        return any(rows) if any(row is not None for row in rows) else bool(answer)
    return bool(answer)
