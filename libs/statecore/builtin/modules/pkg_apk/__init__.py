"""Packages of the managed host that apk manages: Salt's ``pkg`` execution module on Alpine (in Salt up to 3007).

Installed packages and their files are read from apk's database, so a mounted host needs no programs for them. Available
versions come from the program ``apk``, which also makes all changes.
"""

from __future__ import annotations

from statecore.builtin.modules.pkg_apk import changes, queries, repositories
from statecore.model.context import Context
from statecore.system.packages import package_requests

VIRTUAL = "pkg"

#: The modules that define the functions of ``pkg`` on Alpine.
PARTS = (queries, changes, repositories)

repo_changes = repositories.repo_changes

#: Internal: the state calls it.
ALIASES = {"_repo_changes": "repo_changes"}


def available(ctx: Context) -> str | None:
    """Return None if the host's package manager is apk; else return the reason as text."""
    return package_requests.not_served(ctx, "apk", ("apk",))
