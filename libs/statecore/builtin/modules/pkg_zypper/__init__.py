"""Packages of the managed host that zypper manages: Salt's ``pkg`` execution module on SUSE and openSUSE.

Programs run through ``ctx.host``: rpm for installed packages and their files, zypper for available packages, for locks and for
changes. The argument ``root`` of these functions is a directory of the host that rpm and zypper use as ``/``.
"""

from __future__ import annotations

from statecore.builtin.modules.pkg_rpm import names
from statecore.builtin.modules.pkg_zypper import changes, files, listings, locks, queries, repositories
from statecore.model.context import Context
from statecore.system.packages import package_requests

VIRTUAL = "pkg"

#: The modules that define the functions of ``pkg`` on SUSE.
PARTS = (queries, names, listings, changes, locks, files, repositories)

repo_changes = repositories.repo_changes

#: Internal: the state calls it.
ALIASES = {"_repo_changes": "repo_changes"}


def available(ctx: Context) -> str | None:
    """Return None if the host is of the family Suse and has rpm and zypper; else return the reason as text."""
    if refused := package_requests.not_served(ctx, "zypper", ("rpm", "zypper")):
        return refused
    family = ctx.grains.get("os_family")
    return None if family == "Suse" else f"the host is of the family {family}, not Suse"
