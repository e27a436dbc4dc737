"""Packages by RPM of the managed host, with dnf5, dnf or yum over it (Salt's ``pkg`` module on RedHat and its kin).

Everything asked goes through ``ctx.host``: what is installed, files and their state to rpm; what could be installed, and what
is to change, to dnf. What is installed is read again only when rpm's own database changed.
"""

from __future__ import annotations

from statecore.builtin.modules.pkg_rpm import changes, dnf, files, groups, holds, queries, repositories
from statecore.model.context import Context
from statecore.system.packages import package_requests

VIRTUAL = "pkg"

#: The modules whose functions make up this one.
PARTS = (queries, files, changes, holds, groups, repositories)


def available(ctx: Context) -> str | None:
    """None where the host's packages are RPM's, and it has a program that gets them."""
    if refused := package_requests.not_served(ctx, "RPM", ("rpm",)):
        return refused
    return None if dnf.program(ctx.host) else f"the host has no {' nor '.join(dnf.PROGRAMS)}"
