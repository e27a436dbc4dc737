"""Packages by apk of the managed host (Alpine's; Salt's ``pkg`` module there, until 3007).

What is installed, and whose files are, stands in apk's own database and is read from it: a mounted host needs no userland to be
asked. What could be installed is asked of ``apk``, which does whatever is to change.
"""

from __future__ import annotations

from statecore.builtin.modules.pkg_apk import changes, queries, repositories
from statecore.model.context import Context
from statecore.system.packages import package_requests

VIRTUAL = "pkg"

#: The modules whose functions make up this one.
PARTS = (queries, changes, repositories)


def available(ctx: Context) -> str | None:
    """None where the host's packages are apk's."""
    return package_requests.not_served(ctx, "apk", ("apk",))
