"""Functions of ``pkg`` for package groups on a host with rpm."""

from __future__ import annotations

from typing import Any

from statecore.builtin.modules.pkg_rpm import changes, dnf, group_listings, inventory
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.packages import package_requests


def group_list(ctx: Context) -> dict[str, object]:
    """Return the package groups of dnf's repositories: a map of kind (installed, available, installed environments,
    available environments, available languages) to the list of group names. Raise CommandError if dnf fails.
    """
    used = dnf.name(ctx.host)
    words = ["group", "list"] if used == "dnf5" else ["grouplist", "hidden"]
    result = dnf.run_query(ctx.host, words)
    if result.retcode:
        raise CommandError(f"groups cannot be listed: {result.stderr.strip() or result.stdout.strip()}")
    return group_listings.parse_table(result.stdout) if used == "dnf5" else group_listings.parse_list(result.stdout)


def group_info(
    ctx: Context, name: str, expand: bool = False, ignore_groups: object = None, **kwargs: object
) -> dict[str, object]:
    """Return a map with type, id, group (the name) and description of a package group, and the lists of its packages:
    mandatory, optional, default, conditional. Raise CommandError if the group does not exist.

    expand
        True: list the packages of an environment's groups in place of the groups
    fromrepo, enablerepo, disablerepo
        choose the repositories

    CLI Example:

        salt '*' pkg.group_info 'Development Tools'
    """
    return group_listings.info(ctx, name, kwargs, expand=expand, seen=package_requests.texts(ignore_groups))


def group_diff(ctx: Context, name: str, **kwargs: object) -> dict[str, dict[str, list[str]]]:
    """Return a package group's packages as {kind: {"installed": names, "not installed": names}}. The kinds are
    mandatory, optional, default and conditional.
    """
    there = inventory.versions(ctx)
    found = group_listings.info(ctx, name, kwargs, expand=True, seen=[])
    return {
        kind: {
            "installed": [package for package in found[kind] if package in there],
            "not installed": [package for package in found[kind] if package not in there],
        }
        for kind in group_listings.KINDS
    }


def group_install(
    ctx: Context, name: object, skip: object = (), include: object = (), **kwargs: Any
) -> dict[str, object]:
    """Install the mandatory and default packages of package groups, except those of ``skip``, and the packages of
    ``include``. Return the changes: {name: {"old": version, "new": version}}.

    CLI Example:

        salt '*' pkg.group_install 'Development Tools' skip='gdb'
    """
    names = package_requests.texts(name)
    if not names:
        raise InvocationError("no groups specified")
    skipped = package_requests.texts(skip)
    targets: list[str] = []
    for group in names:
        found = group_listings.info(ctx, group, kwargs, expand=True, seen=[])
        targets += [*found["mandatory"], *(package for package in found["default"] if package not in skipped)]
    there = inventory.versions(ctx)
    missing = [each for each in dict.fromkeys([*targets, *package_requests.texts(include)]) if each not in there]
    return changes.install(ctx, pkgs=missing, **kwargs) if missing else {}
