"""Packages of the managed host that RPM manages, with dnf5, dnf or yum: Salt's ``pkg`` execution module on RedHat and
its derivatives.

Programs run through ``ctx.host``: rpm for installed packages and their files, dnf for available packages and for
changes. The installed packages are read again only if rpm's database changed.
"""

from __future__ import annotations

from statecore.builtin.modules.pkg_rpm import changes, dnf, downloads, files, groups, names, queries, repositories
from statecore.model.context import Context
from statecore.system.packages import package_requests

VIRTUAL = "pkg"

#: The modules that define the functions of ``pkg`` on RedHat.
PARTS = (queries, names, files, downloads, changes, groups, repositories)

repo_changes = repositories.repo_changes

#: Internal: the state calls it.
ALIASES = {"_repo_changes": "repo_changes"}


def available(ctx: Context) -> str | None:
    """Return None if the host has RPM and dnf5, dnf or yum; else return the reason as text."""
    if refused := package_requests.not_served(ctx, "RPM", ("rpm",)):
        return refused
    return None if dnf.program(ctx.host) else f"the host has no {' nor '.join(dnf.PROGRAMS)}"
